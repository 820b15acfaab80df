from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.compare.sse import EventParser


def events_of(pieces: list[bytes]) -> list[bytes]:
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)]


@st.composite
def split_stream(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """The data of some events, and a stream that carries them, cut anywhere, with any line ends and with noise between."""
    line_end = draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    texts = draw(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12), max_size=6))
    noise = st.sampled_from([b"", b": comment", b"event: message", b"id: 7", b"retry: 100", b"database: no"])
    stream = b"\xef\xbb\xbf" if draw(st.booleans()) else b""
    for text in texts:
        if extra := draw(noise):
            stream += extra + line_end
        stream += b"data:" + draw(st.sampled_from([b"", b" "])) + b"x" + text.encode() + line_end + line_end
        stream += line_end * draw(st.integers(0, 2))
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    return [b"x" + text.encode() for text in texts], pieces


@given(split_stream())
def test_events_do_not_depend_on_where_the_bytes_are_cut(case: tuple[list[bytes], list[bytes]]) -> None:
    expected, pieces = case
    assert events_of(pieces) == expected


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_any_bytes_in_any_pieces_give_what_they_give_at_once(stream: bytes, cuts: list[int]) -> None:
    cuts = sorted(min(cut, len(stream)) for cut in cuts)
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert events_of(pieces) == events_of([stream])


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data: a\r\ndata:b\r\n\r\n", [b"a\nb"]),
        (b"data:  two spaces\n\n", [b" two spaces"]),
        (b"data\n\n", [b""]),
        (b": only a comment\n\n", []),
        (b"\n\n\ndata: after blank lines\n\n", [b"after blank lines"]),
        (b"data: unfinished\n", []),
    ],
)
def test_the_standard_s_corners(stream: bytes, expected: list[bytes]) -> None:
    assert events_of([stream]) == expected


def test_a_stream_that_stops_inside_an_event_is_pending() -> None:
    parser = EventParser()
    parser.feed(b"data: a\n\n")
    assert not parser.pending
    parser.feed(b"data: b")
    assert parser.pending
