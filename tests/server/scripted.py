"""A Generator that plays scripts instead of running a model, and a small world around it for the server's unit tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI

from headway.access.allowance import Allowance
from headway.access.keys import keyring
from headway.access.quota import Quota
from headway.config import ServerSettings, Settings
from headway.engines.base import EngineInfo
from headway.errors import RequestError
from headway.grammar.compiler import Compiler
from headway.ledger.book import open_book
from headway.modes import Mode, ModeName, Modes
from headway.runtime.api import Delta, GenerateRequest, Timing, TokenLogprob, Usage
from headway.runtime.observer import RequestLog
from headway.runtime.served import ServedModel
from headway.runtime.stream import Stream
from headway.scheduler.request import Request
from headway.server.app import create_app
from headway.server.metrics import Metrics
from headway.server.responses.store import ResponseStore
from headway.text.messages import Message
from headway.text.parts import PlainReader, Reader
from headway.text.stream import TextStream
from headway.text.template import Rendered, Tools
from headway.text.tokenizer import Seam
from headway.text.toolcalls import ToolReader

MODES = Modes(
    base=Mode(ModeName.STANDARD, pace=20.0, max_rows=8, max_waiting=8, ttft_target=5.0),
    fast=Mode(ModeName.FAST, pace=50.0, max_rows=2, max_waiting=2, ttft_target=1.0),
)
SPARK_MODES = Modes(base=Mode(ModeName.SPARK, pace=200.0, max_rows=4, max_waiting=4, ttft_target=0.5))
PACES = {mode.name: mode.pace for mode in (*MODES, *SPARK_MODES)}
CACHED = 2
TIMING = Timing(queue=0.25, prompt=0.5, completion=1.0, total=1.75)


class ByteTokenizer:
    """One token per byte, an end token, and a few that are words or halves of a character."""

    token_bytes = [bytes([byte]) for byte in range(256)] + [b"", b"Hello", b" world", b"DEF", b"\xf0\x9f", b"\xab\xa0"]
    vocab_size = len(token_bytes)
    eos_ids = frozenset({256})
    max_token_bytes = 6
    start_of_document = 256
    seam = Seam("<", ord("<"))

    def encode(self, text: str) -> list[int]:
        return list(text.encode())


class PlainTemplate:
    """`<role>content` for each message, then the tools."""

    abilities = SimpleNamespace(format="hermes")

    def render(self, messages: Sequence[dict[str, Any]], *, tools: Sequence[dict[str, Any]] | None = None) -> str:
        if any(isinstance(message.get("content"), list) for message in messages):
            raise RequestError(400, "lists are for the real template", param="messages")
        turns = "".join(f"<{message['role']}>{message.get('content') or ''}" for message in messages)
        return turns + "".join(tool["function"]["name"] for tool in tools or ())

    def render_on(self, known: Iterable[Rendered], messages: Sequence[Message], tools: Tools) -> Rendered:
        return Rendered(self.render(messages, tools=tools), messages, tools, 0, (list(messages), tools))

    def reader(self, tools: Sequence[dict[str, Any]] | None, *, parallel: bool = True) -> Reader:
        return ToolReader("hermes", [tool["function"]["name"] for tool in tools], parallel=parallel) if tools else PlainReader()


@dataclass
class Script:
    """tokens: played `times` over, one per delta, as the engine loop would, until max_tokens. pause: seconds before each.
    end: instead of "length", what the last delta says; hang: after the tokens nothing more comes until cancelled."""

    tokens: Sequence[int] = tuple(b"scripted")
    times: int = 1
    pause: float = 0.0
    end: str | None = None
    error: str | None = None
    hang: bool = False


@dataclass
class ScriptedGenerator:
    """scripts: by turns for the requests that come; refuse: raises for a request, or not. base: the mode that its rows count
    as."""

    scripts: list[Script] = field(default_factory=lambda: [Script()])
    refuse: Callable[[GenerateRequest], RequestError | None] = lambda request: None
    alive: bool = True
    requests: list[GenerateRequest] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    request_logs: list[RequestLog] = field(default_factory=list)
    delivered: dict[str, int] = field(default_factory=dict)
    base: ModeName = ModeName.STANDARD

    def submit(self, request: GenerateRequest) -> Stream:
        if error := self.refuse(request):
            raise error
        stream = Stream(request.id, self._cancel)
        script = self.scripts[len(self.requests) % len(self.scripts)]
        self.requests.append(request)
        self.running[request.id] = asyncio.get_running_loop().create_task(self._play(request, stream, script))
        return stream

    def _cancel(self, request_id: str) -> None:
        task = self.running.pop(request_id, None)
        if task is not None:
            self.cancelled.append(request_id)
            task.cancel()
            request = next(each for each in self.requests if each.id == request_id)
            self._log(request, "cancelled", self.delivered.get(request_id, 0))

    def load(self) -> dict[str, float]:
        return {f"running_{self.base}": len(self.running), "waiting_fast": 3, "blocks_free": 7, "blocks_used": 1}

    def _log(self, request: GenerateRequest, outcome: str, num_output: int) -> None:
        """As the engine loop would: TIMING, at 1 s for the first token."""
        ended = Request(request.id, request.mode, 1.0, 0.0, 0.0, list(request.prompt), request.max_tokens)
        ended.first_token_at = 1.0 if num_output else None
        for log in self.request_logs:
            log.ended(ended, outcome, usage(request, num_output), TIMING)

    async def _play(self, request: GenerateRequest, stream: Stream, script: Script) -> None:
        text = TextStream(ByteTokenizer.token_bytes, request.stop)
        tokens = (list(script.tokens) * script.times)[: request.max_tokens]
        scores: tuple[TokenLogprob, ...] = ()
        if request.prompt_logprobs is not None:
            scores = tuple(_logprob(token, request.prompt_logprobs) for token in request.prompt[1:])
        if request.max_tokens == 0:
            self.running.pop(request.id, None)
            self._log(request, "length", 0)
            spent = usage(request, 0)
            stream.push(Delta("", 0, (), "length", usage=spent, timing=TIMING, cached_tokens=CACHED, prompt_logprobs=scores))
            return
        for number, token in enumerate(tokens, 1):
            of_prompt = scores if number == 1 else ()
            await asyncio.sleep(script.pause)
            self.delivered[request.id] = number
            shown = text.push(token)
            logprobs = () if request.sampling.logprobs is None else (_logprob(token, request.sampling.logprobs),)
            last = number == len(tokens) and not script.hang
            if text.stopped is None and not last:
                stream.push(Delta(shown, 1, logprobs, cached_tokens=CACHED, prompt_logprobs=of_prompt))
                continue
            reason = (
                "stop" if text.stopped is not None else script.end or ("length" if number == request.max_tokens else "stop")
            )
            shown += text.flush()
            self.running.pop(request.id, None)
            self._log(request, reason, number)
            stream.push(
                Delta(
                    shown,
                    1,
                    logprobs,
                    reason,
                    text.stopped,
                    script.error,
                    usage(request, number),
                    TIMING,
                    CACHED,  # type: ignore[arg-type]
                    of_prompt,
                )
            )
            return
        await asyncio.Event().wait()


def usage(request: GenerateRequest, completion_tokens: int) -> Usage:
    pace = request.pace or PACES[request.mode]
    return Usage(len(request.prompt), completion_tokens, CACHED, engine_seconds=0.125, attainment=0.5, pace=pace)


def _logprob(token: int, top: int) -> TokenLogprob:
    return TokenLogprob(token, -0.5, tuple(((token + other) % ByteTokenizer.vocab_size, -0.5 - other) for other in range(top)))


class WordTokenizer(ByteTokenizer):
    """A vocabulary of its own: "hi" is one token more."""

    token_bytes = (*ByteTokenizer.token_bytes, b"hi")
    vocab_size = len(token_bytes)

    def encode(self, text: str) -> list[int]:
        pieces = [list(piece.encode()) for piece in text.split("hi")]
        return [token for piece in pieces for token in (*piece, HI)][:-1]


HI = WordTokenizer.vocab_size - 1


class OwnTemplate(PlainTemplate):
    """Ends in "!"."""

    def render(self, messages: Sequence[dict[str, Any]], *, tools: Sequence[dict[str, Any]] | None = None) -> str:
        return super().render(messages, tools=tools) + "!"


class World:
    """An application over a scripted generator; `spark`: and a second one, a smaller model's, of the id "s"."""

    def __init__(
        self,
        *scripts: Script,
        settings: ServerSettings | None = None,
        context: int = 64,
        downgrade: bool = True,
        config: Settings | None = None,
        spark: bool = False,
        responses: ResponseStore | None = None,
    ) -> None:
        """config: of keys, limits, ledger and prices; None has none of them."""
        self.generator = ScriptedGenerator(list(scripts) or [Script()])
        self.sparkling = ScriptedGenerator(list(scripts) or [Script()], base=ModeName.SPARK)
        self.served = _served("m", MODES, self.generator, ByteTokenizer(), PlainTemplate(), context)
        self.spark = _served("s", SPARK_MODES, self.sparkling, WordTokenizer(), OwnTemplate(), context // 2)
        self.models = [self.served, self.spark] if spark else [self.served]
        config = config or Settings().with_overrides({"ledger.enabled": False})
        self.book = open_book(config.ledger, config.prices)
        if self.book is not None:
            self.generator.request_logs.append(self.book)
            self.sparkling.request_logs.append(self.book)
        self._config = config
        self._settings = settings or config.server
        self._downgrade = downgrade
        self._responses = responses

    @cached_property
    def metrics(self) -> Metrics:
        return Metrics({served.id: served.modes for served in self.models})

    @cached_property
    def app(self) -> FastAPI:
        """Made when it is first asked for: its routes take a while."""
        return create_app(
            self.models,
            self._settings,
            self.metrics,
            keyring=keyring(self._config, loopback=True),
            quota=Quota(Allowance(self._config.limits, self._config.keys), self._config.limits.storage),
            book=self.book,
            downgrade=self._downgrade,
            responses=self._responses,
        )


def _served(
    model: str, modes: Modes, generator: ScriptedGenerator, tokenizer: ByteTokenizer, template: PlainTemplate, context: int
) -> ServedModel:
    info = EngineInfo(tokenizer.vocab_size, context, 32, 8, 1, 1, exact=True, description=f"{model} scripted")
    grammars = Compiler(tokenizer.token_bytes, tokenizer.eos_ids, tokenizer.encode)
    beside = 0 if modes.fast is None else 1
    return ServedModel(
        model,
        1,
        tokenizer,  # type: ignore[arg-type]
        template,  # type: ignore[arg-type]
        modes,
        info,
        generator,
        beside,
        "measured now",
        grammars,
    )
