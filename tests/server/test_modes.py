from __future__ import annotations

from dataclasses import replace

import pytest

from headway.errors import RequestError, UsageError
from headway.modes import ModeName
from headway.server.models import Models
from headway.server.modes import Speed, resolve_messages_speed, resolve_speed

from .scripted import World

STANDARD, FAST, SPARK = ModeName
WORLD = World(spark=True)
MODELS = Models(WORLD.models)


def resolve(model: str = "m", tier: str | None = None, tpot_ms: str | None = None) -> Speed:
    return resolve_speed(MODELS.find(model), tier=tier, tpot_ms=tpot_ms)


@pytest.mark.parametrize("tier", [None, "auto", "default", "flex", "scale"])
def test_standard_words_mean_standard(tier: str | None) -> None:
    assert resolve(tier=tier) == Speed(STANDARD, None, "default")


@pytest.mark.parametrize("tier", ["priority", "fast"])
def test_fast_words_mean_fast_and_are_echoed(tier: str) -> None:
    assert resolve(tier=tier) == Speed(FAST, None, tier)
    assert resolve("m-fast", tier) == Speed(FAST, None, tier)


@pytest.mark.parametrize("tier", [None, "auto", "default", "flex", "scale"])
def test_the_alias_wins_over_a_standard_word(tier: str | None) -> None:
    assert resolve("m-fast", tier) == Speed(FAST, None, "priority")


@pytest.mark.parametrize("tier", ["ultrafast", "slow", "", "FAST", " fast"])
def test_other_words_are_refused_with_the_list(tier: str) -> None:
    with pytest.raises(RequestError, match="auto, default, flex, scale, priority, fast") as caught:
        resolve(tier=tier)
    assert (caught.value.status, caught.value.param) == (400, "service_tier")
    assert ("not available here" in caught.value.message) == (tier == "ultrafast")


@pytest.mark.parametrize("model", ["x", "", "m-FAST", "m-fast-fast", "-fast", "M", "s-fast"])
def test_an_unknown_model_is_not_found(model: str) -> None:
    with pytest.raises(RequestError, match="Available: m, m-fast, s") as caught:
        resolve(model)
    assert (caught.value.status, caught.value.code, caught.value.param) == (404, "model_not_found", "model")


@pytest.mark.parametrize(
    ("tpot_ms", "mode", "pace"),
    [("100", STANDARD, 10.0), ("50", STANDARD, 20.0), ("49", FAST, 1000 / 49), ("20", FAST, 50.0), ("1e3", STANDARD, 1.0)],
)
def test_a_pace_picks_the_mode_that_can_keep_it(tpot_ms: str, mode: ModeName, pace: float) -> None:
    speed = resolve(tpot_ms=tpot_ms)
    assert (speed.mode, speed.pace) == (mode, pytest.approx(pace))
    assert speed.tier == ("priority" if mode is FAST else "default")


def test_a_slow_pace_does_not_take_fast_away_from_who_asked_for_it() -> None:
    assert resolve(tier="fast", tpot_ms="100") == Speed(FAST, 10.0, "fast")


def test_more_than_the_fastest_pace_is_refused_with_the_most_there_is() -> None:
    with pytest.raises(RequestError, match=r"the most this server promises of m is 50 tokens/s \(20 ms per token\)") as caught:
        resolve(tpot_ms="19.9")
    assert caught.value.status == 400


@pytest.mark.parametrize("tpot_ms", ["", "x", "0", "-5", "nan", "inf", "1e-400", "5,0"])
def test_a_pace_that_is_no_positive_number_is_refused(tpot_ms: str) -> None:
    with pytest.raises(RequestError) as caught:
        resolve(tpot_ms=tpot_ms)
    assert caught.value.param == "x-slo-tpot-ms"


def test_a_promise_of_the_first_token_leaves_the_mode_as_it_is() -> None:
    for tier, mode in ((None, STANDARD), ("fast", FAST)):
        speed = resolve_speed(MODELS.find("m"), tier=tier, tpot_ms=None, ttft_ms="250")
        assert (speed.mode, speed.pace, speed.ttft) == (mode, None, 0.25)
        assert speed.explicit
    assert not resolve(tier="fast").explicit


@pytest.mark.parametrize("ttft_ms", ["", "x", "0", "-5", "nan", "inf"])
def test_a_first_token_in_no_positive_time_is_refused(ttft_ms: str) -> None:
    with pytest.raises(RequestError) as caught:
        resolve_speed(MODELS.find("m"), tier=None, tpot_ms=None, ttft_ms=ttft_ms)
    assert (caught.value.status, caught.value.param) == (400, "x-slo-ttft-ms")


@pytest.mark.parametrize("header", ["tpot_ms", "ttft_ms"])
@pytest.mark.parametrize("value", ["0", "-1", "5e-324", "nan", "inf", "60001", "soon", ""])
def test_what_is_no_time_is_refused(header: str, value: str) -> None:
    with pytest.raises(RequestError, match="a number of milliseconds above 0") as caught:
        resolve_speed(MODELS.find("m"), tier=None, **{"tpot_ms": None, header: value})
    assert caught.value.status == 400


@pytest.mark.parametrize("tier", [None, "auto", "default", "flex", "scale", "priority", "fast"])
def test_a_spark_has_one_speed_whatever_word_is_sent(tier: str | None) -> None:
    assert resolve("s", tier) == Speed(SPARK, None, "default")


def test_an_unknown_word_is_refused_of_a_spark_too() -> None:
    with pytest.raises(RequestError, match="service_tier"):
        resolve("s", "slow")


@pytest.mark.parametrize(("tpot_ms", "pace"), [("5", 200.0), ("5.0", 200.0), ("100", 10.0)])
def test_a_spark_promises_up_to_its_own_pace(tpot_ms: str, pace: float) -> None:
    speed = resolve("s", tpot_ms=tpot_ms)
    assert speed == Speed(SPARK, pace, "default") and speed.explicit


def test_more_than_a_spark_s_pace_is_refused_with_the_most_there_is() -> None:
    with pytest.raises(RequestError, match=r"of s is 200 tokens/s \(5 ms per token\)"):
        resolve("s", tpot_ms="4.9")


def test_a_model_without_fast_refuses_that_word_of_anthropic_s() -> None:
    spark = MODELS.find("s")
    for word in (None, "standard"):
        assert resolve_messages_speed(spark, speed=word, tpot_ms=None) == Speed(SPARK, None, "default")
    with pytest.raises(RequestError, match=r"'s' does not support the `speed` parameter.") as caught:
        resolve_messages_speed(spark, speed="fast", tpot_ms=None)
    assert (caught.value.status, caught.value.param) == (400, "speed")


def test_two_models_of_one_name_are_refused_before_anything_is_served() -> None:
    for model in ("m", "m-fast"):
        with pytest.raises(UsageError, match=f"can't both be {model} .* model.spark_id"):
            Models([WORLD.served, replace(WORLD.spark, id=model)])
