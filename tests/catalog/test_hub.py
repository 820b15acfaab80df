"""Models from the hub, against a stand-in on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headway.catalog import hub
from headway.catalog.hub import HubName, choose
from headway.errors import ModelError, UsageError

from . import tiny

COMMIT = "0123456789abcdef0123456789abcdef01234567"
IR_FILES = {
    "openvino_model.xml": b"<net/>",
    "openvino_model.bin": b"x",
    "openvino_tokenizer.xml": b"<net/>",
    "openvino_tokenizer.bin": b"x",
    "config.json": b'{"max_position_embeddings": 128}',
}
REPOS = {
    "org/one": {"README.md": b"# x", "one.Q4.gguf": tiny.gguf(), "mmproj-one.gguf": b"GGUF"},
    "org/two": {"a.gguf": tiny.gguf(), "b.gguf": tiny.gguf()},
    "org/ir": {f"int8/{name}": data for name, data in IR_FILES.items()} | {"pytorch_model.bin": b"not wanted"},
    "org/none": {"README.md": b"# x"},
    "org/broken": {"page.gguf": b"<html>"},
}


class StandIn(BaseHTTPRequestHandler):
    """As much of the hub as is needed to list a repository and to download from it."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/org/gated"):
            return self.send(403, b"{}", {"X-Error-Code": "GatedRepo"}, with_body)
        if path.startswith("/api/models/org/down"):
            return self.send(500, b"{}", {}, with_body)
        if match := re.fullmatch(r"/api/models/(\w+/\w+)(?:/revision/\w+)?", path):
            files = REPOS.get(match[1])
            if files is None:
                return self.send(404, b"{}", {"X-Error-Code": "RepoNotFound"}, with_body)
            facts = {"id": match[1], "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
            return self.send(200, json.dumps(facts).encode(), {}, with_body)
        if match := re.fullmatch(r"/api/models/(\w+/\w+)/tree/\w+", path):
            tree = [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for name, data in REPOS[match[1]].items()
            ]
            return self.send(200, json.dumps(tree).encode(), {}, with_body)
        if match := re.fullmatch(r"/(\w+/\w+)/resolve/\w+/(.+)", path):
            data = REPOS[match[1]][match[2]]
            headers = {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": COMMIT}
            return self.send(200, data, headers, with_body)
        return self.send(404, b"{}", {}, with_body)

    def send(self, status: int, body: bytes, headers: dict[str, str], with_body: bool) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body)), "Content-Type": "application/json"} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def pull(names: list[str], endpoint: str, home: Path) -> list[str]:
    """What pulling each name gives: the model's id and file, or the error. In a process of its own, because the library reads
    HF_ENDPOINT when it is imported."""
    code = (
        "import sys, json\n"
        "from headway.catalog.resolve import resolve\n"
        "from headway.errors import HeadwayError\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n"
        "        model = resolve(name)\n"
        "        print(model.id, model.kind, model.path.name)\n"
        "    except HeadwayError as error:\n"
        "        print(str(error).replace('\\n', '<NEWLINE>'))\n"
    )
    env = os.environ | {"HF_ENDPOINT": endpoint, "HEADWAY_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    env.pop("HF_HUB_OFFLINE", None)
    done = subprocess.run([sys.executable, "-c", code, *names], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_models_come_from_the_hub_and_stay(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["hf:org/one", "hf:org/two:b.gguf", "hf:org/ir"]
    came = ["one.Q4 gguf one.Q4.gguf", "b gguf b.gguf", "ir ir int8"]
    assert pull(names, endpoint, tmp_path) == came
    assert pull(names, "http://127.0.0.1:9", tmp_path) == came  # nobody answers there: what is here needs no network
    assert not list(tmp_path.rglob("pytorch_model.bin"))
    monkeypatch.setenv("HEADWAY_HOME", str(tmp_path))
    assert [str(name) for name, _ in hub.list_pulled()] == ["hf:org/ir:int8", "hf:org/one:one.Q4.gguf", "hf:org/two:b.gguf"]


def test_an_interrupted_folder_is_completed(endpoint: str, tmp_path: Path) -> None:
    assert pull(["hf:org/ir"], endpoint, tmp_path) == ["ir ir int8"]
    (weights,) = tmp_path.rglob("openvino_model.bin")
    weights.unlink()
    assert pull(["hf:org/ir"], endpoint, tmp_path) == ["ir ir int8"]


def test_what_cannot_be_pulled_is_one_line(endpoint: str, tmp_path: Path) -> None:
    repos = ["two", "two:c.gguf", "none", "missing", "gated", "down", "broken"]
    lines = pull([f"hf:org/{repo}" for repo in repos], endpoint, tmp_path)
    expected = [
        "org/two holds several models: add :FILE, one of a.gguf, b.gguf",
        "hf:org/two:c.gguf: there is no such model in org/two; it holds a.gguf, b.gguf",
        "org/none holds no GGUF file and no OpenVINO model",
        "there is no repository org/missing",
        "org/gated is gated",
        "hf:org/down could not be pulled: the hub answered 500",
        "is not a GGUF model: it is HTML",
    ]
    assert len(lines) == len(expected)
    assert [(line, words) for line, words in zip(lines, expected, strict=True) if words not in line] == []


def test_without_a_network_it_is_one_line(tmp_path: Path) -> None:
    (line,) = pull(["hf:org/one"], "http://127.0.0.1:9", tmp_path)
    assert line.startswith("hf:org/one could not be pulled: ")
    assert "<NEWLINE>" not in line


@pytest.mark.parametrize("name", ["hf:", "hf:x", "hf:a/b/c", "hf:a b/c", "hf:../x", "hf:a/b:../../etc", "hf:a/b:/etc"])
def test_what_is_no_name_on_the_hub(name: str) -> None:
    with pytest.raises(UsageError):
        choose(HubName.parse(name), [])


def test_a_model_in_parts_is_refused_before_it_is_downloaded() -> None:
    files = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
    for name in ("hf:a/b", "hf:a/b:m-00001-of-00002.gguf"):
        with pytest.raises(ModelError, match=r"part"):
            choose(HubName.parse(name), files)
