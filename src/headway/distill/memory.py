"""The C library's allocator, set up for training."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
"""Of mallopt(3)."""


def keep_freed_memory() -> None:
    """Large blocks that are freed stay with the process, to be given out again. By default glibc returns those of more than 32
    MB to the system, which clears every page anew: with a vocabulary of 16,384 tokens, whose logits are that large, a step took
    0.27 instead of 0.22 s (with 8,192 no longer). Elsewhere than on glibc nothing is changed."""
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)
