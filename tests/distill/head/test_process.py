"""The process that trains: how it is stopped, and how it keeps its memory."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from headway.distill.stopping import stoppable


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """As in a terminal: a shell starts what runs in the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_leaves_a_note(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stoppable() as stop:
        assert stop.wanted is None
        signal.raise_signal(number)
        assert stop.wanted == number
        assert signal.getsignal(number) is before
    assert signal.getsignal(number) is before


def test_the_second_one_interrupts() -> None:
    with pytest.raises(KeyboardInterrupt), stoppable():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_afterwards_signals_act_as_before() -> None:
    with stoppable():
        pass
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


FAULTS = """
import resource, sys
import numpy as np
from headway.distill.memory import keep_freed_memory

if sys.argv[1] == "keep":
    keep_freed_memory()

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(48 * 2**20, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="nothing is changed elsewhere")
def test_large_blocks_are_given_out_again_without_being_cleared() -> None:
    def faults(how: str) -> int:
        return int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True).stdout)

    assert faults("keep") <= faults("leave") // 4
