"""The engine loop over a made-up engine: text comes out, rows and blocks are freed however a request ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from fake_engine import FakeEngine, chain, following

from headway.errors import RequestError
from headway.grammar.compiler import Compiler
from headway.grammar.constraint import json_schema
from headway.modes import Mode, ModeName, Modes
from headway.runtime.api import Delta, GenerateRequest
from headway.runtime.loop import EngineLoop
from headway.runtime.stream import Stream
from headway.sampling.params import SamplingParams
from headway.scheduler.blocks import BlockPool
from headway.scheduler.cost import CostModel
from headway.scheduler.limits import Limits
from headway.scheduler.scheduler import Scheduler
from headway.text.stream import TextStream

GREEDY = SamplingParams(temperature=0.0)
TOKENIZER: Any = SimpleNamespace(
    token_bytes=[bytes([i]) if i < 256 else b"" for i in range(300)], eos_ids=frozenset({following(following(following(9)))})
)
EOS = next(iter(TOKENIZER.eos_ids))
MODES = Modes(Mode(ModeName.STANDARD, 10.0, 4, 2, 2.0), Mode(ModeName.FAST, 25.0, 1, 0, 0.3))


class Seen:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.steps = 0
        self.seconds: list[float] = []
        self.ends: list[tuple[str, str, int]] = []
        self.requests: list[tuple[str, str]] = []

    def on_step(self, seconds: float, rows_by_mode: Any, tokens: int, error: float) -> None:
        self.steps += 1

    def on_finish(self, mode: str, outcome: str, usage: Any, timing: Any, ttft: float | None) -> None:
        self.ends.append((str(mode), outcome, usage.completion_tokens))

    def stepped(self, step: Any, ended: float, seconds: float) -> None:
        self.seconds.append(seconds)

    def ended(self, request: Any, outcome: str, usage: Any, timing: Any) -> None:
        self.requests.append((request.id, outcome))


class Rig:
    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.pool = BlockPool(engine.info.num_blocks, engine.info.block_size)
        scheduler = Scheduler(MODES, self.pool, CostModel([(1, 0.001), (64, 0.002)], 0.0, 0.0), Limits())
        self.loop = EngineLoop(engine, scheduler, MODES, TOKENIZER)
        self.seen = Seen()
        self.loop.start(self.seen, [self.seen], self.seen)
        self._made = 0

    def submit(self, prompt: list[int], *, mode: ModeName = ModeName.STANDARD, max_tokens: int = 8, **more: Any) -> Stream:
        self._made += 1
        return self.loop.submit(
            GenerateRequest(f"r{self._made}", prompt, max_tokens, mode, more.pop("sampling", GREEDY), **more)
        )


@pytest.fixture
def rig() -> Iterator[Callable[..., Rig]]:
    rigs: list[Rig] = []

    def make(**settings: Any) -> Rig:
        rigs.append(Rig(FakeEngine(**settings)))
        return rigs[-1]

    yield make
    for r in rigs:
        r.loop.close()
        assert r.pool.num_free == r.pool.num_blocks, "blocks were leaked"
        r.pool.check()


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 20))


async def collect(stream: Stream) -> list[Delta]:
    return [delta async for delta in stream]


def tokens_of(deltas: list[Delta]) -> list[int]:
    return [lp.token for d in deltas for lp in d.logprobs]


WITH_TOKENS = SamplingParams(temperature=0.0, logprobs=0)


def test_it_generates_and_says_what_was_used(rig: Callable[..., Rig]) -> None:
    r = rig()

    async def main() -> list[Delta]:
        return await collect(r.submit([1, 2, 5], max_tokens=6, sampling=WITH_TOKENS))

    assert r.loop.load()["cost_error_p95"] == 0.0
    deltas = run(main())
    assert tokens_of(deltas) == chain(5, 6)
    load = r.loop.load()
    assert 0 < load["cost_error_median"] <= load["cost_error_p95"]
    last = deltas[-1]
    assert last.finish_reason == "length"
    assert last.usage is not None
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (3, 6)
    assert last.usage.engine_seconds > 0
    assert last.timing is not None
    assert last.timing.total >= last.timing.completion >= 0
    assert r.seen.ends == [("standard", "length", 6)]
    assert r.seen.requests == [("r1", "length")]
    assert len(r.seen.seconds) == r.seen.steps
    assert min(r.seen.seconds) > 0.0


def test_many_at_once_each_get_their_own(rig: Callable[..., Rig]) -> None:
    r = rig()

    async def main() -> list[list[Delta]]:
        streams = [r.submit([i + 20], max_tokens=10, sampling=WITH_TOKENS) for i in range(6)]
        return list(await asyncio.gather(*map(collect, streams)))

    for i, deltas in enumerate(run(main())):
        expected = chain(i + 20, 10)
        if EOS in expected:
            expected = expected[: expected.index(EOS) + 1]
        assert tokens_of(deltas) == expected
    assert max(r.engine.rows_seen) <= 4, "no more than max_rows at once"


def test_eos_ends_it_unless_ignored_or_too_early(rig: Callable[..., Rig]) -> None:
    r = rig()

    async def main() -> list[list[Delta]]:
        asked = [{}, {"ignore_eos": True}, {"min_tokens": 5}]
        return [await collect(r.submit([9], max_tokens=8, sampling=WITH_TOKENS, **a)) for a in asked]

    plain, ignored, late = run(main())
    assert (plain[-1].finish_reason, len(tokens_of(plain))) == ("stop", 3)
    assert (ignored[-1].finish_reason, len(tokens_of(ignored))) == ("length", 8)
    assert EOS not in tokens_of(late)[:5]


def test_a_stop_string_over_tokens_ends_it_and_nothing_later_is_billed(rig: Callable[..., Rig]) -> None:
    r = rig()
    # Plain letters need no decoding: find a start whose chain stays in ASCII for three tokens.
    start = next(t for t in range(256) if all(32 < c < 127 for c in chain(t, 3)) and EOS not in chain(t, 5))
    a, b, c = chain(start, 3)

    async def main() -> list[Delta]:
        return await collect(r.submit([start], max_tokens=50, stop=(chr(b) + chr(c),), sampling=WITH_TOKENS))

    deltas = run(main())
    assert "".join(d.text for d in deltas) == chr(a)
    assert deltas[-1].finish_reason == "stop"
    assert deltas[-1].stop_string == chr(b) + chr(c)
    assert deltas[-1].usage is not None
    assert deltas[-1].usage.completion_tokens == 3
    assert len(tokens_of(deltas)) == 3


GRAMMARS = Compiler(TOKENIZER.token_bytes, TOKENIZER.eos_ids, lambda text: list(text.encode()))


@pytest.mark.parametrize("ignore_eos", [False, True])
def test_a_constraint_holds_the_output_and_ends_it(rig: Callable[..., Rig], ignore_eos: bool) -> None:
    """The made-up engine would never write such a text."""
    r = rig()
    grammar = GRAMMARS.compile(json_schema({"const": "abcdefghij"}))

    async def main() -> list[list[Delta]]:
        asked: dict[str, Any] = {"constraint": grammar, "sampling": WITH_TOKENS, "ignore_eos": ignore_eos, "min_tokens": 15}
        bounds = [r.submit([1, 2, 5], max_tokens=n, **asked) for n in (20, 12, 11)]
        free = r.submit([1, 2, 5], max_tokens=6, sampling=WITH_TOKENS)
        return [await collect(stream) for stream in (*bounds, free)]

    whole, exact, cut, free = run(main())
    text = list(b'"abcdefghij"')
    assert (tokens_of(whole), whole[-1].finish_reason) == (text, "stop")
    assert (tokens_of(exact), exact[-1].finish_reason) == (text, "stop")
    assert (tokens_of(cut), cut[-1].finish_reason) == (text[:11], "length")
    assert "".join(delta.text for delta in whole) == '"abcdefghij"'
    assert tokens_of(free) == chain(5, 6)
    assert whole[-1].usage is not None and whole[-1].usage.accepted_tokens > 0
    assert r.engine.num_steps < len(text)  # forced tokens come several at a time


def test_a_constraint_that_fails_ends_its_own_request_alone(rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    r = rig()
    grammar = GRAMMARS.compile(json_schema({"type": "string"}))
    broken = grammar.start()
    broken.accept(299)  # does not fit
    monkeypatch.setattr(grammar, "start", lambda: broken)

    async def main() -> tuple[list[Delta], list[Delta]]:
        bad = r.submit([1, 2, 5], max_tokens=20, constraint=grammar)
        good = r.submit([1, 2, 5], max_tokens=6, sampling=WITH_TOKENS)
        return await collect(bad), await collect(good)

    bad, good = run(main())
    assert bad[-1].finish_reason == "error" and bad[-1].error
    assert tokens_of(good) == chain(5, 6)


def test_a_full_house_is_refused_with_a_time_to_wait(rig: Callable[..., Rig]) -> None:
    r = rig(seconds=0.002)

    async def main() -> None:
        streams = [r.submit([1], max_tokens=100, ignore_eos=True) for _ in range(6)]
        with pytest.raises(RequestError) as refused:
            r.submit([1], max_tokens=100)
        assert refused.value.status == 429
        assert refused.value.retry_after is not None
        assert refused.value.retry_after > 0
        fast = r.submit([1], mode=ModeName.FAST, max_tokens=5, ignore_eos=True)
        assert (await collect(fast))[-1].finish_reason == "length"
        for stream in streams:
            stream.cancel()
        assert [(await collect(s))[-1].finish_reason for s in streams] == ["cancelled"] * 6
        assert (await collect(r.submit([1], max_tokens=2)))[-1].finish_reason == "length"

    run(main())


def test_a_prompt_without_room_is_refused_and_max_tokens_is_cut_to_the_room(rig: Callable[..., Rig]) -> None:
    r = rig()

    async def main() -> None:
        with pytest.raises(RequestError, match=r"128") as refused:
            r.submit([1] * 128)
        assert (refused.value.status, refused.value.code) == (400, "context_length_exceeded")
        deltas = await collect(r.submit([1] * 120, max_tokens=10**9, ignore_eos=True))
        assert deltas[-1].usage is not None
        assert deltas[-1].usage.completion_tokens == 8

    run(main())


def test_a_pace_beyond_fast_is_refused_with_the_most_there_is(rig: Callable[..., Rig]) -> None:
    r = rig()

    async def main() -> None:
        with pytest.raises(RequestError, match="the most is 25"):
            r.submit([1], pace=26.0)
        deltas = await collect(r.submit([1], pace=20.0))
        assert deltas[-1].usage is not None
        assert deltas[-1].usage.pace == 20.0

    run(main())


def test_cancelling_in_mid_step_frees_the_row_when_the_step_is_over(rig: Callable[..., Rig]) -> None:
    r = rig()
    r.engine.gate = threading.Event()

    async def main() -> None:
        stream = r.submit([1], max_tokens=100)
        while not r.engine.num_steps:
            await asyncio.sleep(0.001)
        stream.cancel()
        stream.cancel()
        assert r.pool.num_free < r.pool.num_blocks, "the running step still writes into its blocks"
        assert r.engine.gate is not None
        r.engine.gate.set()
        deltas = await collect(stream)
        assert [d.finish_reason for d in deltas] == ["cancelled"]
        stream.cancel()

    run(main())
    assert r.seen.ends == [("standard", "cancelled", 0)]
    assert r.loop.load()["running_standard"] == 0


def test_a_failed_step_ends_its_requests_and_the_server_lives_on(rig: Callable[..., Rig]) -> None:
    r = rig()
    r.engine.fail_at = 3

    async def main() -> None:
        deltas = await collect(r.submit([1], max_tokens=100, ignore_eos=True))
        assert deltas[-1].finish_reason == "error"
        assert deltas[-1].error
        r.engine.fail_at = None
        assert (await collect(r.submit([1], max_tokens=2)))[-1].finish_reason == "length"
        assert r.loop.alive

    run(main())


def test_a_step_that_fails_at_its_start_takes_nothing_from_those_before(rig: Callable[..., Rig]) -> None:
    r = rig()
    r.engine.fail_start_at = 4

    async def main() -> None:
        done = r.submit([1], max_tokens=3, ignore_eos=True, sampling=WITH_TOKENS)
        struck = r.submit([2], max_tokens=100, ignore_eos=True, sampling=WITH_TOKENS)
        whole = await collect(done)
        assert whole[-1].finish_reason == "length"
        assert tokens_of(whole) == chain(1, 3)
        broken = await collect(struck)
        assert broken[-1].finish_reason == "error"

    r.loop._scheduler.speculation = False  # one token a step
    run(main())


def test_text_that_can_not_be_made_ends_its_own_request_alone(rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    r = rig()

    class Broken(TextStream):
        def push(self, token: int, *, heed_stops: bool = True) -> str:
            raise IndexError(token)

    async def main() -> None:
        good = r.submit([1], max_tokens=6, ignore_eos=True, sampling=WITH_TOKENS)
        monkeypatch.setattr("headway.runtime.loop.TextStream", Broken)
        bad = r.submit([2], max_tokens=6, ignore_eos=True)
        assert (await collect(bad))[-1].finish_reason == "error"
        assert tokens_of(await collect(good)) == chain(1, 6)

    run(main())


def test_an_engine_that_keeps_failing_is_given_up_and_says_so(rig: Callable[..., Rig]) -> None:
    r = rig()
    r.engine.fail_at = 1

    async def main() -> None:
        for _ in range(3):
            assert (await collect(r.submit([1])))[-1].finish_reason == "error"
        while r.loop.alive:
            await asyncio.sleep(0.001)
        with pytest.raises(RequestError) as refused:
            r.submit([1])
        assert refused.value.status == 503

    run(main())


def test_shutting_down_refuses_new_requests_lets_old_ones_finish_and_ends_the_rest(rig: Callable[..., Rig]) -> None:
    r = rig(seconds=0.001)

    async def main() -> None:
        short = r.submit([1], max_tokens=3, ignore_eos=True)
        long = r.submit([1], max_tokens=120, ignore_eos=True)
        r.loop.stop_accepting()
        with pytest.raises(RequestError) as refused:
            r.submit([1])
        assert refused.value.status == 503
        assert (await collect(short))[-1].finish_reason == "length"
        await asyncio.to_thread(r.loop.close)
        assert (await collect(long))[-1].finish_reason == "cancelled"
        assert not r.loop.alive

    run(main())


@pytest.mark.parametrize(("block_size", "cached"), [(4, 12), (8, 12), (16, 12), (32, 12), (64, 0)])
def test_the_beginning_of_a_block_is_copied(rig: Callable[..., Rig], block_size: int, cached: int) -> None:
    r = rig(block_size=block_size, num_blocks=256 // block_size)
    head = list(range(40, 52))

    async def ask(tail: list[int], mode: ModeName = ModeName.STANDARD) -> list[Delta]:
        return await collect(r.submit([*head, *tail], max_tokens=60, ignore_eos=True, mode=mode, sampling=WITH_TOKENS))

    async def main() -> None:
        first = await ask([9, 8, 7, 6, 5, 4, 3, 1])
        second = await ask([5, 6, 7, 1], ModeName.FAST)
        assert first[-1].usage is not None
        assert second[-1].usage is not None
        assert (first[-1].usage.cached_tokens, second[-1].usage.cached_tokens) == (0, cached)
        assert tokens_of(first) == tokens_of(second) == chain(1, 60)

    run(main())
    assert r.engine.num_copied == (cached % block_size if cached else 0)


def test_a_shared_prefix_is_computed_once(rig: Callable[..., Rig]) -> None:
    r = rig()
    prompt = list(range(40, 60))

    async def main() -> None:
        first = await collect(r.submit([*prompt, 1], sampling=WITH_TOKENS))
        second = await collect(r.submit([*prompt, 1], mode=ModeName.FAST, sampling=WITH_TOKENS))
        assert first[-1].usage is not None
        assert second[-1].usage is not None
        assert (first[-1].usage.cached_tokens, second[-1].usage.cached_tokens) == (0, 20)
        assert tokens_of(first) == tokens_of(second)

    run(main())


def test_a_first_token_that_is_held_comes_with_the_next_one(rig: Callable[..., Rig]) -> None:
    r = rig()
    scheduler = r.loop._scheduler
    scheduler.limits = replace(scheduler.limits, hold=0.0)  # every first token is

    async def main() -> None:
        deltas = await collect(r.submit([1, 2, 5], mode=ModeName.FAST, max_tokens=6, sampling=WITH_TOKENS, ignore_eos=True))
        assert deltas[0].num_tokens == 2
        assert tokens_of(deltas) == chain(5, 6)
        assert deltas[-1].usage is not None and deltas[-1].usage.completion_tokens == 6
        for last in (5, 9):  # by its length, and by the end-of-sequence token that comes third
            deltas = await collect(r.submit([last], max_tokens=1 if last == 5 else 8, sampling=WITH_TOKENS))
            assert tokens_of(deltas) == chain(last, 1 if last == 5 else 3)

    run(main())


def test_a_first_token_goes_out_before_the_next_step_begins(rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    r = rig()
    delivered: list[list[int]] = []
    start = r.engine.start

    def watched(*arguments: Any) -> None:
        delivered.append([live.num_delivered for live in r.loop._live.values()])
        start(*arguments)

    monkeypatch.setattr(r.engine, "start", watched)
    run(_collected(r.submit, [1, 2, 5]))
    assert delivered[:2] == [[0], [1]]


async def _collected(submit: Callable[..., Stream], prompt: list[int]) -> list[Delta]:
    return await collect(submit(prompt, max_tokens=4))
