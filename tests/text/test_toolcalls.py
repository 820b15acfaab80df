"""Tool calls out of text, in each format, however the text is cut into pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.text.parts import CallArguments, CallStart, Text
from headway.text.toolcalls import FormatName, ToolReader

TOOLS = ("now", "weather")
Found = list[str | tuple[str, str]]


def read(name: FormatName, pieces: list[str], *, parallel: bool = True) -> Found:
    """Texts, and calls as (name, arguments)."""
    reader = ToolReader(name, TOOLS, parallel=parallel)
    parts = [part for piece in pieces for part in reader.push(piece)] + reader.flush()
    found: Found = []
    for part in parts:
        match part:
            case CallStart(called):
                found.append((called, ""))
            case CallArguments(text):
                called, arguments = found[-1]
                found[-1] = (called, arguments + text)
            case Text(text):
                assert text
                if found and isinstance(found[-1], str):
                    found[-1] += text
                else:
                    found.append(text)
    return found


ONE = ("weather", '{"city": "Paris"}')
TWO = ("now", "{}")
TRICKY = ("weather", r'{"a": "}\"{ </tool_call> [TOOL_CALLS]", "b": {"c": [1, {"d": "\\"}]}}')


def hermes(call: tuple[str, str]) -> str:
    return f'<tool_call>\n{{"name": "{call[0]}", "arguments": {call[1]}}}\n</tool_call>'


def llama(call: tuple[str, str]) -> str:
    return f'{{"name": "{call[0]}", "parameters": {call[1]}}}'


CASES: list[tuple[FormatName, str, Found]] = [
    ("hermes", "Only text.", ["Only text."]),
    ("hermes", "  text with space \n", ["  text with space \n"]),
    ("hermes", hermes(ONE), [ONE]),
    ("hermes", "Let me look.\n\n" + hermes(ONE), ["Let me look.", ONE]),
    ("hermes", hermes(ONE) + "\n" + hermes(TWO), [ONE, TWO]),
    ("hermes", hermes(TRICKY), [TRICKY]),
    ("hermes", hermes(ONE) + "\nDone. ", [ONE, "Done. "]),
    ("hermes", "a < b, <tool and <tool_call> is a tag", ["a < b, <tool and <tool_call> is a tag"]),
    ("hermes", '<tool_call>{"city": 1}</tool_call>', ['<tool_call>{"city": 1}</tool_call>']),
    ("hermes", "<tool_call>{}</tool_call>", ["<tool_call>{}</tool_call>"]),
    ("hermes", '<tool_call>{"name": "now"}</tool_call>', [TWO]),
    ("hermes", '<tool_call>{"name": "now", "arguments": null}</tool_call>', [TWO]),
    ("hermes", '<tool_call>{"name": "now", "arguments": ""}</tool_call>', [TWO]),
    (
        "hermes",
        '<tool_call>{"name": "now", "arguments": [1]}</tool_call>',
        ['<tool_call>{"name": "now", "arguments": [1]}</tool_call>'],
    ),
    ("hermes", '<tool_call>{"name": "now", "arguments": "{\\"a\\": 1}"}</tool_call>', [("now", '{"a": 1}')]),
    ("hermes", '<tool_call>{"arguments": {"a": 1}, "name": "now"}</tool_call>', [("now", '{"a": 1}')]),
    ("hermes", '<tool_call>{"name": "now", "arguments": {}, "id": "}"}</tool_call>x', [TWO, "x"]),
    ("hermes", '<tool_call>{"name": "now", "arguments": {}</tool_call>x', [TWO, "x"]),
    ("hermes", '<tool_call>{"name": "now", "arguments": {}}}</tool_call>', [TWO]),
    ("hermes", '<tool_call>{"name": "now", "arguments": {}}', [TWO]),
    ("hermes", '<tool_call>{"name": "now", "arguments": {"a": "b', [("now", '{"a": "b')]),
    ("hermes", '<tool_call>{"name": "no', ['<tool_call>{"name": "no']),
    ("hermes", '<tool_call>{"name": "g\\u00fc", "arguments": {}}</tool_call>', [("gü", "{}")]),
    ("llama3", llama(ONE), [ONE]),
    ("llama3", f" \n{llama(ONE)}; {llama(TWO)}", [ONE, TWO]),
    ("llama3", f"<|python_tag|>{llama(ONE)};{llama(TWO)}", [ONE, TWO]),
    ("llama3", f"Look: <|python_tag|>{llama(ONE)}", ["Look:", ONE]),
    ("llama3", f"Look: {llama(ONE)}", [f"Look: {llama(ONE)}"]),
    ("llama3", '{"name": "Ann", "parameters": {}}', ['{"name": "Ann", "parameters": {}}']),
    ("llama3", '{"type": "function", "name": "now", "parameters": {}}', [TWO]),
    ("llama3", '{"answer": {"name": "now"}}', ['{"answer": {"name": "now"}}']),
    ("llama3", ' {"answer": 42} and so on', [' {"answer": 42} and so on']),
    ("llama3", "<|python_tag|>print(1)", ["<|python_tag|>print(1)"]),
    (
        "mistral",
        f'[TOOL_CALLS] [{{"name": "weather", "arguments": {ONE[1]}}}, {{"name": "now", "arguments": {{}}}}]',
        [ONE, TWO],
    ),
    ("mistral", f'[TOOL_CALLS]{{"name": "weather", "arguments": {TRICKY[1]}}}', [TRICKY]),
    ("mistral", f"[TOOL_CALLS]weather[ARGS]{ONE[1]}[TOOL_CALLS]now[CALL_ID]abc[ARGS]{{}}", [ONE, TWO]),
    ("mistral", f"Hm.[TOOL_CALLS]weather{ONE[1]}", ["Hm.", ONE]),
    ("mistral", "[TOOL_CALLS] are special", ["[TOOL_CALLS] are special"]),
]


@pytest.mark.parametrize(("name", "text", "expected"), CASES)
def test_whole_and_character_by_character(name: FormatName, text: str, expected: Found) -> None:
    assert read(name, [text]) == expected
    assert read(name, list(text)) == expected


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CASES), st.lists(st.integers(0, 120), max_size=8))
def test_cuts_do_not_matter(case: tuple[FormatName, str, Found], cuts: list[int]) -> None:
    name, text, expected = case
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert read(name, pieces) == expected


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='<tool_call>{}"[]:,;a \n|', max_size=60))
def test_nothing_that_is_no_call_is_lost(text: str) -> None:
    if '"' not in text:  # without a string there is no name, so no call
        assert read("hermes", list(text)) == ([text] if text else [])


def test_arguments_come_as_they_are_made() -> None:
    reader = ToolReader("hermes", TOOLS)
    assert reader.push('<tool_call>{"name": "weather", "arg') == []
    assert reader.push('uments": {"ci') == [CallStart("weather"), CallArguments('{"ci')]
    assert reader.push('ty": "P') == [CallArguments('ty": "P')]
    assert reader.push('"}}\n</tool') == [CallArguments('"}')]
    assert reader.push("_call>") == reader.flush() == []


def test_text_is_held_back_only_where_it_may_become_a_call() -> None:
    reader = ToolReader("hermes", TOOLS)
    assert reader.push("a <") == [Text("a")]
    assert reader.push("b") == [Text(" <b")]
    reader = ToolReader("llama3", TOOLS)
    assert reader.push('{"ans') == [Text('{"ans')]


def test_one_call_alone_if_no_more_are_wanted() -> None:
    assert read("hermes", list(hermes(ONE) + hermes(TWO) + "text"), parallel=False) == [ONE]


@pytest.mark.parametrize("cut", ["<", "<tool_ca", "<tool_call>", '<tool_call>{"name": "no'])
def test_one_more_call_that_is_cut_is_no_text(cut: str) -> None:
    call = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    assert read("hermes", [f"{call}\n{cut}"]) == read("hermes", [call])
    assert read("hermes", [cut])[0] == cut  # but on its own it may have been meant as text


def test_each_piece_of_long_arguments_is_passed_on_at_once() -> None:
    text = json.dumps({"text": "x" * 2000})
    reader = ToolReader("hermes", TOOLS)
    reader.push('<tool_call>{"name": "now", "arguments": {')
    assert all(reader.push(char) == [CallArguments(char)] for char in text[1:])
