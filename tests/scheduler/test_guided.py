"""Drafts under a grammar."""

from __future__ import annotations

from collections.abc import Sequence

from machine import Machine

from headway.scheduler.guided import CERTAIN, GuidedLookup
from headway.scheduler.lookup import Lookup


class Script:
    """A grammar that has `force` next, and allows no token from 100 on."""

    def __init__(self, *force: int) -> None:
        self.force = list(force)
        self.finished = False

    def forced(self, at_most: int) -> list[int]:
        return self.force[:at_most]

    def fitting(self, tokens: Sequence[int]) -> int:
        bad = next((i for i, token in enumerate(tokens) if token >= 100), len(tokens))
        return next((i for i, (f, t) in enumerate(zip(self.force, tokens, strict=False)) if f != t), bad)


REPEATS = [1, 2, 3, 4, 5, 100, 6, 1, 2, 3]


def test_without_force_it_is_lookup_up_to_what_the_grammar_refuses() -> None:
    lookup = GuidedLookup((), Script())
    assert lookup.propose(REPEATS, 1, 4) == [4, 5]
    plain = Lookup()
    plain.propose(REPEATS, 1, 4)
    assert lookup.survival(0) == plain.survival(0)
    lookup.learn([4, 5], [4, 5, 7])
    plain.learn([4, 5], [4, 5, 7])
    assert lookup.survival(0) == plain.survival(0) > Lookup().survival(0)


def test_what_is_forced_goes_before_and_is_certain() -> None:
    lookup = GuidedLookup((), Script(7, 8, 9))
    assert lookup.propose(REPEATS, 1, 2) == [7, 8]
    assert lookup.propose(REPEATS, 1, 9) == [7, 8, 9]
    assert [lookup.survival(k) for k in range(3)] == [CERTAIN] * 3
    assert not lookup.predicted
    before = lookup.survival(3)
    lookup.learn([7, 8, 9], [7, 8, 9])
    assert lookup.survival(3) == before


def test_a_guess_that_begins_with_what_is_forced_goes_on_behind_it() -> None:
    lookup = GuidedLookup((), Script(4))
    assert lookup.propose(REPEATS, 1, 4) == [4, 5]
    assert lookup.survival(0) == CERTAIN > lookup.survival(1)


def test_a_prediction_that_the_grammar_refuses_is_not_counted_as_one() -> None:
    lookup = GuidedLookup((5, 6), Script(7))
    assert lookup.propose([1, 2], 0, 4) == [7] and not lookup.predicted
    lookup = GuidedLookup((5, 6), Script())
    assert lookup.propose([1, 2], 0, 4) == [5, 6] and lookup.predicted


def test_a_request_ends_when_its_grammar_does() -> None:
    m = Machine()
    request = m.request(prompt=5, out=50)
    request.guide = guide = Script()
    while request.num_output < 4:
        m.step()
    assert request in m.scheduler.running()
    guide.finished = True
    had = request.num_output
    m.step()
    assert request not in m.scheduler.running() and request.num_output > had
