"""Prices of targets, from a file and from the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.compare.target import Price
from headway.compare.targets.name import parse_target
from headway.compare.targets.prices import PriceList, cost
from headway.config import PricesSettings
from headway.errors import UsageError

from ..records import failure, success

OPENAI = parse_target("openai:gpt@priority")


def listed(tmp_path: Path, text: str) -> PriceList:
    (tmp_path / "prices.toml").write_text(text)
    return PriceList.of(PricesSettings(), tmp_path / "prices.toml")


def test_a_file_names_targets(tmp_path: Path) -> None:
    prices = listed(tmp_path, 'currency = "EUR"\n["openai:gpt@priority"]\ninput = 5\noutput = 25.5\ncached_input = 0.5\n')
    assert prices.currency == "EUR"
    assert prices.of_target(OPENAI) == Price(5.0, 25.5, 0.5)
    assert prices.of_target(parse_target("openai:gpt")) is None
    assert prices.of_target(parse_target("fast")) is None


def test_headways_modes_cost_what_the_settings_say() -> None:
    settings = PricesSettings.model_validate({"input": 1, "output": 2, "multiplier": {"fast": 6, "spark": 0.5}})
    prices = PriceList.of(settings)
    assert prices.of_target(parse_target("standard")) == Price(1.0, 2.0)
    assert prices.of_target(parse_target("fast")) == Price(6.0, 12.0)
    assert prices.of_target(parse_target("spark")) == Price(0.5, 1.0)
    assert prices.of_target(OPENAI) is None


def test_cached_input_has_its_own_price() -> None:
    record = success(0.0, 1.0, 0.1, 10)
    record.prompt_tokens, record.cached_tokens = 1000, 600
    assert cost(Price(10.0, 100.0, 1.0), [record, failure(0.0, 1.0)]) == pytest.approx((4000 + 600 + 1000) / 1e6)
    assert cost(Price(10.0, 100.0), [record]) == pytest.approx((10_000 + 1000) / 1e6)
    assert cost(Price(10.0, 100.0), [failure(0.0, 1.0)]) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('["openai:gpt"]\ninput = 5\n', "output"),
        ('["openai:gpt"]\ninput = -5\noutput = 1\n', "input"),
        ('["openai:gpt"]\ninput = 5\noutput = 1\ncache = 1\n', "cache"),
        ('curency = "EUR"\n', "curency"),
        ("[openai:gpt]\n", "TOML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        listed(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert "prices.toml" in str(caught.value)
