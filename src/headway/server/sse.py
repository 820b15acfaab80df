"""Chunks of a stream, glued from parts that are serialised once per choice: only the text is encoded per token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any

from headway.modes import ModeName
from headway.runtime.api import Delta, TokenLogprob
from headway.server.dialect import Envelope, compact
from headway.server.tally import Tally, headway_info, timing_info

Describe = Callable[[int, Sequence[TokenLogprob]], Any]


class ChunkWriter:
    """One stream's chunks, of either dialect.

    text_key: what leads to the text within a choice, e.g. `"delta":{"content":`; text_end closes it.
    describe: the value of "logprobs" for a choice's next tokens, or None if they were not asked for.
    include_usage: the client asked for a usage chunk, so that every other chunk says `"usage":null`.
    """

    def __init__(
        self, envelope: Envelope, kind: str, text_key: str, text_end: str, describe: Describe | None, include_usage: bool
    ) -> None:
        self._opening = envelope.opening(kind)
        self._text_key = text_key
        self._text_end = text_end
        self._describe = describe
        self._include_usage = include_usage
        self._usage_null = ',"usage":null' if include_usage else ""
        self._closing = f'{text_end},"logprobs":null,"finish_reason":null}}]{self._usage_null}}}\n\n'
        self._heads: dict[int, str] = {}

    def piece(self, choice: int, text: str, logprobs: Sequence[TokenLogprob]) -> bytes:
        head = self._heads.get(choice)
        if head is None:
            head = self._heads[choice] = f'{self._opening}{{"index":{choice},{self._text_key}'
        if self._describe is None:
            return f"{head}{encode_basestring_ascii(text)}{self._closing}".encode("ascii")
        closing = (
            f'{self._text_end},"logprobs":{compact(self._describe(choice, logprobs))},"finish_reason":null}}]'
            f"{self._usage_null}}}\n\n"
        )
        return f"{head}{encode_basestring_ascii(text)}{closing}".encode("ascii")

    def choice(self, value: dict[str, Any], extra: dict[str, Any] | None = None) -> bytes:
        """Any other chunk of one choice; `extra` goes beside "choices"."""
        more = "".join(f",{compact(key)}:{compact(field)}" for key, field in (extra or {}).items())
        return f"{self._opening}{compact(value)}]{self._usage_null}{more}}}\n\n".encode("ascii")

    def finish(self, value: dict[str, Any], mode: ModeName, delta: Delta) -> bytes:
        """The chunk of a choice that carries its finish_reason; `delta` is its last one."""
        assert delta.usage is not None and delta.timing is not None, "a last delta carries usage and timing"
        extra = {"time_info": timing_info(delta.timing), "headway": headway_info(mode, [delta.usage])}
        return self.choice(value, extra)

    def usage(self, tally: Tally) -> bytes:
        if not self._include_usage:
            return b""
        rest = f'],"usage":{compact(tally.usage())},"time_info":{compact(tally.time_info())}}}\n\n'
        return (self._opening + rest).encode("ascii")
