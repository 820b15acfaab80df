"""One answer, in some dialect: the deltas of its choices become events, or one whole body.

What is the same in every dialect is decided here: which blocks an output has, where log probabilities go, how a choice ends.
A dialect says how each of these looks. Events are objects; `sse.py` frames them for HTTP, a WebSocket sends them as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from headway.errors import RequestError
from headway.modes import ModeName
from headway.runtime.api import Delta, TokenLogprob
from headway.server.output import Block, CallBlock, Output
from headway.server.tally import Tally
from headway.text.parts import CallStart, Part, PlainReader, Reader, Text

Json = dict[str, Any]


class Renderer(ABC):
    """Feed it every delta; the order of the hooks within a choice is begin, (open, piece..., close)..., finish, and at last
    `end` of the whole answer. Each returns events, often none.

    mode: the one that is served; requested: the one that was asked for, None if it is the same. choices_per_prompt:
    the n of the request. new_reader: for each choice, what tells text from
    tool calls.
    """

    ends_with_done = False
    """Whether a stream is closed by `data: [DONE]`."""

    def __init__(
        self,
        mode: ModeName,
        choices_per_prompt: int = 1,
        new_reader: Callable[[], Reader] = PlainReader,
        requested: ModeName | None = None,
    ) -> None:
        self.tally = Tally(mode, choices_per_prompt, requested or mode)
        self._new_reader = new_reader
        self._outputs: dict[int, Output] = {}
        self._readers: dict[int, Reader] = {}
        self._held: dict[int, list[TokenLogprob]] = {}

    @property
    def outputs(self) -> list[Output]:
        """By choice."""
        return [self._outputs[index] for index in sorted(self._outputs)]

    def feed(self, choice: int, delta: Delta) -> list[Json]:
        """The events of one delta, which is no failure."""
        events: list[Json] = []
        output = self._outputs.get(choice)
        if output is None:
            output = self._outputs[choice] = Output(choice, delta.cached_tokens, delta.prompt_logprobs)
            self._readers[choice] = self._new_reader()
            self._held[choice] = []
            events += self.begin(output)
        if delta.logprobs:
            output.logprobs += delta.logprobs
            self._held[choice] += delta.logprobs
        reader = self._readers[choice]
        for part in reader.push(delta.text):
            events += self._part(output, part)
        if delta.finish_reason is not None:
            for part in reader.flush():
                events += self._part(output, part)
            events += self._finish(output, delta)
        return events

    def _part(self, output: Output, part: Part) -> list[Json]:
        events: list[Json] = []
        if isinstance(part, CallStart):
            return self._open(output, CallBlock(name=part.name, index=len(output.calls)))
        if isinstance(part, Text) and (not output.blocks or isinstance(output.blocks[-1], CallBlock)):
            events += self._open(output, Block())
        output.blocks[-1].pieces.append(part.text)
        return events + self.piece(output, part.text, self._take_held(output))

    def _open(self, output: Output, block: Block) -> list[Json]:
        events = self.close(output) if output.blocks else []
        output.blocks.append(block)
        return events + self.open(output)

    def _finish(self, output: Output, delta: Delta) -> list[Json]:
        events: list[Json] = []
        output.end(delta)  # before the last block is closed: a dialect may say there whether it is all there
        if self._held[output.index]:
            events += self.piece(output, "", self._take_held(output))
        if output.blocks:
            events += self.close(output)
        assert delta.usage is not None and delta.timing is not None, "a last delta carries usage and timing"
        self.tally.add(output.index, delta.usage, delta.timing)
        return events + self.finish(output, delta)

    def _take_held(self, output: Output) -> Sequence[TokenLogprob]:
        held, self._held[output.index] = self._held[output.index], []
        return held

    # --- what a dialect says ------------------------------------------------------------------------------------------------

    @abstractmethod
    def begin(self, output: Output) -> list[Json]:
        """Before a choice's first block."""

    def open(self, output: Output) -> list[Json]:
        """Before the first piece of `output.blocks[-1]`."""
        return []

    @abstractmethod
    def piece(self, output: Output, text: str, logprobs: Sequence[TokenLogprob]) -> list[Json]:
        """More of `output.blocks[-1]`; logprobs: of all tokens since the last piece. Text without a block comes only as "", at
        the end, to carry log probabilities."""

    def close(self, output: Output) -> list[Json]:
        """After the last piece of `output.blocks[-1]`."""
        return []

    @abstractmethod
    def finish(self, output: Output, delta: Delta) -> list[Json]:
        """`output` is complete; `delta` was its last."""

    def end(self) -> list[Json]:
        """Every choice is complete."""
        return []

    @abstractmethod
    def failure(self, error: RequestError) -> list[Json]:
        """The last events of a stream that fails, in place of all that would have come."""

    def silence(self) -> list[Json]:
        """What shows in a long pause that the stream is alive."""
        return []

    @abstractmethod
    def whole(self) -> Json:
        """The answer as one body, when every choice is complete."""
