"""Prometheus metrics. The engine loops call `on_step` and `on_finish` from their own threads; both cost microseconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from headway.modes import ModeName, Modes
from headway.runtime.api import Timing, Usage
from headway.scheduler.lookup import DraftSource

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
PER_TOKEN = (0.001, 0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1.0)
TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
RATIOS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
TOKEN_KINDS = ("prompt", "cached", "output", "drafted", "accepted")
OUTCOMES = ("stop", "length", "error", "cancelled", "refused")


class Books(Protocol):
    """The ledger's state."""

    @property
    def lost(self) -> int: ...

    @property
    def waiting(self) -> int: ...

    @property
    def open(self) -> int: ...


class Holds(Protocol):
    """What is taken from callers' limits."""

    @property
    def num_held(self) -> int: ...


class Doors(Protocol):
    """Who is in the server."""

    @property
    def num_requests(self) -> int: ...

    @property
    def num_sockets(self) -> int: ...


Load = Mapping[str, float]
"""As `Generator.load` gives it."""


class Metrics:
    """All metrics of the served models, in a registry of their own: by mode what requests see, by model what an engine does.

    models: the modes of each, by its id; no mode is in two of them."""

    def __init__(self, models: Mapping[str, Modes]) -> None:
        self.registry = CollectorRegistry()
        self.books: Books | None = None
        self.holds: Holds | None = None
        self.doors: Doors | None = None
        self._loads: Mapping[str, Callable[[], Load]] = {}
        names = [str(mode.name) for modes in models.values() for mode in modes]
        registry = self.registry

        def per_mode(name: str, text: str, buckets: tuple[float, ...]) -> dict[str, Histogram]:
            metric = Histogram(name, text, ["mode"], buckets=buckets, registry=registry)
            return {mode: metric.labels(mode) for mode in names}

        def counts(name: str, text: str) -> dict[str, Counter]:
            metric = Counter(name, text, ["mode"], registry=registry)
            return {mode: metric.labels(mode) for mode in names}

        self._ttft = per_mode("headway_ttft_seconds", "Arrival to first token.", SECONDS)
        self._tpot = per_mode("headway_tpot_seconds", "Mean time per token after the first, per request.", PER_TOKEN)
        self._queue = per_mode("headway_queue_seconds", "Arrival to first computation.", SECONDS)
        self._engine_seconds = counts("headway_engine_seconds", "Device seconds charged to requests.")
        self._due = counts("headway_tokens_due", "Tokens after the first of each request: those with a deadline.")
        self._on_time = counts("headway_tokens_on_time", "Tokens delivered by their deadline.")
        requests = Counter("headway_requests", "Requests by how they ended.", ["mode", "outcome"], registry=registry)
        self._requests = {(mode, outcome): requests.labels(mode, outcome) for mode in names for outcome in OUTCOMES}
        self._downgrades = Counter("headway_downgrades", "Fast requests served at standard.", registry=registry)
        self._served = Counter(
            "headway_served_requests",
            "HTTP requests that found a place, by the mode asked for and the mode served and billed.",
            ["requested", "served"],
            registry=registry,
        )
        self._over_limit = Counter(
            "headway_over_limit",
            "Requests over a limit of their key; fast ones may have been served at standard then.",
            ["mode", "limit"],
            registry=registry,
        )
        tokens = Counter(
            "headway_tokens",
            "Tokens; cached ones are part of prompt, accepted ones of output.",
            ["mode", "kind"],
            registry=registry,
        )
        self._tokens = {(mode, kind): tokens.labels(mode, kind) for mode in names for kind in TOKEN_KINDS}

        def by_source(name: str, text: str) -> dict[tuple[str, str], Counter]:
            metric = Counter(name, text, ["mode", "source"], registry=registry)
            return {(mode, source): metric.labels(mode, source) for mode in names for source in DraftSource}

        self._drafted = by_source("headway_drafted_tokens", "Guesses at next tokens that were verified.")
        self._accepted = by_source("headway_accepted_tokens", "Guesses that became output.")
        self._step_rows = counts("headway_step_rows", "Rows that rode in steps, summed over steps.")

        def per_model(name: str, text: str, buckets: tuple[float, ...]) -> dict[str, Histogram]:
            metric = Histogram(name, text, ["model"], buckets=buckets, registry=registry)
            return {model: metric.labels(model) for model in models}

        self._step = per_model("headway_step_seconds", "One forward pass.", PER_TOKEN)
        self._step_tokens = per_model("headway_step_tokens", "Tokens computed in a step.", TOKENS)
        busy = Counter("headway_engine_busy_seconds", "Seconds in which the device computed.", ["model"], registry=registry)
        self._busy = {model: busy.labels(model) for model in models}
        self._error = per_model("headway_cost_model_error_ratio", "|predicted - measured| / measured, per step.", RATIOS)
        registry.register(_Gauges(models, self))
        ProcessCollector(registry=registry)

    def of(self, model: str) -> EngineMetrics:
        """What the engine loop of this model reports to."""
        return EngineMetrics(self, model)

    def watch(self, loads: Mapping[str, Callable[[], Load]]) -> None:
        """Where the gauges come from at scrape time: `Generator.load`, by the model's id."""
        self._loads = loads

    def load(self, model: str) -> Load:
        """Empty for a model that isn't watched."""
        return self._loads.get(model, dict)()

    def attainment(self, mode: str) -> float:
        """Over all tokens so far; 1 before the first."""
        due = _value(self._due[mode])
        return _value(self._on_time[mode]) / due if due else 1.0

    def on_step(self, model: str, seconds: float, rows_by_mode: Mapping[str, int], tokens: int, error: float) -> None:
        """After each step. seconds: of device time; error: |measured / predicted - 1| of the whole turn."""
        self._step[model].observe(seconds)
        self._busy[model].inc(seconds)
        self._step_tokens[model].observe(tokens)
        for mode, rows in rows_by_mode.items():
            self._step_rows[mode].inc(rows)
        self._error[model].observe(error)

    def on_finish(self, mode: str, outcome: str, usage: Usage, timing: Timing, ttft: float | None) -> None:
        """When a request leaves the loop. outcome: its finish_reason; ttft: seconds, None if it got no token."""
        self._requests[mode, outcome].inc()
        self._tokens[mode, "prompt"].inc(usage.prompt_tokens)
        self._tokens[mode, "cached"].inc(usage.cached_tokens)
        self._tokens[mode, "output"].inc(usage.completion_tokens)
        self._tokens[mode, "drafted"].inc(usage.drafted_tokens)
        self._tokens[mode, "accepted"].inc(usage.accepted_tokens)
        for source, drafted in usage.drafted.items():
            self._drafted[mode, source].inc(drafted)
        for source, accepted in usage.accepted.items():
            self._accepted[mode, source].inc(accepted)
        self._engine_seconds[mode].inc(usage.engine_seconds)
        self._queue[mode].observe(timing.queue)
        if ttft is not None:
            self._ttft[mode].observe(ttft)
        due = usage.completion_tokens - 1
        if due > 0:
            self._tpot[mode].observe(timing.completion / due)
            self._due[mode].inc(due)
            self._on_time[mode].inc(usage.attainment * due)

    def on_refused(self, mode: str) -> None:
        """A request that found no seat. mode: the last one tried."""
        self._requests[mode, "refused"].inc()

    def on_downgraded(self) -> None:
        """A fast request that found no seat and was served at standard; it is counted there too."""
        self._downgrades.inc()

    def on_served(self, requested: str, served: str) -> None:
        self._served.labels(requested, served).inc()

    def on_over_limit(self, mode: str, limit: str) -> None:
        """limit: requests, input_tokens or output_tokens."""
        self._over_limit.labels(mode, limit).inc()

    def render(self) -> bytes:
        """The text format that Prometheus scrapes."""
        return generate_latest(self.registry)


class EngineMetrics:
    """The Observer of one model's engine loop."""

    def __init__(self, metrics: Metrics, model: str) -> None:
        self._metrics = metrics
        self._model = model

    def on_step(self, seconds: float, rows_by_mode: Mapping[str, int], tokens: int, error: float) -> None:
        self._metrics.on_step(self._model, seconds, rows_by_mode, tokens, error)

    def on_finish(self, mode: ModeName, outcome: str, usage: Usage, timing: Timing, ttft: float | None) -> None:
        self._metrics.on_finish(mode, outcome, usage, timing, ttft)


class _Gauges(Collector):
    """What is true at this moment, asked for only when somebody looks."""

    def __init__(self, models: Mapping[str, Modes], metrics: Metrics) -> None:
        self._models = models
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        loads = {model: self._metrics.load(model) for model in self._models}
        rows = GaugeMetricFamily("headway_rows", "Requests being served.", labels=["mode"])
        waiting = GaugeMetricFamily("headway_waiting", "Requests in the queue.", labels=["mode"])
        attainment = GaugeMetricFamily("headway_attainment", "Share of tokens delivered on time.", labels=["mode"])
        pace = GaugeMetricFamily("headway_pace", "Tokens per second promised to each request.", labels=["mode"])
        for model, modes in self._models.items():
            for mode in modes:
                rows.add_metric([mode.name], loads[model].get(f"running_{mode.name}", 0))
                waiting.add_metric([mode.name], loads[model].get(f"waiting_{mode.name}", 0))
                attainment.add_metric([mode.name], self._metrics.attainment(mode.name))
                pace.add_metric([mode.name], mode.pace)
        yield from (rows, waiting, attainment, pace, *_engines(loads))
        yield GaugeMetricFamily("headway_threads", "Threads of Python in the process.", value=threading.active_count())
        if self._metrics.doors is not None:
            yield from _inside(self._metrics.doors)
        if self._metrics.holds is not None:
            text = "Requests that have taken of their caller's limits and not yet ended."
            yield GaugeMetricFamily("headway_limit_holds", text, value=self._metrics.holds.num_held)
        if self._metrics.books is not None:
            yield from _ledger(self._metrics.books)

    def describe(self) -> Iterator[Metric]:
        return iter(())


def _engines(loads: Mapping[str, Load]) -> Iterator[Metric]:
    """By model. The cost model's errors are of the last steps alone, as the scheduler's promises rest on them; the histogram
    counts all since the start."""
    blocks = GaugeMetricFamily("headway_kv_blocks", "KV cache blocks.", labels=["model", "state"])
    evicted = CounterMetricFamily(
        "headway_evictions", "Rows that had to give their blocks back and start again.", labels=["model"]
    )
    for model, load in loads.items():
        for key, value in load.items():
            if key.startswith("blocks_"):
                blocks.add_metric([model, key.removeprefix("blocks_")], value)
        evicted.add_metric([model], load.get("evicted", 0))
    yield from (blocks, evicted)
    for which, text in (("median", "Median"), ("p95", "95th percentile")):
        error = GaugeMetricFamily(
            f"headway_cost_model_error_{which}",
            f"{text} of |measured / predicted - 1| over the last steps.",
            labels=["model"],
        )
        for model, load in loads.items():
            error.add_metric([model], load.get(f"cost_error_{which}", 0.0))
        yield error


def _inside(doors: Doors) -> Iterator[Metric]:
    requests, sockets = "Requests being answered, this one too.", "WebSockets that are open."
    yield GaugeMetricFamily("headway_open_requests", requests, value=doors.num_requests)
    yield GaugeMetricFamily("headway_open_websockets", sockets, value=doors.num_sockets)


def _ledger(books: Books) -> Iterator[Metric]:
    lost = CounterMetricFamily("headway_ledger_lost_rows", "Rows of the ledger that could not be written.")
    lost.add_metric([], books.lost)
    yield lost
    yield GaugeMetricFamily("headway_ledger_waiting_rows", "Rows of the ledger yet to be written.", value=books.waiting)
    yield GaugeMetricFamily("headway_ledger_open_choices", "Choices whose end the ledger waits for.", value=books.open)


def _value(counter: Counter) -> float:
    samples = (sample for metric in counter.collect() for sample in metric.samples)
    return next(float(sample.value) for sample in samples if sample.name.endswith("_total"))
