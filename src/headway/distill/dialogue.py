"""Prompts as the model gets them, and questions that it makes up."""

from __future__ import annotations

from collections.abc import Sequence

from headway.distill.prompts import Messages
from headway.errors import RequestError
from headway.text.template import ChatTemplate
from headway.text.tokenizer import Tokenizer

_MARK = "QUESTION-7c1f"
SHORTEST_QUESTION = 8
"""Characters."""


class Dialogue:
    """template: None for a model without one; messages are then put one after the other.

    opening: the tokens after which the model writes what a user would; None if its template doesn't let one tell.
    eos_ids: the tokens that end an answer.
    """

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate | None) -> None:
        self.eos_ids = tokenizer.eos_ids
        self._tokenizer = tokenizer
        self._template = template
        before, self._end = self._around_a_question()
        self.opening = tokenizer.encode_prompt(before) if before is not None else None

    def prompt(self, messages: Messages) -> list[int]:
        """Raises RequestError if the template or the tokenizer refuses them."""
        if self._template is not None:
            return self._tokenizer.encode_prompt(self._template.render(messages))
        texts = [m.get("content") for m in messages]
        if not all(isinstance(text, str) for text in texts):
            raise RequestError(400, "the model has no chat template, so a message's content has to be text")
        return self._tokenizer.encode_prompt("\n\n".join(map(str, texts)))

    def is_asked(self, question: Sequence[int]) -> bool:
        """Whether the question that the model makes up ends here."""
        return question[-1] in self.eos_ids or (self._end != "" and self._end in self._text(question[-16:]))

    def question(self, tokens: Sequence[int]) -> str | None:
        """The text of a question that has ended; None if it isn't worth an answer."""
        text = self._text([token for token in tokens if token not in self.eos_ids])
        text = text.partition(self._end)[0].strip() if self._end else text.strip()
        return text if len(text) >= SHORTEST_QUESTION and "\ufffd" not in text else None

    def _text(self, tokens: Sequence[int]) -> str:
        return b"".join(self._tokenizer.token_bytes[token] for token in tokens).decode("utf-8", "replace")

    def _around_a_question(self) -> tuple[str | None, str]:
        """What the template writes before a user's text, and the first word of what it writes after it."""
        if self._template is None:
            return None, ""
        try:
            parts = self._template.render([{"role": "user", "content": _MARK}]).split(_MARK)
        except RequestError:
            return None, ""
        if len(parts) != 2:
            return None, ""
        return parts[0], (parts[1].split() or [""])[0]
