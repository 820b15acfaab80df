"""Break-even and recommendation: numbers worked out by hand."""

from __future__ import annotations

import pytest

from headway.compare.capability.advice import advise, affordable_retry, break_even_errors
from headway.compare.capability.chains import speed_needed, survival, survives
from headway.compare.capability.figures import Cell
from headway.compare.suites.task import Verdict


def cell(right: int, tasks: int, seconds: float, price: float | None = None, skip: int = 0) -> Cell:
    """The first `right` tasks after `skip` are right."""
    rights = tuple(skip <= place < skip + right for place in range(tasks))
    ids = tuple(str(place) for place in range(tasks))
    return Cell(ids, rights, 0, (), seconds, price, None, None, None, 0, 0, ())


def test_break_even_is_where_both_come_to_a_right_answer_at_the_same_time() -> None:
    limit = break_even_errors(0.62, 1.0, 0.0)
    assert limit == pytest.approx(0.38)
    assert 0.62 / (1 - limit) == pytest.approx(1.0)
    limit = break_even_errors(1.0, 4.0, 0.1)
    assert 1.0 / (1 - limit) == pytest.approx(4.0 / 0.9)
    assert break_even_errors(5.0, 4.0, 0.1) == 0.0


def test_an_affordable_retry_makes_both_take_the_same() -> None:
    retry = affordable_retry(1.0, 0.3, 4.0, 0.1)
    assert retry > 0
    assert (1.0 + retry) / 0.7 == pytest.approx((4.0 + retry) / 0.9)
    assert affordable_retry(1.0, 0.9, 4.0, 0.1) < 0
    with pytest.raises(ValueError, match="more errors"):
        affordable_retry(1.0, 0.1, 4.0, 0.1)


def test_below_half_none_is_recommended() -> None:
    advice = advise("x", {"a": cell(4, 10, 1.0), "b": cell(3, 10, 0.1)})
    assert (advice.cheapest, advice.quickest) == (None, None)
    assert "none can be relied on" in advice.words
    assert "a, gets 40% right" in advice.words


def test_equals_are_told_apart_by_price_and_by_seconds() -> None:
    advice = advise("x", {"standard": cell(36, 40, 4.0, 1.0), "fast": cell(36, 40, 1.0, 6.0)})
    assert (advice.cheapest, advice.quickest) == ("standard", "fast")
    assert advice.words == (
        "standard (90% right); where somebody waits, fast (90% right), 4.0 times as quick at 6.0 times the price"
    )


def test_a_weaker_one_pays_up_to_the_retry_that_it_can_afford() -> None:
    advice = advise("x", {"fast": cell(36, 40, 4.0), "spark": cell(24, 40, 1.0)})
    assert advice.quickest == "fast"
    assert advice.sooner == {"spark": pytest.approx(affordable_retry(1.0, 0.4, 4.0, 0.1))}
    assert "spark pays where noticing a mistake and asking again costs under" in advice.words
    assert "40% wrong; break-even 78%" in advice.words


def test_a_weaker_one_beyond_its_break_even_does_not_pay() -> None:
    advice = advise("x", {"fast": cell(40, 40, 1.0), "spark": cell(10, 40, 0.6)})
    assert advice.sooner == {}
    assert "spark doesn't pay (75% wrong; break-even 40%)" in advice.words


def test_a_weaker_and_slower_one_is_called_so() -> None:
    assert "b is no quicker" in advise("x", {"a": cell(40, 40, 1.0), "b": cell(10, 40, 3.0)}).words


def test_few_tasks_leave_a_doubt() -> None:
    advice = advise("x", {"fast": cell(5, 6, 4.0), "spark": cell(4, 6, 1.0)})
    assert "few tasks" in advice.words


def test_too_few_answers_are_no_ground() -> None:
    assert advise("x", {"a": cell(2, 2, 1.0)}).words.startswith("too few answers")


def test_a_price_of_nothing_is_no_reason_to_divide_by_it() -> None:
    advice = advise("x", {"free": cell(40, 40, 2.0, 0.0), "paid": cell(40, 40, 1.0, 1.0)})
    assert (advice.cheapest, advice.quickest) == ("free", "paid")


def chain(steps: int, survived: int) -> Verdict:
    return Verdict(None if survived == steps else "x", 0, 0, steps, survived)


def test_a_mistake_rate_counts_the_steps_that_were_tried() -> None:
    found = survival([chain(1, 1), chain(2, 2), chain(3, 1), chain(5, 5), chain(8, 3)])
    assert found is not None
    assert found.mistake_rate == pytest.approx(2 / (1 + 2 + 2 + 5 + 4))
    assert found.observed == ((1, 1, 1), (2, 1, 1), (3, 1, 0), (5, 1, 1), (8, 1, 0))
    assert survival([Verdict()]) is None


def test_survival_and_what_speed_must_make_up_for() -> None:
    assert survives(0.1, 2) == pytest.approx(0.81)
    assert speed_needed(0.1, 0.0, 2) == pytest.approx(1 / 0.81)
    assert speed_needed(0.1, 0.1, 9) == pytest.approx(1.0)
    assert speed_needed(1.0, 0.1, 3) is None
