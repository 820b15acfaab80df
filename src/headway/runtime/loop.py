"""The engine loop of a model: what it does in its turns on the device, and the door to it.

One turn: plan a step, start it, hand out the previous step's tokens while the device works, wait, sample, complete.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence

from headway.engines.base import Engine
from headway.errors import RequestError
from headway.modes import Modes
from headway.runtime.api import Delta, FinishReason, GenerateRequest, TokenLogprob
from headway.runtime.device import Device
from headway.runtime.foresight import Foresight, Guesser, HeadGuesser
from headway.runtime.live import Live
from headway.runtime.observer import Observer, RequestLog, StepLog
from headway.runtime.outbox import Outbox, outbox_of
from headway.runtime.scoring import score_prompts
from headway.runtime.stream import Stream, push_all
from headway.runtime.turn import begin, look_ahead, rows_by_mode
from headway.sampling.sampler import sample_verifying
from headway.sampling.state import SamplingState
from headway.scheduler.admission import Refused
from headway.scheduler.cost import CostModel
from headway.scheduler.guided import GuidedLookup
from headway.scheduler.lookup import Lookup
from headway.scheduler.request import Request
from headway.scheduler.scheduler import Scheduler
from headway.scheduler.sharing import Pressing
from headway.scheduler.step import Step
from headway.text.stream import TextStream
from headway.text.tokenizer import Tokenizer

log = logging.getLogger("headway.loop")

MAX_FAILURES = 3
"""Steps that may fail one after the other before the engine is given up."""


class EngineLoop:
    """The Generator that the server talks to. submit() and cancel may be called from any thread, submit from one with a
    running event loop; all device work is done in the device's thread."""

    def __init__(
        self,
        engine: Engine,
        scheduler: Scheduler,
        modes: Modes,
        tokenizer: Tokenizer,
        device: Device | None = None,
        guesser: Guesser | None = None,
    ) -> None:
        """device: that it shares with other models; None = it has one of its own. guesser: what makes drafts besides the text;
        None = the engine's draft head, if it has one."""
        self._engine = engine
        self._scheduler = scheduler
        self._modes = modes
        self._tokenizer = tokenizer
        self._observer: Observer | None = None
        self._request_logs: Sequence[RequestLog] = ()
        self._step_log: StepLog | None = None
        self._device = device or Device()
        self._clock, self._lock, self._wake = self._device.clock, self._device.lock, self._device.wake
        self._live: dict[str, Live] = {}
        self._in_flight: set[str] = set()
        self._leaving: dict[str, FinishReason] = {}
        self._accepting = True
        self._failures = 0
        self._guesser = guesser or (HeadGuesser(engine) if engine.info.num_drafts else None)
        self._foresight = Foresight(self._guesser, scheduler)
        self._device.join(self)

    def start(
        self,
        observer: Observer | None = None,
        request_logs: Sequence[RequestLog] = (),
        step_log: StepLog | None = None,
    ) -> None:
        """Begin to serve; `observer` is told of every step and end, `request_logs` of every end with the request itself,
        `step_log` of every step with its rows."""
        self._step_log = step_log
        self._observer = observer
        self._request_logs = request_logs
        self._device.start()

    @property
    def alive(self) -> bool:
        return self._device.has(self)

    @property
    def costs(self) -> CostModel:
        """What steps have been seen to cost, up to now."""
        return self._scheduler.costs

    def load(self) -> dict[str, float]:
        with self._lock:
            pool = self._scheduler.pool
            median, p95 = self._scheduler.costs.error()
            counts: dict[str, float] = {
                "blocks_used": pool.num_blocks - pool.num_free,
                "blocks_free": pool.num_free - pool.num_cached,
                "blocks_cached": pool.num_cached,
                "evicted": self._scheduler.num_evicted,
                "cost_error_median": median,
                "cost_error_p95": p95,
            }
            for mode in self._modes:
                counts[f"running_{mode.name}"], counts[f"waiting_{mode.name}"] = self._scheduler.count(mode.name)
            return counts

    # --- the door -----------------------------------------------------------------------------------------------------------

    def submit(self, request: GenerateRequest) -> Stream:
        context = self._engine.info.context_length
        room = context - len(request.prompt)
        if room < 1:
            raise RequestError(
                400,
                f"the prompt has {len(request.prompt)} tokens, the context holds {context}, at least one of them for output",
                code="context_length_exceeded",
                param="messages",
            )
        pace = self._pace(request)
        now = self._clock()
        mode = self._modes[request.mode]
        matcher = request.constraint.start() if request.constraint is not None else None
        stops = frozenset() if request.ignore_eos and matcher is None else self._tokenizer.eos_ids
        scheduled = Request(
            id=request.id,
            mode=request.mode,
            pace=pace,
            arrival=now,
            ttft_deadline=now + (request.ttft or mode.ttft_target),
            tokens=list(request.prompt),
            max_tokens=max(1, min(request.max_tokens, room)),
            stop_tokens=stops,
            min_tokens=request.min_tokens,
            lookup=GuidedLookup(request.prediction, matcher) if matcher is not None else Lookup(request.prediction),
            key=request.key,
            promises_ttft=request.ttft is not None,
            guide=matcher,
            scored=request.prompt_logprobs is not None,
        )
        live = Live(
            request=scheduled,
            sampling=SamplingState(
                request.sampling,
                request.prompt,
                banned=sorted(self._tokenizer.eos_ids),
                min_tokens=request.min_tokens,
                matcher=matcher,
            ),
            text=TextStream(self._tokenizer.token_bytes, request.stop),
            min_tokens=request.min_tokens,
            stream=Stream(request.id, self.cancel),
            events=asyncio.get_running_loop(),
            prompt_logprobs=request.prompt_logprobs,
            silent=request.max_tokens == 0,
        )
        with self._lock:
            if not self._accepting or not self.alive:
                raise RequestError(503, "the server is shutting down" if self.alive else "the engine has stopped")
            try:
                self._scheduler.add(scheduled, now)
            except Refused as refused:
                raise RequestError(
                    429,
                    f"{refused}; try again in {max(1, math.ceil(refused.retry_after))} s",
                    code="rate_limit_exceeded",
                    retry_after=refused.retry_after,
                ) from None
            self._live[request.id] = live
            self._wake.notify()
        return live.stream

    def _pace(self, request: GenerateRequest) -> float:
        if request.pace is None:
            return self._modes[request.mode].pace
        most = self._modes.highest
        if request.pace > most * (1 + 1e-9):
            raise RequestError(
                400,
                f"a pace of {request.pace:.4g} tokens/s can't be promised, the most is {most:.4g} ({1000 / most:.4g} ms each)",
                param="x-slo-tpot-ms",
            )
        return request.pace

    def cancel(self, request_id: str) -> None:
        """Free the request's row and blocks: now, or when the step that it is in has ended."""
        with self._lock:
            self._leave(request_id, "cancelled")

    def stop_accepting(self) -> None:
        """From now on submit() refuses; what is in the loop goes on."""
        with self._lock:
            self._accepting = False

    def abort(self) -> None:
        """End every request now with finish_reason "cancelled"."""
        with self._lock:
            for request_id in list(self._live):
                self._leave(request_id, "cancelled")

    def close(self) -> None:
        """Abort, and leave the device. Waits for the step that is running."""
        self.stop_accepting()
        self.abort()
        self._device.leave(self)
        if self._guesser is not None:
            self._guesser.close()
        self._engine.close()

    def _leave(self, request_id: str, why: FinishReason) -> None:
        live = self._live.get(request_id)
        if live is None or live.ended:
            return
        if request_id in self._in_flight:  # its blocks are being written
            self._leaving.setdefault(request_id, why)
            return
        self._scheduler.cancel(request_id)
        self._send([(live, self._last(live, "", why))])

    # --- the device's thread ------------------------------------------------------------------------------------------------

    def end(self) -> None:
        with self._lock:
            self._accepting = False
            self._in_flight.clear()
            for live in list(self._live.values()):
                if not live.ended:
                    self._scheduler.cancel(live.request.id)
                    self._send([(live, self._last(live, "", "error", error="the engine has stopped"))])

    def pressing(self) -> Pressing | None:
        return self._scheduler.pressing()

    def foresee(self) -> None:
        self._foresight.ask()

    def plan(self, now: float, until: float) -> Step | None:
        step = self._scheduler.plan(now, until)
        self._in_flight = {row.request.id for row in step.rows} if step else set()
        return step

    def take(self, step: Step, begun: float, meanwhile: Callable[[], None]) -> Outbox:
        """What planning and sampling take counts as part of the step for the cost model: a pace has to be kept with them."""
        lives = [self._live[row.request.id] for row in step.rows]
        started = self._clock()
        try:
            begin(self._engine, step)
            meanwhile()
            look_ahead(step, lives)
            logits = self._engine.wait()
            device_seconds = self._clock() - started
            logits = score_prompts(logits, step, lives)
            sampling = [live for live, row in zip(lives, step.rows, strict=True) if row.samples]
            drafts = [row.request.drafts[: row.num_drafts] for row in step.rows if row.samples]
            sampled = sample_verifying(logits, [live.sampling for live in sampling], drafts) if sampling else []
        except Exception as error:
            meanwhile()  # the step before was fine, whatever happened to this one
            self._fail(step, error)
            return Outbox()
        self._failures = 0
        with self._lock:
            ended = self._clock()
            self._in_flight = set()
            leaving, self._leaving = self._leaving, {}
            for live in sampling:
                if live.failure is not None:
                    leaving.setdefault(live.request.id, "error")
            for request_id in leaving:
                self._scheduler.cancel(request_id)
            received = self._scheduler.complete(step, [[s.token for s in row] for row in sampled], ended, ended - begun)
            self._foresight.note(step, received)
            left = [(self._live[i], why) for i, why in leaving.items() if i in self._live]
            self._send([(live, self._last(live, "", why, error=live.failure)) for live, why in left])
        if self._step_log:
            self._step_log.stepped(step, ended, ended - begun)
        if self._observer:
            missed = abs((ended - begun) / step.predicted - 1.0)
            self._observer.on_step(device_seconds, rows_by_mode(step), step.num_tokens, missed)
        outbox = outbox_of(received, sampling, sampled)
        if firsts := outbox.take_firsts():  # whoever waits for these has seen nothing yet
            self.hand_out(firsts)
        return outbox

    def hand_out(self, outbox: Outbox) -> None:
        """Turn tokens to text, end what a stop string ends, and send it all with one wake-up of each event loop."""
        ready: list[tuple[Live, Delta]] = []
        with self._lock:
            for live, tokens, ended in outbox.tokens:
                if not live.ended:
                    ready.append((live, self._delta(live, tokens, ended)))
            self._send(ready)

    def _delta(self, live: Live, tokens: Sequence[TokenLogprob], ended: str | None) -> Delta:
        try:
            text, num_taken = live.take(tokens)
        except Exception as error:  # one request's text must not end the others
            log.error("the text of request %s failed", live.request.id, exc_info=error)
            self._drop(live)
            return self._last(live, "", "error", error="the server failed to make text of this request's tokens")
        logprobs = tuple(tokens[:num_taken]) if live.sampling.params.logprobs is not None else ()
        if live.text.stopped is not None:
            self._drop(live)
            return self._last(live, text, "stop", num_tokens=num_taken, logprobs=logprobs)
        if ended is not None:
            why: FinishReason = "stop" if ended == "stop" and not live.silent else "length"
            return self._last(live, text + live.text.flush(), why, num_tokens=num_taken, logprobs=logprobs)
        cached, scores = live.request.num_cached, live.take_scores()
        return Delta(text, num_taken, logprobs, cached_tokens=cached, prompt_logprobs=scores)

    def _drop(self, live: Live) -> None:
        """Take a request whose output is complete out of the scheduler; if a step with it is running, when that has ended."""
        if live.request.id in self._in_flight:
            self._leaving[live.request.id] = "stop"
        else:
            self._scheduler.cancel(live.request.id)

    def _last(
        self,
        live: Live,
        text: str,
        why: FinishReason,
        *,
        num_tokens: int = 0,
        logprobs: tuple[TokenLogprob, ...] = (),
        error: str | None = None,
    ) -> Delta:
        """The delta that ends a request; from here on it is no longer live."""
        live.ended = True
        self._live.pop(live.request.id, None)
        usage, timing = live.usage(), live.timing(self._clock())
        if self._observer:
            self._observer.on_finish(live.request.mode, why, usage, timing, live.ttft)
        for request_log in self._request_logs:
            request_log.ended(live.request, why, usage, timing)
        stop_string = live.text.stopped if why == "stop" else None
        scores = live.take_scores()
        return Delta(text, num_tokens, logprobs, why, stop_string, error, usage, timing, usage.cached_tokens, scores)

    def _send(self, deltas: Sequence[tuple[Live, Delta]]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Stream, Delta]]] = {}
        for live, delta in deltas:
            by_loop.setdefault(live.events, []).append((live.stream, delta))
        for events, batch in by_loop.items():
            try:
                events.call_soon_threadsafe(push_all, batch)
            except RuntimeError:  # the event loop is closed: nobody listens any more
                log.debug("deltas of %d requests had no listener", len(batch))

    def _fail(self, step: Step, error: Exception) -> None:
        """A step that failed ends the requests in it, not the server; engines that go on failing are given up."""
        log.error("a step of %d rows failed", len(step.rows), exc_info=error)
        self._failures += 1
        with self._lock:
            self._in_flight = set()
            self._leaving = {}
            for row in step.rows:
                live = self._live.get(row.request.id)
                self._scheduler.cancel(row.request.id)
                if live is not None:
                    self._send([(live, self._last(live, "", "error", error="the engine failed in this step"))])
        if self._failures >= MAX_FAILURES:
            raise RuntimeError(f"{self._failures} steps failed one after the other") from error
