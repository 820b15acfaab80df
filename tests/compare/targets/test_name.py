"""How targets are named."""

from __future__ import annotations

import pytest

from headway.compare.targets.name import is_target, parse_target
from headway.errors import UsageError
from headway.modes import ModeName


def test_modes_of_headway() -> None:
    assert parse_target("fast").mode is ModeName.FAST
    assert parse_target("spark").mode is ModeName.SPARK


@pytest.mark.parametrize(
    ("text", "provider", "model", "variant"),
    [
        ("openai:gpt-5.3-codex", "openai", "gpt-5.3-codex", None),
        ("openai:gpt-5.3-codex@priority", "openai", "gpt-5.3-codex", "priority"),
        ("openai:ft:gpt-4o:acme::abc", "openai", "ft:gpt-4o:acme::abc", None),
        ("anthropic:claude-opus-5-5@fast", "anthropic", "claude-opus-5-5", "fast"),
        ("groq:openai/gpt-oss-120b", "groq", "openai/gpt-oss-120b", None),
        ("cerebras:llama-4", "cerebras", "llama-4", None),
    ],
)
def test_models_of_a_provider(text: str, provider: str, model: str, variant: str | None) -> None:
    name = parse_target(text)
    assert name.provider is not None
    assert (name.provider.name, name.model, name.variant) == (provider, model, variant)
    assert name.provider.key_env == f"{provider.upper()}_API_KEY"


@pytest.mark.parametrize(
    ("text", "url", "path", "model", "variant"),
    [
        ("http://h:1#m", "http://h:1", "/v1/chat/completions", "m", None),
        ("http://h:1/v1/#m@fast", "http://h:1", "/v1/chat/completions", "m", "fast"),
        ("http://h:1", "http://h:1", "/v1/chat/completions", None, None),
        ("https://h/api/v1#org/m:q4", "https://h/api", "/v1/chat/completions", "org/m:q4", None),
        ("http://[::1]:8000/v1/chat/completions#m", "http://[::1]:8000", "/v1/chat/completions", "m", None),
        ("http://h:1/v1/messages#m@fast", "http://h:1", "/v1/messages", "m", "fast"),
    ],
)
def test_models_at_a_url(text: str, url: str, path: str, model: str | None, variant: str | None) -> None:
    name = parse_target(text)
    assert (name.url, name.path, name.model, name.variant) == (url, path, model, variant)
    assert name.provider is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("opanai:gpt", "PROVIDER:MODEL"),
        ("openai:", "names no model"),
        ("openai:@fast", "names no model"),
        ("openai:m@", "one word"),
        ("openai:m@a b", "one word"),
        ("anthropic:m@priority", "standard and fast"),
        ("http://h:1/v1/messages#m@flex", "standard and fast"),
        ("http://", "no host"),
        ("http://h:99999#m", "port"),
        ("http://h:1?x=1#m", "no query"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, says: str) -> None:
    assert is_target(text)
    with pytest.raises(UsageError, match=says) as caught:
        parse_target(text)
    assert "\n" not in str(caught.value)


def test_a_key_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        parse_target("https://user:sk-secret@h/v1#m")
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["smollm2", "hf:org/repo", "hf:org/repo:file.gguf", "/models/x.gguf", r"C:\models\x.gguf", "./fast"]
)
def test_models_to_serve_are_no_targets(text: str) -> None:
    assert not is_target(text)
