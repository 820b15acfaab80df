"""Prompts whose tokens' likelihoods are wanted, over a made-up engine."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from fake_engine import VOCAB, FakeEngine, chain
from test_loop import GREEDY, WITH_TOKENS, Rig, collect, run, tokens_of

from headway.modes import ModeName
from headway.runtime.api import Delta

LIKELY = -math.log(1 + (VOCAB - 1) * math.exp(-9.0))
UNLIKELY = LIKELY - 9.0


@pytest.fixture
def r() -> Iterator[Rig]:
    rig = Rig(FakeEngine())
    yield rig
    rig.loop.close()
    assert rig.pool.num_free == rig.pool.num_blocks, "blocks were leaked"
    rig.pool.check()


def scores_of(deltas: list[Delta]) -> list[float]:
    first, *others = deltas
    assert not any(delta.prompt_logprobs for delta in others)
    return [score.logprob for score in first.prompt_logprobs]


def test_each_token_but_the_first_is_scored_once(r: Rig) -> None:
    guessable = [5, *chain(5, 40)]
    prompt = [*guessable, 1, *chain(1, 30)]

    async def main() -> None:
        for _ in range(2):  # the second time it is all in the prefix cache
            deltas = await collect(r.submit(prompt, max_tokens=3, sampling=WITH_TOKENS, prompt_logprobs=2))
            expected = [LIKELY] * 40 + [UNLIKELY] + [LIKELY] * 30
            assert scores_of(deltas) == pytest.approx(expected, abs=1e-5)
            assert [score.token for score in deltas[0].prompt_logprobs] == prompt[1:]
            assert all(len(score.top) == 2 for score in deltas[0].prompt_logprobs)
            assert tokens_of(deltas) == chain(prompt[-1], 3)
            assert deltas[-1].usage is not None and deltas[-1].usage.cached_tokens == 0

    run(main())


def test_prompts_are_scored_beside_others(r: Rig) -> None:
    prompts = [[n, *chain(n, 20 + n)] for n in range(3)]

    async def main() -> None:
        fast = r.submit([9], mode=ModeName.FAST, max_tokens=30, sampling=WITH_TOKENS, ignore_eos=True)
        others = [r.submit(prompt, max_tokens=0, prompt_logprobs=0) for prompt in prompts]
        assert tokens_of(await collect(fast)) == chain(9, 30)
        for prompt, stream in zip(prompts, others, strict=True):
            assert scores_of(await collect(stream)) == pytest.approx([LIKELY] * (len(prompt) - 1), abs=1e-5)

    run(main())


def test_nothing_but_the_prompt(r: Rig) -> None:
    async def main() -> None:
        for prompt, mode in (([1, 2, 3], ModeName.STANDARD), ([4], ModeName.FAST)):
            (delta,) = await collect(r.submit(prompt, mode=mode, max_tokens=0, sampling=WITH_TOKENS, prompt_logprobs=1))
            assert (delta.text, delta.num_tokens, delta.logprobs, delta.finish_reason) == ("", 0, (), "length")
            assert len(delta.prompt_logprobs) == len(prompt) - 1
            assert delta.usage is not None
            assert (delta.usage.prompt_tokens, delta.usage.completion_tokens) == (len(prompt), 0)
        (delta,) = await collect(r.submit([1, 2, 3], max_tokens=0, sampling=GREEDY))
        assert (delta.text, delta.prompt_logprobs) == ("", ())

    run(main())


def test_a_token_that_would_end_the_output_is_no_reason_to_stop_where_none_was_wanted(r: Rig) -> None:
    async def main() -> None:
        (delta,) = await collect(r.submit([9, *chain(9, 2)], max_tokens=0, prompt_logprobs=0))
        assert delta.finish_reason == "length"

    run(main())
