"""Prices: exact, by the mode that was served."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.config import PricesSettings, Settings
from headway.ledger.prices import NANO, Prices
from headway.modes import ModeName

FAST, STANDARD = ModeName.FAST, ModeName.STANDARD
tokens = st.integers(0, 10**7)
money = st.integers(0, 10**6).map(lambda mills: mills / 1000)


def prices(**fields: Any) -> Prices:
    multiplier = fields.pop("multiplier", {})
    return Prices(Settings.model_validate({"prices": {**fields, "multiplier": multiplier}}).prices)


def test_by_default_nothing_costs_anything() -> None:
    assert Prices(PricesSettings()).of(FAST, 10**6, 0, 10**6) == 0


def test_a_million_tokens_cost_what_the_settings_say() -> None:
    own = prices(input=0.15, cached_input=0.015, output=0.6)
    assert own.of(STANDARD, 10**6, 0, 0) == 15 * NANO // 100
    assert own.of(STANDARD, 10**6, 10**6, 0) == 15 * NANO // 1000
    assert own.of(STANDARD, 0, 0, 10**6) == 6 * NANO // 10
    assert own.of(STANDARD, 1, 0, 1) == 150 + 600


def test_fast_costs_six_times_as_much_cached_input_included() -> None:
    own = prices(input=0.15, cached_input=0.015, output=0.6)
    for asked in ((1000, 0, 0), (1000, 1000, 0), (0, 0, 1000), (1000, 300, 70)):
        assert own.of(FAST, *asked) == 6 * own.of(STANDARD, *asked)
    assert prices(input=1.0, multiplier={"fast": 2.5}).of(FAST, 2, 0, 0) == 5000


def test_cached_input_costs_what_input_does_unless_said_otherwise() -> None:
    assert prices(input=0.5).of(STANDARD, 100, 60, 0) == prices(input=0.5).of(STANDARD, 100, 0, 0)
    assert prices(input=0.5, cached_input=0.0).of(STANDARD, 100, 100, 0) == 0


@given(money, money, money, st.integers(0, 100), tokens, tokens, st.data())
def test_the_price_is_the_sum_of_its_parts_to_half_a_billionth(
    of_input: float, of_cached: float, of_output: float, times: int, prompt: int, output: int, data: st.DataObject
) -> None:
    cached = data.draw(st.integers(0, prompt))
    own = prices(input=of_input, cached_input=of_cached, output=of_output, multiplier={"fast": times / 8})
    each = [Fraction(str(price)) * 1000 for price in (of_input, of_cached, of_output)]
    exact = Fraction(times, 8) * ((prompt - cached) * each[0] + cached * each[1] + output * each[2])
    assert abs(own.of(FAST, prompt, cached, output) - exact) <= Fraction(1, 2)


@given(st.lists(st.tuples(tokens, tokens), max_size=20))
def test_sums_of_rows_are_the_price_of_the_sum(rows: list[tuple[int, int]]) -> None:
    own = prices(input=0.1, output=0.3)
    total = own.of(STANDARD, sum(prompt for prompt, _ in rows), 0, sum(output for _, output in rows))
    assert sum(own.of(STANDARD, prompt, 0, output) for prompt, output in rows) == total


@pytest.mark.parametrize("field", ["input", "cached_input", "output"])
@given(prompt=tokens, cached=tokens, output=tokens, more=st.integers(1, 1000))
def test_more_never_costs_less(field: str, prompt: int, cached: int, output: int, more: int) -> None:
    cheap = {"input": 0.2, "cached_input": 0.1, "output": 0.3}
    dear = {**cheap, field: cheap[field] + more / 100}
    asked = (prompt + cached, cached, output)
    assert prices(**dear).of(FAST, *asked) >= prices(**cheap).of(FAST, *asked)
    assert prices(**cheap).of(FAST, asked[0] + more, cached, output + more) > prices(**cheap).of(FAST, *asked)
