"""Which target for which work: a recommendation for each suite, by a stated rule.

**Break-even.** A target answers in a seconds, a share e of its answers is wrong, a wrong one is noticed, and asking again costs
r seconds beside the answer's own (checking it, or somebody's patience), with the same chance each time. A right answer then
takes

    (a + r) / (1 - e)                                                                                        (1)

seconds. Against another target with b and f, at r = 0, the first is the quicker way to a right answer as long as

    e < 1 - (a / b) (1 - f)                                                                                  (2)

(its break-even: 38% for one that answers in 0.62 of the other's time, when the other is always right); and where it is, it
stays so for checks that cost less than

    r = (b (1 - e) - a (1 - f)) / (e - f)                                                                    (3)

seconds. The same holds for prices. It assumes that asking again is an independent try: at temperature 0 the same words get the
same answer, so a retry must sample, or say it in another way.

**The rule.**
1. The best target is the one with the most right answers. Is that below RELIABLE, none is recommended.
2. As good as the best are those within MARGIN of it, unless their difference is shown (its 95% interval, of the same tasks,
   leaves out 0). Of these, the one with the lowest price per right answer (device seconds where there are no prices) is
   recommended, and the one with the fewest seconds per right answer where somebody waits.
3. Of the others, those that come to a right answer sooner than the quickest of 2 pay where a retry is cheap, up to (3); those
   that don't are told their break-even (2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway.compare.capability.bootstrap import Interval, difference_interval
from headway.compare.capability.figures import Cell
from headway.compare.stats import ratio

RELIABLE = 0.5
MARGIN = 0.1
MIN_TASKS = 3
"""Fewer answered tasks are no ground for advice."""


@dataclass(frozen=True, slots=True)
class Advice:
    """cheapest, quickest: labels, None if none is recommended. sooner: those that pay where a retry is cheap, with the seconds
    that it may cost. words: all of it."""

    suite: str
    cheapest: str | None
    quickest: str | None
    sooner: Mapping[str, float]
    words: str


def break_even_errors(seconds: float, other_seconds: float, other_errors: float) -> float:
    """The share of wrong answers, 0 to 1, up to which a target is the quicker way to a right answer; see (2). 0: never."""
    return max(0.0, 1 - seconds / other_seconds * (1 - other_errors))


def affordable_retry(seconds: float, errors: float, other_seconds: float, other_errors: float) -> float:
    """Seconds that noticing a wrong answer may cost, so that the first target, with more errors, still is the quicker way to a
    right one; see (3). Negative: it isn't even if that costs nothing. Raises ValueError if its errors are not the more."""
    if errors <= other_errors:
        raise ValueError("the first target must have more errors than the other")
    return (other_seconds * (1 - errors) - seconds * (1 - other_errors)) / (errors - other_errors)


def advise(suite: str, cells: Mapping[str, Cell]) -> Advice:
    """By the rule. cells: by target."""
    known = {label: cell for label, cell in cells.items() if len(cell.right) >= MIN_TASKS}
    if not known:
        return Advice(suite, None, None, {}, f"too few answers to say anything (fewer than {MIN_TASKS} of each target)")
    best = max(known, key=lambda label: (_share(known[label]), -(known[label].seconds_per_right or float("inf"))))
    if _share(known[best]) < RELIABLE:
        return Advice(suite, None, None, {}, f"none can be relied on: the best, {best}, gets {_percent(known[best])} right")
    equals = [label for label in known if _as_good(known[label], known[best])]
    quickest = min(equals, key=lambda label: known[label].seconds_per_right or float("inf"))
    cheapest = min(equals, key=lambda label: (_price(known[label]), known[label].seconds_per_right or float("inf")))
    sentences = [_first(known, cheapest, quickest)]
    sooner = {}
    for label in known:
        if label not in equals:
            retry = _retry(known[label], known[quickest])
            if retry is not None and retry > 0:
                sooner[label] = retry
            sentences.append(_other(label, quickest, known, retry))
    return Advice(suite, cheapest, quickest, sooner, "; ".join(sentences))


def _first(cells: Mapping[str, Cell], cheapest: str, quickest: str) -> str:
    if cheapest == quickest:
        return f"{quickest} ({_percent(cells[quickest])} right), the quickest and cheapest of the good"
    quick, cheap = cells[quickest], cells[cheapest]
    faster = ratio(cheap.seconds_per_right, quick.seconds_per_right)
    dearer = _price(quick) / _price(cheap) if _price(cheap) and _price(cheap) != float("inf") else None
    price = f" at {dearer:.1f} times the price" if dearer is not None else ""
    times = f"{faster:.1f} times as quick" if faster else "quicker"
    return f"{cheapest} ({_percent(cheap)} right); where somebody waits, {quickest} ({_percent(quick)} right), {times}{price}"


def _other(label: str, quickest: str, cells: Mapping[str, Cell], retry: float | None) -> str:
    cell, than = cells[label], cells[quickest]
    if cell.seconds is None or than.seconds is None:
        return f"{label} gets {_percent(cell)} right"
    limit = break_even_errors(cell.seconds, than.seconds, 1 - _share(than))
    errs = f"{1 - _share(cell):.0%} wrong; break-even {limit:.0%}"
    doubt = "" if _shown(cell, than) else ", though so few tasks don't show that it is weaker"
    if retry is not None and retry > 0:
        return f"{label} pays where noticing a mistake and asking again costs under {_seconds(retry)} ({errs}{doubt})"
    return f"{label} doesn't pay ({errs}{doubt})" if cell.seconds < than.seconds else f"{label} is no quicker ({errs}{doubt})"


def _retry(cell: Cell, than: Cell) -> float | None:
    errors, other_errors = 1 - _share(cell), 1 - _share(than)
    if cell.seconds is None or than.seconds is None or errors <= other_errors:
        return None
    return affordable_retry(cell.seconds, errors, than.seconds, other_errors)


def _as_good(cell: Cell, best: Cell) -> bool:
    return _share(best) - _share(cell) <= MARGIN and not _shown(cell, best)


def _shown(cell: Cell, other: Cell) -> bool:
    """Whether the difference of the two is shown."""
    gap = difference(cell, other)
    return gap is not None and (gap[0] > 0 or gap[1] < 0)


def difference(cell: Cell, other: Cell) -> Interval | None:
    """95% interval of the first one's share minus the other's, over the tasks that both have answered."""
    rights, others = dict(zip(cell.ids, cell.right, strict=True)), dict(zip(other.ids, other.right, strict=True))
    both = [task for task in cell.ids if task in others]
    return difference_interval([rights[task] for task in both], [others[task] for task in both])


def _share(cell: Cell) -> float:
    return cell.share or 0.0


def _price(cell: Cell) -> float:
    found = cell.engine_seconds_per_right if cell.price is None else cell.price_per_right
    return float("inf") if found is None else found


def _percent(cell: Cell) -> str:
    return f"{_share(cell):.0%}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
