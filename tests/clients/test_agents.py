"""Coding agents against the real server and model: what they get is as silly as the model, but the protocol holds.

They come from npm, so this runs only when asked for (`make test-agents`). They start with an empty environment and a home of
their own, and know no other address than the server's. The model's context is small, so they are given a system prompt of a
line, and no tools.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cases.client import Client

from clients.programs import run

pytestmark = [
    pytest.mark.model,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("HEADWAY_TEST_AGENTS"), reason="runs with `make test-agents`"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm"),
]
PACKAGES = ("@anthropic-ai/claude-code@2.1.197", "@openai/codex@0.171.0")
MODELS = pytest.mark.parametrize("suffix", ["", "-fast"])
CODEX = """
model_provider = "headway"
model_instructions_file = "{home}/instructions.md"
approval_policy = "never"
sandbox_mode = "read-only"
web_search = "disabled"
[model_providers.headway]
name = "headway"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "HEADWAY_KEY"
request_max_retries = 0
stream_max_retries = 0
[features]
shell_tool = false
unified_exec = false
apply_patch_freeform = false
plugins = false
apps = false
multi_agent = false
"""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the agents' commands."""
    folder = tmp_path_factory.mktemp("agents")
    subprocess.run(["npm", "install", "--no-fund", "--no-audit", "--prefix", str(folder), *PACKAGES], check=True, timeout=600)
    return folder / "node_modules" / ".bin"


@MODELS
def test_claude_code(server: Client, commands: Path, tmp_path: Path, suffix: str) -> None:
    command = [str(commands / "claude"), "-p", "What is the capital of France? Answer in one word.", "--tools", ""]
    command += ["--system-prompt", "You are a helpful assistant.", "--model", server.model + suffix, "--output-format", "json"]
    told = run(
        command,
        tmp_path / "home",
        {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "made-up",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "1024",  # an answer that is cut is asked for again, and then an error
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )
    result = json.loads(told)
    assert result["subtype"] == "success" and not result["is_error"]
    assert result["result"].strip()
    assert result["usage"]["output_tokens"] > 0
    assert result["usage"]["speed"] == ("fast" if suffix else "standard")


@MODELS
def test_codex(server: Client, commands: Path, tmp_path: Path, suffix: str) -> None:
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "config.toml").write_text(CODEX.format(home=home, url=server.url))
    (home / "instructions.md").write_text("You are a helpful assistant.")
    command = [str(commands / "codex"), "exec", "--skip-git-repo-check", "-c", f'model="{server.model}{suffix}"']
    told = run([*command, "Say hello in one word."], home, {"HEADWAY_KEY": "made-up"})
    assert told.strip()
