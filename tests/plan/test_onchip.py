"""Speeds on chips that keep a model in their own memory, and where models fit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headway.calibrate.residency import Residency
from headway.errors import UsageError
from headway.plan.chip import chip
from headway.plan.known import known_shape
from headway.plan.onchip import check, chips_needed, place, published, rule_of, tokens_per_second
from headway.plan.quantized import named_bits
from headway.plan.residency import as_json, as_tables, fits
from headway.plan.shape import ModelShape


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("WSE-3", "llama-3.1-8b"),
        ("WSE-3", "llama-3.1-70b"),
        ("WSE-3", "gpt-oss-120b"),
        ("Groq LPU", "llama-3.1-8b"),
        ("Groq LPU", "llama-3.1-70b"),
        ("Groq LPU", "gpt-oss-120b"),
    ],
)
def test_a_published_speed_is_predicted_within_a_quarter_by_a_fit_that_never_saw_it(name: str, model: str) -> None:
    one = next(each for each in check(name) if each.published.model == model)
    assert abs(one.error) <= 0.25


def test_every_published_speed_has_a_source_and_a_rule() -> None:
    assert all(one.source and one.date and one.tokens_per_second > 0 for one in published())
    assert {one.chip for one in published()} == {"WSE-3", "Groq LPU"}


def test_a_roofline_overshoots_a_hundredfold() -> None:
    wafer, shape = chip("WSE-3"), known_shape("llama-3.1-8b")
    sram = wafer.on_chip
    assert sram is not None and sram.bandwidth is not None
    assert sram.bandwidth / shape.weight_bytes > 100 * tokens_per_second(wafer, shape)


def test_more_layers_and_more_chips_take_longer() -> None:
    rule, small, large = rule_of("Groq LPU"), known_shape("llama-3.1-8b"), known_shape("llama-3.1-70b")
    lpu = chip("LPU")
    assert all(seconds > 0 for seconds in rule.terms.values())
    assert place(lpu, large).chips > 8 * place(lpu, small).chips
    assert tokens_per_second(lpu, large) < tokens_per_second(lpu, small)


def test_what_a_wafer_and_an_lpu_hold() -> None:
    """The issue's own sums: 44 GB are a 20B model in 16 bits, 40B in 8; an LPU's 230 MB take hundreds of chips for a 70B."""
    assert chips_needed(chip("WSE-3"), 20e9 * 2) == 1
    assert chips_needed(chip("WSE-3"), 40e9) == 1
    assert chips_needed(chip("WSE-3"), 23e9 * 2) == 2
    assert place(chip("LPU"), in_bits("llama-3.1-70b", "int8")).chips > 300
    assert place(chip("WSE-3"), known_shape("llama-3.1-70b")).chips == 4  # as Cerebras says


def test_drafts_are_refused_where_nothing_is_known_of_them() -> None:
    assert tokens_per_second(chip("WSE-3"), known_shape("llama-3.1-70b"), drafts=True) > 1500
    with pytest.raises(UsageError, match="speculation"):
        tokens_per_second(chip("LPU"), known_shape("llama-3.1-70b"), drafts=True)
    with pytest.raises(UsageError, match="known are WSE-3, Groq LPU"):
        rule_of("H100 SXM")


def test_a_model_far_smaller_than_any_published_gets_no_extrapolated_speed() -> None:
    wafer, tiny = chip("WSE-3"), known_shape("qwen3-0.6b")
    fastest = max(tokens_per_second(wafer, known_shape(name)) for name in ("llama-3.1-8b", "gpt-oss-120b"))
    assert tokens_per_second(wafer, tiny) == pytest.approx(fastest, rel=0.01)


def test_where_a_model_fits() -> None:
    asked: list[int] = []

    def measure(sizes: Sequence[int]) -> list[Residency]:
        asked.extend(sizes)
        return [Residency(size, 100.0, 20.0) for size in sizes]

    shape = in_bits("qwen3-0.6b", "int4")
    found = fits(shape, measure)
    on_chip = {one.chip: one for one in found.on_chip}
    assert on_chip["WSE-3"].chips == 1 and on_chip["WSE-3"].tokens_per_second is not None
    assert on_chip["H100 SXM"].chips == -(-int(shape.weight_bytes) // 50_000_000)
    assert on_chip["H100 SXM"].tokens_per_second is None
    assert asked == [int(shape.weight_bytes)]
    assert found.here.stays and found.here.at_most == pytest.approx(100e9 / shape.dense_bytes)
    assert {"WSE-3", "Groq LPU"}.isdisjoint(one.chip for one in found.in_memory)
    assert as_json(found)["accuracy"]["WSE-3"][0]["model"] == "llama-3.1-8b"
    assert as_tables(found).renderables


def test_a_model_too_large_for_a_chip_takes_more_of_them_or_is_too_large() -> None:
    found = fits(known_shape("llama-3.1-70b"), lambda sizes: pytest.fail("so much isn't read"))
    chips = {one.chip: one.chips for one in found.in_memory}
    assert chips["H200 SXM"] == 2 and chips["H100 SXM"] == 2 and chips["B300 SXM"] == 1
    assert chips["RTX 4090"] is None
    assert found.here.stays is None


def in_bits(model: str, precision: str) -> ModelShape:
    shape = known_shape(model)
    return shape.with_bits(named_bits(precision, has_experts=shape.experts is not None))
