"""The comparison itself, on a server that runs: standard alone and standard beside one fast stream, in turn; then the spark,
beside standard and alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headway.compare import same_text
from headway.compare.client import Client
from headway.compare.endpoint import base_url, engine_busy_seconds, find_maker, find_model, find_spark
from headway.compare.load import ClosedLoop
from headway.compare.progress import Reporter, Silent, sleep
from headway.compare.prompts import SAME_TEXT_PROMPTS, numbered
from headway.compare.record import RequestRecord
from headway.compare.request import RequestMaker, StreamRequest
from headway.compare.result import SPARK_PAIRS, CompareResult, Phase, Schedule, SparkResult, WindowResult
from headway.compare.stats import (
    Summary,
    Window,
    peak_tokens_per_second,
    ratio,
    summarize,
    total_tokens_per_second,
    within,
)
from headway.errors import HeadwayError
from headway.modes import ModeName

GRACE_SECONDS = 20.0  # for the fast request in flight when its window ends
SAME_TEXT_TOKENS = 48
SAME_TEXT_SECONDS = 15.0  # a guess, for the progress bar alone
SAME_TEXT_SETTINGS = 4  # standard and fast, each under load and alone
LOAD_TEMPERATURE = 0.7


async def compare(
    url: str,
    model: str | None = None,
    *,
    streams: int = 32,
    seconds: float = 60.0,
    max_tokens: int = 96,
    reporter: Reporter | None = None,
) -> CompareResult:
    """Measure standard and fast on an OpenAI-compatible server.

    model: None = the first one that the server lists. streams: standard requests kept going at once. seconds: of measured
    windows, half of them with one fast stream beside. max_tokens: output length of every request of the load.
    Raises HeadwayError if the server doesn't answer, isn't one, lacks the model, or never serves a request.
    """
    schedule = Schedule.of(streams, seconds, max_tokens=max_tokens)
    async with Client(base_url(url)) as client:
        model = await find_model(client, model)
        maker = await find_maker(client, model)
        spark = await find_spark(client)
        comparison = _Comparison(client, maker, schedule, reporter or Silent(), spark if spark != model else None)
        return await comparison.run()


def arrivals(maker: RequestMaker, mode: ModeName, max_tokens: int) -> Iterator[StreamRequest]:
    """Load without end."""
    for prompt in numbered(f"{mode.capitalize()} task"):
        yield maker.chat(prompt, mode, max_tokens, temperature=LOAD_TEMPERATURE)


class _Spark:
    """What is measured of a spark."""

    def __init__(
        self, client: Client, maker: RequestMaker, of_model: RequestMaker, schedule: Schedule, reporter: Reporter
    ) -> None:
        self._client = client
        self._model = maker.model
        self._schedule = schedule
        self._reporter = reporter
        self._shared = ClosedLoop(client, arrivals(maker, ModeName.SPARK, schedule.max_tokens))
        self._alone = ClosedLoop(client, arrivals(maker, ModeName.SPARK, schedule.max_tokens))
        self._fast_alone = ClosedLoop(client, arrivals(of_model, ModeName.FAST, schedule.max_tokens))
        self._standard: list[RequestRecord] = []

    async def beside(self, standard: ClosedLoop[StreamRequest]) -> None:
        """One stream beside the standard ones, which are running."""
        self._reporter.phase("standard beside one stream of the spark")
        self._shared.start(1)
        await sleep(self._schedule.settle, self._reporter)
        start = self._client.clock()
        await sleep(self._schedule.window, self._reporter)
        await self._shared.stop(GRACE_SECONDS)
        self._standard = within(standard.records, [Window(start, self._client.clock())])

    async def alone(self) -> None:
        """In turn with fast, nobody else being there."""
        for pair in range(1, SPARK_PAIRS + 1):
            for name, loop in (("fast", self._fast_alone), ("spark", self._alone)):
                self._reporter.phase(f"{name} with the device to itself ({pair} of {SPARK_PAIRS})")
                loop.start(1)
                await sleep(self._schedule.window / 2, self._reporter)
                await loop.stop(GRACE_SECONDS)

    def result(self) -> SparkResult:
        def of(loop: ClosedLoop[StreamRequest]) -> Summary:
            return summarize([record for record in loop.records if record.outcome != "cut"])

        return SparkResult(self._model, of(self._alone), of(self._fast_alone), of(self._shared), summarize(self._standard))


class _Comparison:
    def __init__(self, client: Client, maker: RequestMaker, schedule: Schedule, reporter: Reporter, spark: str | None) -> None:
        self._client = client
        self._maker = maker
        self._schedule = schedule
        self._reporter = reporter
        self._standard = ClosedLoop(client, arrivals(maker, ModeName.STANDARD, schedule.max_tokens))
        self._fast = ClosedLoop(client, arrivals(maker, ModeName.FAST, schedule.max_tokens))
        self._spark = None if spark is None else _Spark(client, replace(maker, model=spark), maker, schedule, reporter)
        self._windows: list[tuple[Phase, Window, float | None]] = []
        self._beside: list[Window] = []  # windows with the fast stream, up to the end of its last request

    async def run(self) -> CompareResult:
        spark = self._spark
        self._reporter.plan(self._schedule.total + SAME_TEXT_SECONDS + (self._schedule.of_spark if spark else 0.0))
        try:
            await self._measure()
            if spark:
                await spark.beside(self._standard)
            loaded = {setting.name: await self._ask(setting) for setting in same_text.LOADED}
        finally:
            await self._fast.stop(0.0)
            await self._standard.stop(0.0)
        alone = same_text.Setting(ModeName.FAST, loaded=False)
        reference = await self._ask(same_text.REFERENCE)
        if spark:
            await spark.alone()
        texts = same_text.judge(SAME_TEXT_PROMPTS, reference, loaded | {alone.name: await self._ask(alone)})
        return self._result(texts)

    async def _measure(self) -> None:
        schedule, reporter = self._schedule, self._reporter
        reporter.phase(f"warming up with {schedule.streams} streams")
        self._standard.start(schedule.streams, ramp_seconds=schedule.warm_up / 2)
        await sleep(schedule.warm_up, reporter)
        self._require_success()
        for pair in range(1, schedule.pairs + 1):
            turn = f"({pair} of {schedule.pairs})"
            reporter.phase(f"standard alone {turn}")
            await self._window("alone")
            reporter.phase(f"standard beside one fast stream {turn}")
            self._fast.start(1)
            window = await self._window("with_fast")
            await self._fast.stop(GRACE_SECONDS)
            self._beside.append(Window(window.start, self._client.clock()))

    async def _window(self, phase: Phase) -> Window:
        await sleep(self._schedule.settle, self._reporter)
        start, busy_before = self._client.clock(), await engine_busy_seconds(self._client)
        await sleep(self._schedule.window, self._reporter)
        end, busy_after = self._client.clock(), await engine_busy_seconds(self._client)
        busy = None if busy_before is None or busy_after is None else busy_after - busy_before
        window = Window(start, end)
        self._windows.append((phase, window, ratio(busy, window.seconds)))
        return window

    async def _ask(self, setting: same_text.Setting) -> list[RequestRecord]:
        self._reporter.phase(f"same text? {setting.name}")
        answers = await same_text.ask(self._client, self._maker, SAME_TEXT_PROMPTS, setting, SAME_TEXT_TOKENS)
        self._reporter.advance(SAME_TEXT_SECONDS / SAME_TEXT_SETTINGS)
        return answers

    def _require_success(self) -> None:
        """A load that only fails is not worth the user's minutes."""
        failures = [record for record in self._standard.records if record.outcome == "failure"]
        if failures and not any(record.succeeded or record.chunk_times for record in self._standard.records):
            raise HeadwayError(f"{self._client.url} can't be measured: every request failed: {failures[-1].reason}")

    def _result(self, texts: same_text.SameText) -> CompareResult:
        everything = self._standard.records + self._fast.records
        alone = [window for phase, window, _ in self._windows if phase == "alone"]
        fast = [record for record in self._fast.records if record.outcome != "cut"]  # it only ever runs beside a full load
        return CompareResult(
            model=self._maker.model,
            schedule=self._schedule,
            alone=summarize(within(self._standard.records, alone)),
            standard=summarize(within(self._standard.records, self._beside)),
            fast=summarize(fast),
            fast_served=sum(record.succeeded and record.served_fast for record in fast),
            windows=tuple(
                WindowResult(
                    phase,
                    window.seconds,
                    total_tokens_per_second(everything, window),
                    peak_tokens_per_second(everything, window),
                    busy,
                )
                for phase, window, busy in self._windows
            ),
            same_text=texts,
            spark=self._spark.result() if self._spark else None,
        )
