"""Prompts that begin as an earlier one did."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from headway.server.prompt import Begun, encode, encode_on
from headway.text.template import Rendered
from server.scripted import World

TEXTS = st.text(alphabet="<ab>é", min_size=1, max_size=30)


@given(st.lists(TEXTS, min_size=1, max_size=5), TEXTS)
def test_the_ids_are_those_of_the_whole_text(turns: list[str], other: str) -> None:
    served = World(context=10_000).served

    async def check() -> None:
        begun: list[Begun] = []
        text = ""
        for turn in turns:
            text += turn
            for asked in (text, other):
                rendered = Rendered(asked, [], None, 0, ([], None))
                ids, after = await encode_on(served, rendered, "input", begun)
                assert ids == await encode(served, asked, "input")
                assert after.rendered is rendered and bool(after.ids) == ("<" in asked)
                assert ids[: len(after.ids)] == after.ids and "<" not in asked[after.num_chars :]
                assert after.ids == (served.tokenizer.encode(asked[: after.num_chars]) if after.num_chars else [])
                if asked is text:
                    begun = [after]

    asyncio.run(check())
