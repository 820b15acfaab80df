"""What the model is asked: made up here, or a user's own."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from headway.compare.prompts import PROMPTS
from headway.distill.data_file import read_prompts
from headway.distill.facts import short_question
from headway.distill.library import LONGEST, SHORTEST, standard_library
from headway.distill.prompts import Given, MadeUp, Prompt, asked
from headway.distill.topics import TASKS, TOPICS
from headway.errors import UsageError


def text(prompt: Prompt) -> str:
    assert prompt.messages is not None
    (message,) = prompt.messages
    return str(message["content"])


def test_the_same_number_is_always_the_same_prompt() -> None:
    numbers = range(200)
    assert [MadeUp().at(n) for n in numbers] == [MadeUp().at(n) for n in reversed(numbers)][::-1]
    assert [MadeUp().at(n) for n in numbers] != [MadeUp(1).at(n) for n in numbers]
    assert MadeUp().name != MadeUp(1).name


def test_they_are_of_many_kinds_and_rarely_the_same() -> None:
    prompts = [MadeUp().at(n) for n in range(1000)]
    own = sum(p.messages is None for p in prompts)
    assert 140 < own < 210, "a third of those that aren't short is for the model to make up"
    texts = [text(p) for p in prompts if p.messages is not None]
    assert len(set(texts)) > 0.75 * len(texts)
    for piece in ("def ", "Python", "km", TOPICS[0], "capital", "plural", "positive or negative", "JSON", " plus "):
        assert any(piece in t for t in texts), piece


def test_none_of_the_benchmarks_prompts_is_among_them() -> None:
    made_up = {text(p) for p in map(MadeUp().at, range(3000)) if p.messages is not None}
    assert not made_up & set(PROMPTS)
    assert [m[0]["content"] for m in MadeUp().held_out] == list(PROMPTS)


def test_topics_are_whole_phrases() -> None:
    assert len(TOPICS) == len(set(TOPICS)) > 100
    assert all(t == t.strip() and "\n" not in t and "  " not in t for t in TOPICS)
    assert all(task.count("{}") == 1 for task in TASKS)


def test_pythons_library_gives_texts_and_functions_without_being_imported() -> None:
    library = standard_library()
    assert len(library.texts) > 500
    assert len(library.functions) > 200
    assert all(SHORTEST < len(piece) < LONGEST for piece in library.texts + library.functions)
    assert all(f.startswith(("def ", "async def ")) for f in library.functions)


def test_ones_own_prompts_come_in_turn_and_then_again() -> None:
    prompts = Given([asked(f"question {n}") for n in range(100)], "mine")
    assert len(prompts.held_out) == 5
    first = [prompts.at(n) for n in range(95)]
    assert not any(p.again for p in first)
    assert {text(p) for p in first} | {m[0]["content"] for m in prompts.held_out} == {f"question {n}" for n in range(100)}
    assert [prompts.at(95 + n) for n in range(95)] == [Prompt(p.messages, again=True) for p in first]


def test_of_a_few_prompts_none_is_held_out_but_the_benchmarks_are() -> None:
    prompts = Given([asked("one"), asked(PROMPTS[3]), asked("two")], "mine")
    assert [m[0]["content"] for m in prompts.held_out] == list(PROMPTS)
    assert {text(prompts.at(n)) for n in range(20)} == {"one", "two"}


def given(tmp_path: Path, content: str | bytes, name: str = "data.txt") -> list[Any]:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    prompts = read_prompts(path)
    messages = []
    while not (prompt := prompts.at(len(messages))).again:
        messages.append(prompt.messages)
    return sorted(messages, key=str)


def test_lines_and_paragraphs_are_prompts(tmp_path: Path) -> None:
    assert given(tmp_path, "one\r\ntwo\r\n") == [asked("one"), asked("two")]
    assert given(tmp_path, "one\nand more\n\n \n\ntwo\n") == [asked("one\nand more"), asked("two")]
    assert given(tmp_path, b"\xef\xbb\xbfone") == [asked("one")], "a byte-order mark is no text"


def test_json_lines_are_prompts_up_to_the_answer(tmp_path: Path) -> None:
    system, user = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}
    answer = {"role": "assistant", "content": "Hello"}
    lines = [
        {"prompt": "one"},
        {"messages": [system, user, answer], "more": 1},
        {"messages": [user, answer, user]},
        {"messages": [answer]},
        {"prompt": " "},
    ]
    content = "\n".join(map(json.dumps, lines)) + "\n\n"
    assert given(tmp_path, content) == sorted([asked("one"), [system, user], [user, answer, user]], key=str)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "there are no prompts"),
        (" \n\n ", "there are no prompts"),
        ('{"prompt": ""}\n', "there are no prompts"),
        ('{"prompt": "a"}\n{"text": "b"}', "line 2"),
        ('{"prompt": "a"}\n{', "line 2"),
        ('{"messages": "a"}', "line 1"),
        ('{"messages": [{"content": "a"}]}', "line 1"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
    ],
)
def test_a_file_without_prompts_is_refused_in_one_line(tmp_path: Path, content: str | bytes, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        given(tmp_path, content)
    assert says in str(refused.value)
    assert str(refused.value).startswith("--data: ")
    assert "\n" not in str(refused.value)


def test_a_file_that_isnt_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read: No such file"):
        read_prompts(tmp_path / "none.txt")


def test_other_prompts_have_another_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("two")
    assert read_prompts(tmp_path / "a").name != read_prompts(tmp_path / "b").name


def test_short_questions_are_whole() -> None:
    questions = {short_question(random.Random(n)) for n in range(4000)}
    assert len(questions) > 1500
    assert not [q for q in questions if "{" in q or "}" in q or "|" in q or q != q.strip()]
    assert "What is the capital of France?" in questions
