"""Traces as they are written elsewhere, and what is said of broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.errors import UsageError
from headway.modes import ModeName
from headway.simulate.trace import Arrival, read_trace, with_modes


def written(folder: Path, text: str) -> Path:
    path = folder / "trace"
    path.write_text(text, encoding="utf-8")
    return path


def test_its_own_format_in_order_of_time_from_the_first(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '{"at": 1764522002.5, "mode": "fast", "prompt_tokens": 120, "output_tokens": 64, "prefix": [5, 6], "pace": 20, "x":1}\n'
        "\n"
        '{"at": 1764522000.0, "mode": null, "prompt_tokens": 7, "output_tokens": 0, "max_tokens": 50, "key": "a"}\n',
    )
    early, late = read_trace(path)
    assert early == Arrival(0.0, 7, 1, None, 50, key="a")
    assert late == Arrival(2.5, 120, 64, ModeName.FAST, prefix=(5, 6), pace=20.0)


def test_what_a_recording_adds(tmp_path: Path) -> None:
    line = '{"at": 10, "mode": "fast", "prompt_tokens": 9, "output_tokens": 31, "seconds": 1.5, %s}'
    first, second, third = read_trace(
        written(
            tmp_path,
            "\n".join(
                line % more
                for more in (
                    '"drafted_tokens": 40, "accepted_tokens": 10',
                    '"drafted_tokens": 0, "accepted_tokens": 0',
                    '"finish": "stop"',
                )
            ),
        )
    )
    assert (first.ended, first.drafts_per_step, first.acceptance) == (1.5, 2.0, 0.25)
    assert (second.drafts_per_step, second.acceptance) == (0.0, 0.0)
    assert third.drafts_per_step is None


def test_a_refused_request_of_a_recording_has_the_usual_length(tmp_path: Path) -> None:
    lines = [f'{{"at": {n}, "prompt_tokens": 9, "output_tokens": {n}}}' for n in (10, 20, 90)]
    lines.append('{"at": 4, "mode": "fast", "prompt_tokens": 9, "output_tokens": null, "max_tokens": 500, "finish": "refused"}')
    refused = read_trace(written(tmp_path, "\n".join(lines)))[0]
    assert (refused.output_tokens, refused.max_tokens) == (20, 500)


def test_mooncakes_format(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '{"timestamp": 3000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}\n'
        '{"timestamp": 4500, "input_length": 10, "output_length": 3, "hash_ids": [0]}\n',
    )
    first, second = read_trace(path)
    assert first == Arrival(0.0, 6758, 500, prefix=(0, 1), prefix_tokens=512)
    assert second.at == 1.5


@pytest.mark.parametrize("zone", ["", "+00:00"])
def test_azures_format_with_its_line_ends_and_seven_digits(tmp_path: Path, zone: str) -> None:
    path = written(
        tmp_path,
        f"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900{zone},374,44\r\n"
        f"2023-11-16 18:15:50.9951690{zone},396,109",
    )
    first, second = read_trace(path)
    assert first == Arrival(0.0, 374, 44)
    assert second.at == pytest.approx(4.314579)


OWN = '{"at": 0, "prompt_tokens": 3, "output_tokens": 4}'
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no requests"),
        (AZURE, "holds no requests"),
        ("a,b\n1,2", "line 1: neither JSON lines"),
        (f"{OWN}\n{{", "line 2: invalid JSON"),
        (f"{OWN}\n\n[]", "line 3: "),
        ('{"at": 0, "output_tokens": 4}', "line 1: prompt_tokens: field required"),
        ('{"at": 0, "prompt_tokens": 0, "output_tokens": 4}', "prompt_tokens: input should be greater than or equal to 1"),
        ('{"at": "soon", "prompt_tokens": 3, "output_tokens": 4}', "line 1: at: input should be a valid number"),
        ('{"at": 0, "prompt_tokens": 3, "output_tokens": 4.5}', "output_tokens: "),
        ('{"at": 0, "prompt_tokens": 3, "output_tokens": 4, "mode": "spark"}', "mode: input should be 'standard' or 'fast'"),
        (
            '{"at": 0, "prompt_tokens": 3, "output_tokens": 4, "max_tokens": 2}',
            "line 1: output_tokens is 4, more than max_tokens",
        ),
        ('{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": ["x"]}', "line 1: hash_ids.0: "),
        (f"{AZURE}\nyesterday,3,4", "line 2: 'yesterday' is no time"),
        (f"{AZURE}\n2023-11-16 18:15:46,3", "line 2: 2 columns instead of 3"),
        (f"{AZURE}\n2023-11-16 18:15:46,3,many", "line 2: GeneratedTokens is 'many'"),
        (f"{AZURE}\n2023-11-16 18:15:46,0,4", "line 2: ContextTokens is 0"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_number(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        read_trace(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert said in message
    assert "\n" not in message


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read: No such file"):
        read_trace(tmp_path / "none")
    (tmp_path / "trace").write_bytes(b"\xff\xfe{")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_trace(tmp_path / "trace")


def test_modes_are_drawn_for_those_that_name_none() -> None:
    def unnamed() -> list[Arrival]:
        return [Arrival(0.0, 1, 1) for _ in range(1000)]

    drawn = list(with_modes(unnamed(), 0.2, seed=1))
    assert 150 < sum(a.mode is ModeName.FAST for a in drawn) < 250
    assert drawn == list(with_modes(unnamed(), 0.2, seed=1))
    named = Arrival(0.0, 1, 1, ModeName.STANDARD)
    assert list(with_modes([named], 1.0, seed=1)) == [named]
