"""What chat and completions have in common: an answer's envelope, its chunks, its usage."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from headway.errors import RequestError
from headway.runtime.api import Delta, TokenLogprob
from headway.server.modes import Speed
from headway.server.openai.errors import error_body
from headway.server.openai.schemas import GenerationBody
from headway.server.output import Output
from headway.server.render import Json, Renderer
from headway.server.tally import timing_info
from headway.text.parts import PlainReader, Reader


@dataclass(frozen=True, slots=True)
class Envelope:
    """The fields that every body and every chunk of one answer carries."""

    id: str
    created: int
    model: str
    service_tier: str
    system_fingerprint: str

    def fields(self, kind: str) -> Json:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "service_tier": self.service_tier,
            "system_fingerprint": self.system_fingerprint,
        }


class ChunkRenderer(Renderer):
    """A dialect in which each event is a chunk with choices."""

    ends_with_done = True
    whole_kind: ClassVar[str]
    chunk_kind: ClassVar[str]
    nothing: ClassVar[Json]
    """The fields of a chunk that brings no text."""

    def __init__(
        self, envelope: Envelope, ask: GenerationBody, speed: Speed, new_reader: Callable[[], Reader] = PlainReader
    ) -> None:
        super().__init__(speed.mode, ask.n or 1, new_reader, speed.requested)
        self._whole = envelope.fields(self.whole_kind)
        self._chunk = envelope.fields(self.chunk_kind)
        self._include_usage = bool(ask.stream_options and ask.stream_options.include_usage)

    # --- what chat and completions write differently ------------------------------------------------------------------------

    @abstractmethod
    def describe(self, output: Output, logprobs: Sequence[TokenLogprob]) -> Any:
        """The value of "logprobs" for a choice's next tokens, None if they were not asked for."""

    @abstractmethod
    def increment(self, output: Output, text: str) -> Json:
        """The fields of a choice's chunk that hold its next text."""

    @abstractmethod
    def content(self, output: Output) -> Json:
        """The fields of a whole choice that hold all of it, log probabilities included."""

    # --- what they share ----------------------------------------------------------------------------------------------------

    def piece(self, output: Output, text: str, logprobs: Sequence[TokenLogprob]) -> list[Json]:
        return [self.chunk(output, self.increment(output, text), self.describe(output, logprobs))]

    def finish(self, output: Output, delta: Delta) -> list[Json]:
        assert delta.usage is not None and delta.timing is not None, "a last delta carries usage and timing"
        chunk = self.chunk(output, self.nothing, None, output.reason)
        return [{**chunk, "time_info": timing_info(delta.timing), "headway": self.tally.headway_of([delta.usage])}]

    def end(self) -> list[Json]:
        if not self._include_usage:
            return []
        return [{**self._chunk, "choices": [], "usage": self.tally.usage(), "time_info": self.tally.time_info()}]

    def failure(self, error: RequestError) -> list[Json]:
        return [error_body(error)]

    def whole(self) -> Json:
        choices = [{"index": output.index, **self.content(output), "finish_reason": output.reason} for output in self.outputs]
        extra = {"usage": self.tally.usage(), "time_info": self.tally.time_info(), "headway": self.tally.headway()}
        return {**self._whole, "choices": choices, **extra}

    def chunk(self, output: Output, fields: Json, logprobs: Any, reason: str | None = None) -> Json:
        """A chunk of one choice; if a usage chunk was asked for, every other one says `"usage": null`."""
        choice = {"index": output.index, **fields, "logprobs": logprobs, "finish_reason": reason}
        usage = {"usage": None} if self._include_usage else {}
        return {**self._chunk, "choices": [choice], **usage}
