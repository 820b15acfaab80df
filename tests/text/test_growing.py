"""Going on with a conversation's prompt gives exactly what rendering the whole gives, with any template."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import RequestError
from headway.text.growing import MARK
from headway.text.template import ChatTemplate
from text.test_template import CALL, SILENT, SIMPLE, STRICT, TOOL, WITH_TEXT_CALLS, WITH_TOOLS

# As Llama 3 has it: the first text is made of a variable that each turn sets anew.
SETS = (
    "{% set all = messages %}{% set start = 'none' %}{% for message in all %}"
    "{% if loop.index0 == 1 %}{% set start = 'second' %}{% endif %}"
    "{% set content = '<' + message['role'] + '>' + message['content'] | trim + start %}"
    "{% if loop.first %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
BACKWARDS = (
    "{% for m in messages %}{% if loop.previtem is defined and loop.previtem.role == m.role %}+{% endif %}"
    "{{ loop.index }}{{ m.content }}{% for c in m.tool_calls %}{{ c.function.name }}{% if not loop.last %},{% endif %}"
    "{% endfor %}{% endfor %}{{ messages | length }} of {{ messages[-1].role }}"
)
GROWING = {
    "simple": SIMPLE,
    "tools": WITH_TOOLS,
    "text calls": WITH_TEXT_CALLS,
    "strict": STRICT,
    "silent": SILENT,
    "sets": SETS,
    "backwards": BACKWARDS,
}
OTHERS = {
    "last": "{% for m in messages %}{{ m.content }}{% if loop.last %}!{% endif %}{% endfor %}",
    "next": "{% for m in messages %}{{ m.content }}{% if loop.nextitem is defined %};{% endif %}{% endfor %}",
    "length": "{% for m in messages %}{{ loop.index }}/{{ messages | length }}{{ m.content }}{% endfor %}",
    "length before": "{% set n = messages | length %}{% for m in messages %}{{ n }}{{ m.content }}{% endfor %}",
    "at the end": "{% for m in messages %}{% if m == messages[-1] %}!{% endif %}{{ m.content }}{% endfor %}",
    "looks ahead": "{% for m in messages %}{{ m.content }}{{ (messages[loop.index0 + 1] | default(m)).role }}{% endfor %}",
    "another name": "{% set all = messages %}{% for m in messages %}{{ all[-1].content }}{{ m.content }}{% endfor %}",
    "second": "{{ messages[1].content }}{% for m in messages %}{{ m.content }}{% endfor %}",
    "loses two": (
        "{% set messages = messages[1:] %}{% set messages = messages[1:] %}{% for m in messages %}{{ m.content }}{% endfor %}"
    ),
    "notes": (
        "{% set ns = namespace(seen=0) %}{% for m in messages %}{% set ns.seen = ns.seen + 1 %}{{ ns.seen }}{{ m.content }}"
        "{% endfor %}{{ ns.seen }}"
    ),
    "the clock": "{{ strftime_now('%H:%M:%S.%f') and '' }}{% for m in messages %}{{ m.content }}{% endfor %}",
    "in a loop": "{% for m in messages %}{% for n in messages %}{{ n.content }}{% endfor %}{% endfor %}",
    "chosen": "{% for m in messages if m.role != 'system' %}{{ loop.index }}{{ m.content }}{% endfor %}",
    "cut short": "{% for m in messages %}{% if m.content == 'b' %}{% break %}{% endif %}{{ m.content }}{% endfor %}",
    "sorted": "{% for m in messages | sort(attribute='content') %}{{ m.content }}{% endfor %}",
    "macro": "{% macro say(m) %}{{ m.content }}{% endmacro %}{% for m in messages %}{{ say(m) }}{% endfor %}",
}
ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool"])
CONTENTS = st.sampled_from(["", "a", "b", " two words\n", "größe 🫠", "{{ 7 }}", MARK])


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    role = draw(ROLES)
    message: dict[str, Any] = {"role": role, "content": draw(CONTENTS)}
    if role == "tool":
        message["tool_call_id"] = "c1"
    if role == "assistant" and draw(st.booleans()):
        message["tool_calls"] = [CALL] * draw(st.integers(1, 2))
    return message


TEMPLATES = {name: ChatTemplate(source, bos="<s>", eos="</s>") for name, source in (GROWING | OTHERS).items()}


def outcome(render: Any) -> tuple[str, Any]:
    try:
        return "text", render()
    except RequestError as error:
        return "refused", str(error)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
@given(st.lists(messages(), min_size=1, max_size=9), st.lists(st.integers(1, 3), max_size=5), st.booleans())
def test_turn_after_turn_it_is_what_the_whole_gives(
    template: ChatTemplate, conversation: list[dict[str, Any]], turns: list[int], with_tools: bool
) -> None:
    tools = [TOOL] if with_tools else None
    before, place = [], 0
    for num_new in [*turns, len(conversation)]:
        place = min(place + num_new, len(conversation))
        so_far = conversation[:place]
        how, whole = outcome(lambda so_far=so_far: template.render(so_far, tools=tools))
        how_on, rendered = outcome(lambda so_far=so_far, before=before: template.render_on(before, so_far, tools))
        assert how == how_on
        assert whole == (rendered.text if how == "text" else rendered)
        before = [rendered] if how == "text" else []


CHAT = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]


@pytest.mark.parametrize("name", GROWING)
def test_these_are_gone_on_with(name: str) -> None:
    """Else the test above would prove little: what is already there isn't rendered again."""
    template = TEMPLATES[name]
    before = template.render_on([], CHAT[:1], None)
    assert 0 < before.num_fixed <= len(before.text)
    assert template._more(before, CHAT, None) is not None


@pytest.mark.parametrize("name", OTHERS)
def test_with_these_the_text_may_change_in_its_middle(name: str) -> None:
    assert TEMPLATES[name].render_on([], CHAT, None).num_fixed == 0


def test_another_beginning_is_not_gone_on_from() -> None:
    template = TEMPLATES["simple"]
    before = template.render_on([], CHAT[:1], None)
    other = [{"role": "user", "content": "z"}, *CHAT[1:]]
    assert template.render_on([before], other, None).text == template.render(other)
    assert template.render_on([before], CHAT, [TOOL]).text == template.render(CHAT, tools=[TOOL])


def test_a_refusal_names_its_place_in_the_whole() -> None:
    template = TEMPLATES["simple"]
    before = template.render_on([], CHAT[:2], None)
    with pytest.raises(RequestError) as refused:
        template.render_on([before], [*CHAT[:2], {"role": "user", "content": 7}], None)
    assert "messages[2]" in str(refused.value)
