"""Simon Willison's `llm`, a command line of its own, which is told of headway's models by a file."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from cases.client import Client, Json
from server.live import live

from clients.programs import INSTALLED, ONLY_WHEN_ASKED, attempt

pytestmark = ONLY_WHEN_ASKED
MODELS = """
- model_id: headway
  model_name: {model}
  api_base: {url}/v1
  service_tier: true
  supports_tools: true
  supports_schema: true
- model_id: headway-fast
  model_name: {model}-fast
  api_base: {url}/v1
- model_id: headway-responses
  model_name: {model}
  api_base: {url}/v1
  responses: true
  service_tier: true
- model_id: headway-text
  model_name: {model}
  api_base: {url}/v1
  completion: true
- model_id: nobody
  model_name: nobody
  api_base: {url}/v1
"""
CALL = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'


class Llm:
    def __init__(self, home: Path, server: Client) -> None:
        self._home = home
        (home / "llm").mkdir()
        (home / "llm" / "extra-openai-models.yaml").write_text(MODELS.format(url=server.url, model=server.model))

    def try_(self, *arguments: str) -> CompletedProcess[str]:
        assert INSTALLED is not None
        command = [str(Path(INSTALLED).resolve() / "venv" / "bin" / "llm"), *arguments]
        return attempt(command, self._home, {"LLM_USER_PATH": str(self._home / "llm")})

    def __call__(self, model: str, *arguments: str) -> str:
        """What it printed."""
        done = self.try_("prompt", "-m", model, *arguments, "Say hello.")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def last(self) -> Json:
        """Of its log."""
        (entry,) = json.loads(self.try_("logs", "-n", "1", "--json").stdout)
        known: Json = entry
        return known


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory, server: Client) -> Llm:
    return Llm(tmp_path_factory.mktemp("home"), server)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("model", "tier", "served"),
    [
        ("headway", None, "default"),
        ("headway", "priority", "priority"),
        ("headway", "fast", "fast"),
        ("headway-fast", None, "priority"),
        ("headway-responses", "fast", "fast"),
        ("headway-text", None, "default"),
    ],
)
def test_every_speed(llm: Llm, server: Client, model: str, tier: str | None, served: str, stream: bool) -> None:
    mode = "standard" if served == "default" else "fast"
    before = server.metric("headway_served_requests_total", requested=mode, served=mode)
    options = [
        "-o",
        "max_tokens",
        "8",
        "-o",
        "temperature",
        "0",
        *(["-o", "service_tier", tier] if tier else []),
        *([] if stream else ["--no-stream"]),
    ]
    assert llm(model, *options).strip()
    assert server.metric("headway_served_requests_total", requested=mode, served=mode) == before + 1
    entry = llm.last()
    if model.startswith("headway-") and model != "headway-fast":
        return  # it keeps no tokens of completions, nor of a response that max_tokens has ended
    assert entry["output_tokens"] == 8 and entry["input_tokens"] > 0
    if not stream:
        assert entry["response_json"]["service_tier"] == served


def test_a_conversation_goes_on(llm: Llm) -> None:
    llm("headway", "-o", "max_tokens", "8")
    first = llm.last()
    assert llm("headway", "-c", "-o", "max_tokens", "8").strip()
    assert llm.last()["conversation_id"] == first["conversation_id"]
    assert llm.last()["input_tokens"] > first["input_tokens"]


def test_a_schema(llm: Llm) -> None:
    told: Any = json.loads(llm("headway", "--schema", "grown bool", "-o", "max_tokens", "60"))
    assert set(told) >= {"grown"} and isinstance(told["grown"], bool)


def test_errors_are_a_line(llm: Llm) -> None:
    missing = llm.try_("prompt", "-m", "nobody", "hi")
    assert missing.returncode == 1 and 'The model "nobody" does not exist' in missing.stderr
    long = llm.try_("prompt", "-m", "headway", "word " * 10_000)
    assert long.returncode == 1 and "maximum context length is 8192 tokens" in long.stderr


def test_a_python_function_as_a_tool(tmp_path: Path) -> None:
    add = 'def add(a: int, b: int) -> int:\n    "Adds."\n    return a + b'
    with live({"tokens": list(CALL.encode())}) as (_, client):
        done = Llm(tmp_path, client).try_("prompt", "-m", "headway", "--functions", add, "--td", "--cl", "2", "Add 2 and 3.")
    assert "add({'a': 2, 'b': 3})" in done.stderr and "\n  5" in done.stderr


def test_a_server_without_a_seat(tmp_path: Path) -> None:
    with live({"tokens": [120]}, seats=0) as (_, client):
        done = Llm(tmp_path, client).try_("prompt", "-m", "headway", "hi")
    assert done.returncode == 1 and "429" in done.stderr
