"""What a load asks: prompts from files, and made-up ones of given lengths."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from headway.compare.speed.plan import CONSTANT, STREAMS, TRACE, Content, Limits, Plan, Point, parse_points
from headway.compare.speed.prompt_files import read_prompts
from headway.compare.speed.synthetic import Scale
from headway.errors import UsageError
from headway.simulate.trace import Arrival

SHAREGPT = [
    {"id": "a", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "x" * 40}]},
    {"id": "b", "conversations": [{"from": "gpt", "value": "I begin"}]},
    {"id": "c", "conversations": [{"from": "human", "value": "Alone"}]},
]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def plan(points: tuple[Point, ...] = (Point(STREAMS, 1),), limits: Limits | None = None, **content: object) -> Plan:
    return Plan(points, limits or Limits(), Content(**content))  # type: ignore[arg-type]


def texts(plan: Plan, index: int, count: int, scale: Scale | None = None) -> list[str]:
    asks = itertools.islice(plan.timetable(index, scale or Scale()), count)
    return [ask.messages[0]["content"] for _, ask in asks]


def test_lines_of_text(tmp_path: Path) -> None:
    prompts = read_prompts(written(tmp_path / "p.txt", "One?\n\n  Two?  \n"))
    assert [prompt.messages for prompt in prompts] == [
        [{"role": "user", "content": "One?"}],
        [{"role": "user", "content": "Two?"}],
    ]
    assert prompts[0].output_tokens is None


def test_json_lines_of_several_kinds(tmp_path: Path) -> None:
    dialogue = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]
    lines = [{"prompt": "P", "output_tokens": 12}, {"text": "T"}, {"messages": dialogue}, SHAREGPT[0]]
    prompts = read_prompts(written(tmp_path / "p.jsonl", "\n".join(map(json.dumps, lines))))
    assert [prompt.messages[-1]["content"] for prompt in prompts] == ["P", "T", "Q", "Hi"]
    assert [prompt.output_tokens for prompt in prompts] == [12, None, None, 10]


def test_sharegpts_answers_tell_how_long_one_is_wanted(tmp_path: Path) -> None:
    path = written(tmp_path / "s.json", json.dumps(SHAREGPT))
    estimated, alone = read_prompts(path)
    assert (estimated.output_tokens, estimated.is_estimated) == (10, True)
    assert alone.output_tokens is None
    counted, _ = read_prompts(path, count_tokens=len)
    assert (counted.output_tokens, counted.is_estimated) == (40, False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no prompts"),
        ('{"prompt": "x"}\n{"prompt": ', "line 2: no JSON"),
        ('{"question_text": "x"}', "line 1: it should have one of prompt"),
        ('{"prompt": "x", "output_tokens": 0}', "line 1: the output's length is 0"),
        ("[1, 2]", "entry 1: it should be text or an object"),
        ('{"messages": ["x"]}', "line 1: messages should be objects"),
    ],
)
def test_files_that_hold_no_prompts(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_prompts(written(tmp_path / "p", text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        read_prompts(tmp_path / "nothing")


def test_given_prompts_come_in_turn_with_their_lengths(tmp_path: Path) -> None:
    given = tuple(read_prompts(written(tmp_path / "p", '{"prompt": "A", "output_tokens": 5}\n{"prompt": "B"}')))
    asks = [ask for _, ask in itertools.islice(plan(given=given).timetable(0, Scale()), 3)]
    assert [ask.messages[0]["content"] for ask in asks] == ["A", "B", "A"]
    assert [ask.max_tokens for ask in asks] == [5, 64, 5]
    limited = [ask.max_tokens for _, ask in itertools.islice(plan(given=given, output_tokens=9).timetable(0, Scale()), 2)]
    assert limited == [9, 9]


def test_made_up_prompts_have_the_words_that_the_scale_tells() -> None:
    (text,) = texts(plan(prompt_tokens=120), 0, 1, Scale(overhead=20, per_word=1.25))
    assert len(text.split()) == 80


def test_made_up_prompts_differ_from_each_other_and_from_those_of_other_points_but_not_from_run_to_run() -> None:
    two = plan((Point(STREAMS, 1), Point(STREAMS, 8)))
    all_texts = texts(two, 0, 20) + texts(two, 1, 20) + texts(two, -1, 20)
    assert len({text[:40] for text in all_texts}) == 60
    assert texts(two, 1, 20) == texts(two, 1, 20)
    assert texts(plan(seed=1), 0, 1) != texts(plan(seed=2), 0, 1)


def test_an_even_load_comes_evenly() -> None:
    load = Plan((Point(CONSTANT, 20.0),), Limits(requests=600), Content())
    times = [at for at, _ in load.timetable(0, Scale())]
    assert len(times) == 600
    assert times[-1] == pytest.approx(30.0)


def test_a_trace_keeps_its_times_lengths_and_shared_beginnings() -> None:
    trace = (
        Arrival(0.0, 64, 10, prefix=(1, 2), prefix_tokens=32),
        Arrival(3.0, 96, 20, prefix=(1, 2), prefix_tokens=32),
        Arrival(4.0, 40, 30),
    )
    replay = Plan((Point(TRACE, 2.0),), Limits(), Content(), trace=trace)
    items = list(replay.timetable(0, Scale()))
    assert [at for at, _ in items] == [0.0, 1.5, 2.0]
    assert [ask.max_tokens for _, ask in items] == [10, 20, 30]
    first, second, third = (ask.messages[0]["content"].split() for _, ask in items)
    assert [len(words) for words in (first, second, third)] == [64, 96, 40]
    assert second[:64] == first
    assert third[:10] != first[:10]


@pytest.mark.parametrize(
    ("kind", "text"), [(STREAMS, "0"), (STREAMS, "1.5"), (CONSTANT, "x"), (CONSTANT, "1,,2"), (CONSTANT, "inf")]
)
def test_levels_of_load_that_make_no_sense(kind: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"--{kind}"):
        parse_points(kind, text)


def test_several_levels() -> None:
    assert [point.label for point in parse_points(STREAMS, "1,8")] == ["1 stream", "8 streams"]
    assert [point.value for point in parse_points("poisson", "0.5,2")] == [0.5, 2.0]
