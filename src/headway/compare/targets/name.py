"""How a user names a target."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from headway.compare.targets.providers import ANTHROPIC, OPENAI, PROVIDERS, Provider
from headway.errors import UsageError
from headway.modes import ModeName

CHAT_PATH, MESSAGES_PATH = "/v1/chat/completions", "/v1/messages"
SPEEDS = ("standard", "fast")
_SCHEMES = ("http://", "https://")
_NAMES = ", ".join(PROVIDERS)
FORMS = f"it should be a mode (standard, fast, spark), PROVIDER:MODEL[@TIER] with one of {_NAMES}, or URL#MODEL[@TIER]"
_PREFIX = re.compile(r"[a-z]{3,}:")  # not hf:, nor a drive's letter


@dataclass(frozen=True, slots=True)
class TargetName:
    """text: as the user wrote it. One of mode (of a running headway), provider and url (the server's root). model: None = the
    first one that the server lists. variant: what stands behind the @: a service tier, or Anthropic's speed. path: of the
    requests, below the root. dialect: see providers.py."""

    text: str
    dialect: str
    mode: ModeName | None = None
    provider: Provider | None = None
    url: str | None = None
    path: str = CHAT_PATH
    model: str | None = None
    variant: str | None = None


def is_target(text: str) -> bool:
    """Whether it is meant as a target (well formed or not), rather than as the name or path of a model to serve."""
    return text in set(ModeName) or _PREFIX.match(text) is not None


def parse_target(text: str) -> TargetName:
    """Raises UsageError that says what is wrong and how it should be."""
    if text in set(ModeName):
        return TargetName(text, OPENAI, mode=ModeName(text))
    if text.startswith(_SCHEMES):
        return _parse_url(text)
    name, colon, rest = text.partition(":")
    provider = PROVIDERS.get(name)
    if provider is None or not colon:
        raise UsageError(f"{text!r} is no target: {FORMS}")
    model, variant = _split_variant(text, rest, provider.dialect)
    if not model:
        raise UsageError(f"{text!r} names no model; write it like {name}:MODEL")
    return TargetName(text, provider.dialect, provider=provider, path=provider.path, model=model, variant=variant)


def _parse_url(text: str) -> TargetName:
    address, _, rest = text.partition("#")
    try:
        parts = urlsplit(address)
        if parts.port == 0 or not parts.hostname:
            raise ValueError
    except ValueError:
        raise UsageError(f"{text!r} has no host, or no proper port; write it like http://127.0.0.1:8000#MODEL") from None
    if parts.username is not None or parts.password is not None:
        raise UsageError("a key doesn't belong into a target's URL, where reports would show it: put it into HEADWAY_API_KEY")
    if parts.query:
        raise UsageError(f"{text!r}: a target's URL has no query; write it like http://127.0.0.1:8000#MODEL")
    path = parts.path.rstrip("/")
    dialect = ANTHROPIC if path.endswith(MESSAGES_PATH) else OPENAI
    requests = MESSAGES_PATH if dialect == ANTHROPIC else CHAT_PATH
    root = path.removesuffix(requests).removesuffix("/v1")
    model, variant = _split_variant(text, rest, dialect)
    url = f"{parts.scheme}://{parts.netloc}{root}"
    return TargetName(text, dialect, url=url, path=requests, model=model or None, variant=variant)


def _split_variant(text: str, rest: str, dialect: str) -> tuple[str, str | None]:
    """MODEL[@VARIANT]; a model's own name may have colons, slashes and spaces, but no @."""
    model, at, variant = rest.partition("@")
    if not at:
        return model.strip(), None
    if re.fullmatch(r"[A-Za-z0-9_-]+", variant) is None:
        raise UsageError(f"{text!r}: behind the @ should stand one word, such as fast or priority")
    if dialect == ANTHROPIC and variant not in SPEEDS:
        raise UsageError(f"{text!r}: Anthropic's API has the speeds {' and '.join(SPEEDS)}, not {variant!r}")
    return model.strip(), variant
