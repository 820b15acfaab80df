"""Chat templates: nothing of a chat gets lost, whatever the template was written for (group C)."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import ModelError, RequestError
from headway.text.parts import CallArguments, CallStart, Text
from headway.text.template import ChatTemplate

# The shape of SmolLM2's: one line, any role, knows nothing of tools, a default system message.
SIMPLE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nDefault<|im_end|>\\n' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# Knows tools, and writes calls as JSON objects.
WITH_TOOLS = (
    "{% if tools %}[TOOLS]{% for tool in tools %}{{ tool | tojson }}{% endfor %}{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls %}[CALL]{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}"
)
# Adds argument strings together, as some do.
WITH_TEXT_CALLS = (
    "{% for m in messages %}{{ m.role }}{{ m.content }}"
    "{% for c in m.tool_calls %}{{ c.function.name + c.function.arguments }}{% endfor %}{% endfor %}"
)
# Wants system first, then user and assistant in turn, and refuses everything else.
STRICT = (
    "{% if messages[0].role == 'system' %}[{{ messages[0].content }}]{% set messages = messages[1:] %}{% endif %}"
    "{% for m in messages %}{% if m.role not in ('user', 'assistant') %}{{ raise_exception('only user and assistant') }}"
    "{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}"
)
# Leaves out in silence what it doesn't know.
SILENT = "{% for m in messages %}{% if m.role in ('user', 'assistant') %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"

TOOL = {"type": "function", "function": {"name": "get_secret"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "get_secret", "arguments": '{"k": "größe"}'}}


def user(text: str = "hi") -> dict[str, Any]:
    return {"role": "user", "content": text}


def tool_turn(**assistant: Any) -> list[dict[str, Any]]:
    result = {"role": "tool", "tool_call_id": "c1", "content": "42.69"}
    return [user(), {"role": "assistant", "tool_calls": [CALL], **assistant}, result]


def test_a_plain_chat_is_the_templates_own() -> None:
    assert ChatTemplate(SIMPLE).render([user()]) == (
        "<|im_start|>system\nDefault<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("source", [SIMPLE, WITH_TOOLS, WITH_TEXT_CALLS, STRICT, SILENT])
def test_a_call_and_its_result_are_in_every_prompt(source: str) -> None:  # C1
    template = ChatTemplate(source)
    prompts = {
        template.render(tool_turn(), tools=[TOOL]),
        template.render(tool_turn(content=None), tools=[TOOL]),
        template.render(tool_turn(content=""), tools=[TOOL]),
    }
    (prompt,) = prompts
    for words in ("get_secret", '{"k": "größe"}', "42.69"):
        assert words in prompt


def test_a_template_without_tools_gets_them_written_out() -> None:
    prompt = ChatTemplate(SIMPLE).render(tool_turn(content="Let me look."), tools=[TOOL])
    assert prompt.startswith("<|im_start|>system\nYou can call the functions")
    assert '<tools>\n{"type": "function", "function": {"name": "get_secret"}}\n</tools>' in prompt
    call = 'Let me look.\n<tool_call>\n{"name": "get_secret", "arguments": {"k": "größe"}}\n</tool_call>'
    assert f"<|im_start|>assistant\n{call}<|im_end|>\n<|im_start|>tool\n42.69<|im_end|>" in prompt


def test_tools_join_the_system_message_that_is_there() -> None:
    system = {"role": "system", "content": "Be brief."}
    prompt = ChatTemplate(SIMPLE).render([system, user()], tools=[TOOL])
    assert prompt.startswith("<|im_start|>system\nBe brief.\n\nYou can call the functions")
    assert prompt.count("<|im_start|>system") == 1


def test_a_template_with_tools_writes_them_itself() -> None:
    prompt = ChatTemplate(WITH_TOOLS).render(tool_turn(), tools=[TOOL])
    assert prompt.startswith('[TOOLS]{"type": "function", "function": {"name": "get_secret"}}<user>hi')
    assert '[CALL]get_secret{"k": "größe"}<tool>42.69' in prompt
    assert "<tool_call>" not in prompt


def test_results_become_one_user_turn_where_tool_turns_are_refused() -> None:
    second = {"role": "tool", "tool_call_id": "c2", "content": "43"}
    prompt = ChatTemplate(STRICT).render([*tool_turn(), second])
    assert prompt.endswith("<user><tool_response>\n42.69\n</tool_response>\n<tool_response>\n43\n</tool_response>")


@pytest.mark.parametrize("source", [SIMPLE, WITH_TOOLS, STRICT, SILENT])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_system_message_anywhere_is_in_the_prompt(source: str, place: int) -> None:  # C5
    messages = [user(), {"role": "assistant", "content": "yes"}, user("go on")]
    messages.insert(place, {"role": "system", "content": "Answer in French"})
    assert "Answer in French" in ChatTemplate(source).render(messages)


def test_two_system_messages_become_one_where_only_the_first_counts() -> None:  # C5
    one, two = {"role": "system", "content": "one"}, {"role": "system", "content": "two"}
    assert ChatTemplate(STRICT).render([one, user(), two]) == "[one\n\ntwo]<user>hi"
    assert ChatTemplate(SILENT).render([one, user(), two]) == "<user>one\n\ntwo\n\nhi"


def test_parts_read_as_their_joined_text() -> None:  # C3
    template = ChatTemplate(SIMPLE)
    parts = {"role": "user", "content": [{"type": "text", "text": "Say "}, {"type": "text", "text": "hi"}]}
    assert template.render([parts]) == template.render([user("Say hi")])


@pytest.mark.parametrize("content", ["", None])
def test_an_empty_message_is_rendered(content: str | None) -> None:  # C7
    assert "<|im_start|>user\n<|im_end|>" in ChatTemplate(SIMPLE).render([{"role": "user", "content": content}])


def test_no_messages_are_refused() -> None:  # C7
    with pytest.raises(RequestError) as caught:
        ChatTemplate(SIMPLE).render([])
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ raise_exception('Roles\nmust alternate') }}", "Roles must alternate"),
        ("{{ messages[0].nothing.at_all }}", "nothing"),
        ("{{ 1 // 0 }}", "zero"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages | no_such_filter }}", ""),
    ],
)
def test_what_a_template_refuses_is_a_bad_request(source: str, words: str) -> None:
    if not words:
        with pytest.raises(ModelError, match="no_such_filter"):
            ChatTemplate(source)
        return
    with pytest.raises(RequestError, match=words) as caught:
        ChatTemplate(source).render([user()])
    assert (caught.value.status, caught.value.param) == (400, "messages")
    assert "\n" not in caught.value.message


def test_a_template_that_is_none_is_a_model_error() -> None:
    with pytest.raises(ModelError, match="line 2"):
        ChatTemplate("ok\n{% for %}")


@pytest.mark.parametrize(
    ("source", "prompt"),
    [
        ("{{ bos_token }}|{{ eos_token }}", "<s>|</s>"),
        ('{{ {"a": "<ü>"} | tojson }}', '{"a": "<ü>"}'),
        ("{{ [1] | tojson(indent=1) }}", "[\n 1\n]"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{% generation %}x{% endgeneration %}y", "xy"),
        ("  {% if true %}\nz\n  {% endif %}\n", "z\n"),
        ("{{ add_generation_prompt }}{{ tools is none }}", "TrueTrue"),
    ],
)
def test_the_surroundings_are_hugging_faces(source: str, prompt: str) -> None:
    assert ChatTemplate(source, bos="<s>", eos="</s>").render([user()]) == prompt


def test_the_date_can_be_asked_for() -> None:
    assert len(ChatTemplate("{{ strftime_now('%Y-%m-%d') }}").render([user()])) == 10


LLAMA = (
    "{% if tools %}{% for t in tools %}{{ t | tojson }}{% endfor %}{% endif %}{% for m in messages %}<{{ m.role }}>"
    "{% for c in m.tool_calls %}"
    "{{ '{\"name\": \"' + c.function.name + '\", \"parameters\": ' }}{{ c.function.arguments | tojson }}{{ '}' }}"
    "{% endfor %}{{ m.content }}{% endfor %}"
)
MISTRAL = LLAMA.replace("{{ '{", "[TOOL_CALLS][{{ '{").replace("parameters", "arguments").replace("{{ '}' }}", "{{ '}]' }}")


@pytest.mark.parametrize(
    ("source", "output"),
    [
        (SIMPLE, '<tool_call>{"name": "get_secret", "arguments": {}}</tool_call>'),
        (SILENT, '<tool_call>{"name": "get_secret", "arguments": {}}</tool_call>'),
        (WITH_TOOLS, '<tool_call>{"name": "get_secret", "arguments": {}}</tool_call>'),
        (LLAMA, '{"name": "get_secret", "parameters": {}}'),
        (MISTRAL, '[TOOL_CALLS][{"name": "get_secret", "arguments": {}}]'),
    ],
)
def test_calls_are_read_in_the_format_that_the_template_writes(source: str, output: str) -> None:
    template = ChatTemplate(source)
    assert template.reader([TOOL]).push(output) == [CallStart("get_secret"), CallArguments("{}")]
    assert template.reader(None).push(output) == [Text(output)]
