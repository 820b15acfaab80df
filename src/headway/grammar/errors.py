"""The one error of this room."""

from __future__ import annotations


class ConstraintError(ValueError):
    """A constraint that can't be used as it is: one line that says what is wrong with it, and where."""
