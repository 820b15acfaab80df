"""The text of an output: whole characters, and never a character of a stop string."""

from __future__ import annotations

import codecs
import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.text.stream import TextStream

CHARACTERS = st.characters(exclude_categories=["Cs"])


def run(pieces: list[bytes], stops: list[str] = ()) -> tuple[list[str], str | None]:  # type: ignore[assignment]
    """The chunks shown for tokens of these bytes, and the stop string that ended them."""
    stream = TextStream(pieces, stops)
    chunks = [stream.push(token) for token in range(len(pieces))]
    return [*chunks, stream.flush()], stream.stopped


def cut_into(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def first_stop(text: str, stops: list[str]) -> tuple[str, str | None]:
    """The slow and obvious way: look at every beginning of the text, shortest first."""
    for end in range(len(text) + 1):
        complete = [stop for stop in stops if stop and text[:end].endswith(stop)]
        if complete:
            stop = max(complete, key=len)
            return text[: end - len(stop)], stop
    return text, None


@given(st.text(CHARACTERS), st.lists(st.integers(0, 200), max_size=30))
def test_text_survives_any_split_into_tokens(text: str, cuts: list[int]) -> None:
    chunks, _ = run(cut_into(text.encode(), cuts))
    assert "".join(chunks) == text
    assert "\ufffd" in text or all("\ufffd" not in chunk for chunk in chunks)


@given(
    st.text(st.sampled_from("ab🫠é龜"), max_size=30),
    st.lists(st.text(st.sampled_from("ab🫠é龜"), max_size=5), max_size=4),
    st.lists(st.integers(0, 200), max_size=30),
)
def test_output_is_the_text_cut_at_the_first_stop(text: str, stops: list[str], cuts: list[int]) -> None:
    chunks, stopped = run(cut_into(text.encode(), cuts), stops)
    assert ("".join(chunks), stopped) == first_stop(text, stops)


@given(st.binary(max_size=40), st.lists(st.integers(0, 200), max_size=20))
@example(b"\xed\xa0", [])
def test_invalid_bytes_are_replaced_as_a_whole_decoder_would(data: bytes, cuts: list[int]) -> None:
    chunks, _ = run(cut_into(data, cuts))
    shown = "".join(chunks)
    assert shown == codecs.getincrementaldecoder("utf-8")("replace").decode(data)
    # All but what could still have become a character (of ED A0 a decoder that knows the end makes two).
    whole = data.decode("utf-8", "replace")
    assert whole.startswith(shown)
    assert set(whole[len(shown) :]) <= {"\ufffd"}


def test_a_character_of_several_tokens_comes_whole() -> None:  # A1
    chunks, _ = run([b"\xf0\x9f", b"\xab", b"\xa0", b"\xe9\xbe", b"\x9c"])
    assert chunks == ["", "", "🫠", "", "龜", ""]


@pytest.mark.parametrize("tokens", [1, 2, 4])
def test_half_a_character_at_the_end_is_left_out(tokens: int) -> None:  # A1
    pieces = [b"\xf0\x9f", b"\xab", b"\xa0", b"\xe9\xbe", b"\x9c"][:tokens]
    chunks, _ = run(pieces)
    assert "".join(chunks) == ("🫠" if tokens == 4 else "")


def test_a_stop_over_two_tokens() -> None:  # A3
    assert run([b"one", b", two", b" three"], ["two t"]) == (["one", ", ", "", ""], "two t")


def test_a_stop_inside_a_token() -> None:  # A3
    assert run([b"ABC", b"DEF", b"GHI"], ["E"]) == (["ABC", "D", "", ""], "E")


def test_a_stop_that_begins_inside_a_character_token() -> None:
    assert run([b"a\xf0\x9f", b"\xab\xa0b"], ["🫠"]) == (["a", "", ""], "🫠")


@pytest.mark.parametrize("stop", ["aab", "abac", "aaaaaaab", "end", "ababac"])  # A5
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_self_overlapping_near_misses_come_once(stop: str, size: int) -> None:
    text = "aaaaaab ababababac end"
    pieces = [text[i : i + size].encode() for i in range(0, len(text), size)]
    chunks, _ = run(pieces, [stop])
    assert "".join(chunks) == (text[: text.find(stop)] if stop in text else text)


def test_the_first_token_can_be_the_stop() -> None:  # A7
    assert run([b"You", b" are"], ["You"]) == (["", "", ""], "You")


def test_a_false_beginning_of_a_stop_is_shown_at_the_end() -> None:
    assert run([b"x</", b"s"], ["</s>"]) == (["x", "", "</s"], None)


def test_of_two_stops_the_one_complete_first_wins() -> None:
    assert run([b"abcd"], ["abcd", "bc"]) == (["a", ""], "bc")
    assert run([b"abcd"], ["cd", "bcd"]) == (["a", ""], "bcd")


def test_stops_are_not_heeded_before_min_tokens() -> None:
    stream = TextStream([b"stop", b" sto", b"p", b" stop"], ["stop"])
    assert stream.push(0, heed_stops=False) == "stop"
    assert stream.push(1, heed_stops=False) == " sto"
    assert stream.push(2) == "p"
    assert stream.push(3) == " "
    assert stream.stopped == "stop"
    assert stream.flush() == ""


def test_nothing_is_shown_after_a_stop() -> None:
    stream = TextStream([b"x", b"y"], ["x"])
    assert [stream.push(token) for token in (0, 1, 1)] == ["", "", ""]
    assert stream.flush() == ""


def test_control_tokens_have_no_text() -> None:
    assert run([b"a", b"", b"b"], ["ab"]) == (["", "", "", ""], "ab")
