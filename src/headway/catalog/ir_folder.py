"""What an OpenVINO IR folder holds, and whether it can be served."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.errors import ModelError

_NEEDED = ("openvino_model.xml", "openvino_model.bin", "openvino_tokenizer.xml", "openvino_tokenizer.bin")


@dataclass(frozen=True, slots=True)
class IrInfo:
    """Facts of an IR folder. context_length: tokens, None if config.json doesn't say. eos_ids: as generation_config.json (or
    config.json) has them, perhaps none. chat_template: from chat_template.jinja or tokenizer_config.json, or None.
    file_size: bytes of the files that make the model. licence: as the model card states it, or None."""

    path: Path
    context_length: int | None
    eos_ids: frozenset[int]
    chat_template: str | None
    file_size: int
    licence: str | None


def inspect(path: Path) -> IrInfo:
    """Raises ModelError, with one line on what is missing or can't be read."""
    check(path)
    config = _json_object(path / "config.json")
    generation = _json_object(path / "generation_config.json")
    return IrInfo(
        path=path,
        context_length=_context_length(path, config),
        eos_ids=_eos_ids(path, generation.get("eos_token_id", config.get("eos_token_id"))),
        chat_template=_chat_template(path),
        file_size=sum((path / name).stat().st_size for name in _NEEDED),
        licence=_licence(path / "README.md"),
    )


def model_files(path: Path) -> list[Path]:
    """The files that the model's text depends on, in a fixed order."""
    return [path / name for name in _NEEDED]


def check(path: Path) -> None:
    """Raises ModelError unless `path` is a folder with a whole IR in it."""
    if not path.is_dir():
        raise ModelError(f"there is no folder {path}")
    missing = [name for name in _NEEDED if not (path / name).is_file()]
    if missing:
        raise ModelError(f"{path} is not a whole OpenVINO model: {', '.join(missing)} missing from it")
    empty = [name for name in _NEEDED if (path / name).stat().st_size == 0]
    if empty:
        raise ModelError(f"{path} is damaged: {', '.join(empty)} empty; get it again")


def _context_length(path: Path, config: dict[str, Any]) -> int | None:
    text_config = config.get("text_config")
    inner = text_config if isinstance(text_config, dict) else config
    length = inner.get("max_position_embeddings")
    if length is not None and (not isinstance(length, int) or length < 1):
        raise ModelError(f"{path / 'config.json'}: max_position_embeddings is {length!r}; it has to be a whole number >= 1")
    return length


def _eos_ids(path: Path, value: Any) -> frozenset[int]:
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(token, int) and token >= 0 for token in ids):
        raise ModelError(f"{path}: eos_token_id is {value!r}; it has to be a token id or a list of them")
    return frozenset(ids)


def _chat_template(path: Path) -> str | None:
    own_file = path / "chat_template.jinja"
    if own_file.is_file():
        return _read(own_file)
    template = _json_object(path / "tokenizer_config.json").get("chat_template")
    if isinstance(template, list):  # several, by name
        named = {entry["name"]: entry["template"] for entry in template if isinstance(entry, dict)}
        template = named.get("default")
    return template if isinstance(template, str) and template else None


def _licence(card: Path) -> str | None:
    """`license:` in the head of the model card, which is YAML between two lines of dashes."""
    if not card.is_file():
        return None
    lines = _read(card).splitlines()
    if not lines or lines[0].strip() != "---":
        return None
    for line in lines[1:200]:
        if line.strip() == "---":
            break
        key, _, value = line.partition(":")
        if key == "license" and value.strip():
            return value.strip()
    return None


def _json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if there is no such file."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} has to hold a JSON object")
    return value


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ModelError(f"{path} can't be read: {error.strerror or error}") from None
