"""Prompts that begin as an earlier one did."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from headway.server.prompt import Begun, encode, encode_on
from server.scripted import World

TEXTS = st.text(alphabet="<ab>é", min_size=1, max_size=30)


@given(st.lists(TEXTS, min_size=1, max_size=5), TEXTS)
def test_the_ids_are_those_of_the_whole_text(turns: list[str], other: str) -> None:
    served = World(context=10_000).served

    async def check() -> None:
        begun: Begun | None = None
        text = ""
        for turn in turns:
            text += turn
            for asked in (text, other):
                ids, after = await encode_on(served, asked, "input", begun)
                assert ids == await encode(served, asked, "input")
                assert (after is None) == ("<" not in asked)
                if after is not None:
                    assert asked.startswith(after.text) and ids[: len(after.ids)] == after.ids
                    assert after.ids == served.tokenizer.encode(after.text) and "<" not in asked[len(after.text) :]
                if asked is text:
                    begun = after

    asyncio.run(check())
