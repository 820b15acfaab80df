"""A model's words: its tokenizer and its chat template."""

from __future__ import annotations

from pathlib import Path

from headway.catalog.local import LocalModel
from headway.config import Settings
from headway.errors import ModelError, UsageError
from headway.text.template import ChatTemplate
from headway.text.tokenizer import Tokenizer


def load_texts(model: LocalModel, settings: Settings) -> tuple[Tokenizer, ChatTemplate | None]:
    """The tokenizer, and the template given by the settings, else the model's own; None if there is none at all. Raises
    ModelError or UsageError."""
    tokenizer = Tokenizer.load(model.path)
    return tokenizer, _template(model, settings, tokenizer)


def match_vocabulary(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Models may have more outputs than words (padding to a round number); those stand for no text. Raises ModelError."""
    missing = vocab_size - len(tokenizer.token_bytes)
    if missing < 0:
        raise ModelError(
            f"the tokenizer has {len(tokenizer.token_bytes)} tokens, the model only {vocab_size}: they don't belong together"
        )
    tokenizer.token_bytes.extend([b""] * missing)


def _template(model: LocalModel, settings: Settings, tokenizer: Tokenizer) -> ChatTemplate | None:
    path = settings.model.chat_template
    source = model.chat_template or tokenizer.chat_template
    if path is not None:
        source = _read(path)
    return ChatTemplate(source, bos=tokenizer.bos, eos=tokenizer.eos) if source else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the chat template {path} can't be read: {error}") from None
