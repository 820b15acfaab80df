"""Code from models: what passes, and what the sandbox keeps it from."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from headway.compare.suites import code_editing
from headway.compare.suites.code_editing import Edit, fault
from headway.compare.suites.sandbox import has_no_network, run

from ..answers import said

FORGERY = """
import os
for fd in range(3, 9):
    try:
        open(fd, "w").write('{"fault": null, "results": [6]}')
    except OSError:
        pass
os._exit(0)
"""
AREA = Edit("", "", "area", [((2, 3), 6), ((4, 5), 20)])


@pytest.mark.parametrize(
    "text",
    [
        "def area(width, height):\n    return width * height\n",
        "Sure!\n```python\ndef area(w, h):\n    return w * h\n```\nIt multiplies.",
        "import math\narea = lambda *sides: math.prod(sides)",
    ],
)
def test_right_code_passes(text: str) -> None:
    assert fault(text, AREA) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def area(w, h):\n    return w + h", "should be 6"),
        ("def area(w, h):\n    return 6", "should be 20"),
        ("def area(w, h):\n    return float(w * h)", "should be 6"),
        ("def area(w):\n    return w", "TypeError"),
        ("def surface(w, h):\n    return w * h", "no function area"),
        ("def area(w, h:\n", "SyntaxError"),
        ("The area is w * h.", "SyntaxError"),
        ("", "no function area"),
        ("def area(w, h):\n    return object()", "no plain data"),
        ("class Any:\n    def __eq__(self, other): return True\ndef area(w, h):\n    return Any()", "no plain data"),
        ("import os\nos._exit(0)", "without a result"),
        ("raise SystemExit(0)", "SystemExit"),
        ("import os\nos.write(1, b'{}')\ndef area(w, h):\n    return w", "should be"),
        (
            FORGERY,
            "",
        ),
    ],
)
def test_wrong_code_and_tricks_fail(text: str, why: str) -> None:
    assert why in (fault(text, AREA) or "passed!")
    assert fault(text, AREA) is not None


def test_code_has_its_time_and_no_more() -> None:
    ran = run("def f():\n    while True: pass", "f", [()], seconds=0.7)
    assert ran.fault == "it took over 0.7 s"


def test_code_has_its_memory_and_no_more() -> None:
    assert "MemoryError" in (run("def f():\n    return len('x' * (4 << 30))", "f", [()]).fault or "")


def test_long_results_are_refused() -> None:
    assert run("def f():\n    return 'x' * 200_000", "f", [()]).fault == "its results are too long"


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    return open('/etc/passwd').read()",
        "import subprocess\ndef f():\n    return subprocess.run(['id'], capture_output=True).stdout.decode()",
        "import os\ndef f():\n    return os.system('true')",
        "import os\ndef f():\n    return os.fork()",
        "import socket\ndef f():\n    socket.create_connection(('127.0.0.1', 9), 1)",
        "import ctypes\ndef f():\n    return ctypes.CDLL(None).getpid()",
        "import os\ndef f():\n    os.kill(os.getppid(), 9)",
    ],
)
def test_code_gets_at_nothing_outside(code: str) -> None:
    ran = run(code, "f", [()])
    assert ran.results == ()
    assert ran.fault is not None


def test_code_changes_no_files_of_the_users(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    for attempt in (f"open({str(victim)!r}, 'w')", f"os.remove({str(victim)!r})", f"os.truncate({str(victim)!r}, 0)"):
        assert run(f"import os\ndef f():\n    {attempt}", "f", [()]).fault is not None
    assert victim.read_text() == "kept"


def test_code_sees_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    names = run("import os\ndef f():\n    return sorted(os.environ)", "f", [()]).results[0]
    assert "OPENAI_API_KEY" not in names
    assert "HOME" not in names


@pytest.mark.skipif(not has_no_network(), reason="no namespaces for users here")
def test_code_runs_apart_from_other_processes() -> None:
    assert run("import os\ndef f():\n    return os.getpid()", "f", [()]).results[0] < 10 < os.getpid()


SOLUTIONS = {
    3: "def mean(v):\n    v = [x for x in v if x is not None]\n    return sum(v) / len(v) if v else MISSING\n",
    4: (
        "def ranking(rows):\n    rows = sorted(rows, key=lambda r: (-r[1], r[2], r[0]))\n    out = []\n"
        "    for i, r in enumerate(rows):\n        same = i and rows[i - 1][1:] == r[1:]\n"
        "        out.append([out[-1][0] if same else i + 1, r[0]])\n    return out\n"
    ),
    5: """
def value(text):
    text, at = text.strip(), [0]
    def skip():
        while at[0] < len(text) and text[at[0]] == ' ': at[0] += 1
    def peek():
        skip()
        return text[at[0]] if at[0] < len(text) else ''
    def take():
        c = peek(); at[0] += 1; return c
    def atom():
        if peek() == '(':
            take(); v = total()
            if take() != ')': raise ValueError
            return v
        skip(); s = at[0]
        while at[0] < len(text) and text[at[0]].isdigit(): at[0] += 1
        return int(text[s:at[0]])
    def power():
        v = atom()
        if peek() == '^': take(); return v ** unary()
        return v
    def unary():
        if peek() == '-': take(); return -unary()
        return power()
    def product():
        v = unary()
        while peek() == '*': take(); v *= unary()
        return v
    def total():
        v = product()
        while peek() in ('+', '-') and peek(): v = v + product() if take() == '+' else v - product()
        return v
    try:
        v = total()
        return v if peek() == '' else None
    except ValueError:
        return None
""",
}


@pytest.mark.parametrize("level", sorted(SOLUTIONS))
def test_hard_edits_can_be_done(level: int) -> None:
    made = code_editing.make(Random(5), level)
    prompt = str(made.ask.messages[0]["content"])
    missing = prompt.partition("return ")[2].partition("Make it return ")[2].partition(" ")[0]
    assert made.judge(said(SOLUTIONS[level].replace("MISSING", missing or "0"))).fault is None
    assert not made.judge(said(prompt.partition("```")[2].partition("```")[0].removeprefix("python\n"))).correct
