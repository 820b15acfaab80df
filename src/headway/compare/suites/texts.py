"""Reading answers: how much freedom an answer has before it counts as another one."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FENCE = re.compile(r"```[\w+-]*[ \t]*\n(.*?)(?:\n?```|\Z)", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w])")
_SHOWN = 60


def shown(text: str) -> str:
    """The text in a fault: one line, not long."""
    line = " ".join(text.split())
    return repr(line if len(line) <= _SHOWN else line[:_SHOWN] + "...")


def bare(text: str) -> str:
    """Without what surrounds an answer but isn't part of it: white space, quotes, a code fence, one full stop at the end."""
    text = text.strip()
    if (fenced := _FENCE.fullmatch(text)) is not None:
        text = fenced.group(1).strip()
    text = text.strip("\"'`*").strip()
    return text[:-1].rstrip("\"'`* ") if text.endswith(".") and not text.endswith("..") else text


def code_of(text: str) -> str:
    """The code in an answer: its last fenced block (an unfinished one goes to the end), else all of it."""
    blocks = _FENCE.findall(text)
    return str(blocks[-1]) if blocks else text


def has_words(text: str, words: str) -> bool:
    """Whether these words stand in the text, as whole words, in whatever case."""
    return re.search(rf"(?<!\w){re.escape(words.casefold())}(?!\w)", text.casefold()) is not None


def exact(text: str, wanted: str) -> str | None:
    """The answer must be this text, and no other; case counts, what `bare` takes away and the number of spaces don't."""
    if " ".join(bare(text).split()) == " ".join(wanted.split()):
        return None
    return f"wanted {shown(wanted)}, got {shown(text)}"


def one_of(text: str, wanted: str, others: Iterable[str]) -> str | None:
    """The answer names what is wanted, and none of the others: naming several is no answer."""
    if not has_words(text, wanted):
        return f"wanted {shown(wanted)}, got {shown(text)}"
    for other in others:
        if other != wanted and has_words(_without(text, wanted), other):
            return f"names {shown(other)} beside {shown(wanted)}"
    return None


def number(text: str, wanted: int, given: Iterable[int] = ()) -> str | None:
    """The answer gives one number, the wanted one. The question's own numbers (`given`) may be said again, and what stands
    before the last equals sign isn't counted; two candidates are no answer."""
    said = text.rpartition("=")[2] if "=" in text else text
    found = list(dict.fromkeys(value for match in _NUMBER.findall(said) if (value := _value(match)) is not None))
    if not found:
        return f"wanted {wanted}, got {shown(text)}"
    repeated = {float(value) for value in given}
    candidates = [value for value in found if value not in repeated] or found[-1:]
    if candidates == [float(wanted)]:
        return None
    return f"wanted {wanted}, got {shown(text)}"


def _value(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _without(text: str, words: str) -> str:
    """What is left when the wanted words are taken out: "not at all" holds no "all" that was meant otherwise."""
    return re.sub(rf"(?<!\w){re.escape(words.casefold())}(?!\w)", " ", text.casefold())
