"""Tokens to text, piece by piece: whole characters only, stop strings held back and cut."""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Sequence


class TextStream:
    """One output's text. push() each token in order; it returns the text that can be shown now.

    Never returns half a character (an incomplete UTF-8 sequence waits for its next token; at the end it is left out), never a
    stop string, nor a tail that is the beginning of one. Bytes that can't become a character whatever follows are U+FFFD, as
    `bytes.decode("utf-8", "replace")` has it. After `stopped` is set, everything later is ignored.

    Of several stop strings the one that is complete first wins, and of those that end on the same character the longest: so
    the outcome does not depend on how the text was cut into tokens. An empty stop string is ignored.
    """

    def __init__(self, token_bytes: Sequence[bytes], stops: Sequence[str] = ()) -> None:
        self.stopped: str | None = None
        self._token_bytes = token_bytes
        self._half = b""  # the beginning of a character whose other bytes are still to come
        self._held = ""  # text that may still become a stop string
        self._matchers = [_Matcher(stop) for stop in stops if stop]
        self._first = frozenset(matcher.stop[0] for matcher in self._matchers)

    def push(self, token: int, *, heed_stops: bool = True) -> str:
        """The text that `token` makes showable.

        With `heed_stops` false the token's text is shown at once: a stop string has to lie wholly in what comes later.
        """
        data = self._half + self._token_bytes[token] if self._half else self._token_bytes[token]
        text, used = utf_8_decode(data, "replace", False)
        self._half = data[used:]
        if not self._matchers:
            return text
        if self.stopped is not None:
            return ""
        if not heed_stops:
            return self._release() + text
        if not self._held and self._first.isdisjoint(text):
            return text
        return self._match(text)

    def flush(self) -> str:
        """What was held back (a false beginning of a stop string), once no more tokens come."""
        return "" if self.stopped is not None else self._release()

    def _release(self) -> str:
        held, self._held = self._held, ""
        for matcher in self._matchers:
            matcher.matched = 0
        return held

    def _match(self, text: str) -> str:
        held_length = len(self._held)
        text = self._held + text
        for end in range(held_length, len(text)):
            complete = [matcher.stop for matcher in self._matchers if matcher.feed(text[end])]
            if complete:
                self.stopped = max(complete, key=len)
                self._held = ""
                return text[: end + 1 - len(self.stopped)]
        cut = len(text) - max(matcher.matched for matcher in self._matchers)
        self._held = text[cut:]
        return text[:cut]


class _Matcher:
    """Finds one string in a text that comes character by character (Knuth, Morris and Pratt): constant work per character
    on average, however the text and the string repeat themselves."""

    __slots__ = ("_fallback", "matched", "stop")

    def __init__(self, stop: str) -> None:
        self.stop = stop
        self.matched = 0  # how many characters of `stop` the text ends with now
        self._fallback = _border_lengths(stop)

    def feed(self, char: str) -> bool:
        """Whether the text ends with the whole string after `char`."""
        matched = self.matched
        while matched and self.stop[matched] != char:
            matched = self._fallback[matched - 1]
        if self.stop[matched] == char:
            matched += 1
        self.matched = matched
        return matched == len(self.stop)


def _border_lengths(string: str) -> list[int]:
    """For each beginning of `string`, the length of its longest proper beginning that is also its end."""
    borders = [0] * len(string)
    length = 0
    for i in range(1, len(string)):
        while length and string[i] != string[length]:
            length = borders[length - 1]
        if string[i] == string[length]:
            length += 1
        borders[i] = length
    return borders
