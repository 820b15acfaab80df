"""A model as the server sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from headway.engines.base import EngineInfo
from headway.grammar.compiler import Compiler
from headway.modes import Modes
from headway.runtime.api import GenerateRequest
from headway.runtime.stream import Stream
from headway.text.template import ChatTemplate
from headway.text.tokenizer import Tokenizer


class Generator(Protocol):
    """The engine loop, seen from the event loop. (A scripted one stands in for it in the server's unit tests.)"""

    def submit(self, request: GenerateRequest) -> Stream:
        """Admit a request; call it in the event loop. Raises RequestError: 400 (the prompt leaves no room, a pace that can't be
        promised), 429 (all seats and the queue of the mode are taken), 503 (draining)."""

    @property
    def alive(self) -> bool:
        """False once the engine thread has ended; /health says so."""

    def load(self) -> dict[str, float]:
        """Running and waiting requests by mode, KV blocks used and free: `running_standard`, `blocks_free`, ...; and
        `CostModel.error()` as `cost_error_median` and `cost_error_p95`."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """id: the model's name in the API; `id + "-fast"` is the alias for its fast mode. created: Unix seconds. fast_beside_full:
    fast requests that can be promised their pace while every standard seat is taken. step_times: which ones the paces rest on,
    for people. grammars: compiles constraints for its tokens."""

    id: str
    created: int
    tokenizer: Tokenizer
    template: ChatTemplate | None
    modes: Modes
    info: EngineInfo
    generator: Generator
    fast_beside_full: int
    step_times: str
    grammars: Compiler
