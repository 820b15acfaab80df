"""The shapes of answers, streamed and whole, against the models that document them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases.client import content_of, join, text_of, tokens_of
from starlette.testclient import TestClient

from headway.config import ServerSettings
from headway.errors import RequestError
from headway.modes import ModeName
from headway.runtime.api import TokenLogprob
from headway.server.openai.logprobs import of_prompt
from headway.server.openai.shapes import ChatChunk, ChatCompletion, Completion
from server.scripted import Script, World

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
Json = dict[str, Any]


def events(response: Any) -> list[Json]:
    """All but the last, which must be [DONE]."""
    assert response.status_code == 200, response.text
    *lines, done, end = response.content.decode().split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def ask(world: World, path: str = CHAT, **fields: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "prompt": "hi", **fields}
    return TestClient(world.app).post(path, json=body)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a_stream_adds_up_to_the_whole_answer(path: str) -> None:
    world = World(Script(tokens=tuple(b"some text")))
    whole = ask(world, path).json()
    chunks = events(ask(world, path, stream=True, stream_options={"include_usage": True}))
    joined = join(chunks)
    assert content_of(whole) == content_of(joined) == "some text"
    for key in ("usage", "time_info", "headway", "service_tier", "model"):
        assert joined[key] == whole[key]
    (ChatCompletion if path == CHAT else Completion).model_validate(whole)
    for chunk in chunks:
        (ChatChunk if path == CHAT else Completion).model_validate(chunk)


def test_numbers_come_from_the_engine() -> None:
    whole = ask(World(Script(tokens=tuple(b"some text"))), max_tokens=4).json()
    assert whole["choices"][0]["finish_reason"] == "length"
    assert whole["usage"]["prompt_tokens"] == len("<user>hi")
    assert whole["usage"]["completion_tokens"] == 4
    assert whole["usage"]["total_tokens"] == len("<user>hi") + 4
    assert whole["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}
    assert whole["time_info"] == {"queue_time": 0.25, "prompt_time": 0.5, "completion_time": 1.0, "total_time": 1.75}
    served = {
        "mode": "standard",
        "requested_mode": "standard",
        "billed_mode": "standard",
        "pace": 20.0,
        "attainment": 0.5,
        "engine_seconds": 0.125,
    }
    assert whole["headway"] == {**served, "drafted_tokens": 0, "accepted_tokens": 0}


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_the_usage_chunk_comes_once_last_and_only_when_asked(path: str) -> None:
    world = World()
    for options in (None, {}, {"include_usage": False}, {"include_usage": None}):
        chunks = events(ask(world, path, stream=True, stream_options=options))
        assert all(chunk["choices"] and "usage" not in chunk for chunk in chunks)
    *others, last = events(ask(world, path, stream=True, stream_options={"include_usage": True}))
    assert last["choices"] == [] and last["usage"]["total_tokens"] > 0
    assert all(chunk["choices"] and chunk["usage"] is None for chunk in others)


def test_the_first_chunk_of_a_chat_carries_the_role() -> None:
    chunks = events(ask(World(), stream=True))
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert chunks[-1]["choices"][0]["delta"] == {}


def test_a_first_token_that_is_the_stop_string() -> None:
    chunks = events(ask(World(Script(tokens=[257, 258])), stream=True, stop="Hello"))
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, "stop"]
    assert text_of(chunks) == ""


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_string_within_and_across_tokens(stream: bool) -> None:
    for stop, text in (
        (["E"], "Hello worldD"),
        (["o wo"], "Hell"),
        ("rldD", "Hello wo"),
        (["zzz", "F"], "Hello worldDE"),
        (["x"], None),
    ):
        response = ask(World(Script(tokens=[257, 258, 259])), stream=stream, stop=stop)
        answer = join(events(response)) if stream else response.json()
        assert content_of(answer) == ("Hello worldDEF" if text is None else text)
        assert answer["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("text", ["🫠龜é👩‍👩‍👧‍👦𝔘ż", '\u2028\x85\r\n\t\0"\\/', "א\u0301"])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_characters_of_several_tokens_come_whole(path: str, text: str) -> None:
    tokens = tuple(text.encode())
    for length in range(1, len(tokens) + 1):
        world = World(Script(tokens=tokens))
        whole = ask(world, path, max_tokens=length, logprobs=True if path == CHAT else 1).json()
        chunks = events(ask(world, path, max_tokens=length, stream=True, logprobs=True if path == CHAT else 1))
        joined = join(chunks)
        expected = bytes(tokens[:length]).decode(errors="ignore")
        assert content_of(whole) == content_of(joined) == expected
        assert whole["usage"]["completion_tokens"] == length
        assert len(tokens_of(whole)) == len(tokens_of(joined)) == length
        assert "\ufffd" not in json.dumps([whole, chunks], ensure_ascii=False)


def test_no_line_of_a_stream_can_be_split_by_an_eager_client() -> None:
    response = ask(World(Script(tokens=tuple("a\u2028b\x85c\x0bd\x1ce".encode()))), stream=True)
    assert all(line.startswith("data: ") for line in response.content.decode().splitlines() if line)


def test_held_back_tokens_make_no_chunk_but_keep_their_logprobs() -> None:
    chunks = events(ask(World(Script(tokens=[260, 261, 65])), stream=True, logprobs=True, top_logprobs=2))
    pieces = [chunk["choices"][0] for chunk in chunks[1:-1]]
    assert [piece["delta"]["content"] for piece in pieces] == ["🫠", "A"]
    assert [len(piece["logprobs"]["content"]) for piece in pieces] == [2, 1]
    first = pieces[0]["logprobs"]["content"][0]
    assert (first["token"], first["bytes"]) == (r"bytes:\xf0\x9f", [0xF0, 0x9F])
    assert [len(entry["top_logprobs"]) for entry in pieces[0]["logprobs"]["content"]] == [2, 2]


def test_chat_logprobs_without_top() -> None:
    world = World()
    assert ask(world).json()["choices"][0]["logprobs"] is None
    for top in (None, 0):
        entries = ask(world, logprobs=True, top_logprobs=top).json()["choices"][0]["logprobs"]["content"]
        assert [entry["top_logprobs"] for entry in entries] == [[]] * len("scripted")
    entries = ask(world, logprobs=True, top_logprobs=20).json()["choices"][0]["logprobs"]["content"]
    assert {len(entry["top_logprobs"]) for entry in entries} == {20}


@pytest.mark.parametrize("stream", [False, True])
def test_completion_logprobs_have_offsets_in_characters(stream: bool) -> None:
    response = ask(World(Script(tokens=[257, 260, 261, 258])), COMPLETIONS, logprobs=2, stream=stream)
    logprobs = (join(events(response)) if stream else response.json())["choices"][0]["logprobs"]
    assert logprobs["tokens"] == ["Hello", r"bytes:\xf0\x9f", r"bytes:\xab\xa0", " world"]
    assert logprobs["text_offset"] == [0, 5, 5, 6]
    assert logprobs["token_logprobs"] == [-0.5] * 4
    assert logprobs["top_logprobs"][0] == {"Hello": -0.5, " world": -1.5}


def test_prompts_and_choices_come_prompt_by_prompt() -> None:
    scripts = [Script(tokens=tuple(text.encode())) for text in ("one", "two", "three", "four")]
    for prompt in (["a", "b"], [[1], [2, 3]]):
        for stream in (False, True):
            response = ask(World(*scripts), COMPLETIONS, prompt=prompt, n=2, seed=7, stream=stream)
            texts = (
                [text_of(events(response), index) for index in range(4)]
                if stream
                else [choice["text"] for choice in response.json()["choices"]]
            )
            assert texts == ["one", "two", "three", "four"]


def test_a_prompt_counts_once_for_all_its_choices() -> None:
    usage = ask(World(Script(tokens=(65, 66))), COMPLETIONS, prompt=["abc", "defgh"], n=3).json()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (8, 12, 20)


def test_each_choice_has_its_own_seed() -> None:
    world = World()
    ask(world, COMPLETIONS, prompt=["a", "b"], n=2, seed=2**63 - 1)
    assert [request.sampling.seed for request in world.generator.requests] == [2**63 - 1, 0, 2**63 - 1, 0]
    ask(world, n=1, seed=0)
    ask(world, n=1, seed=-1)
    ask(world)
    assert [request.sampling.seed for request in world.generator.requests[4:]] == [0, -1, None]
    assert len({request.id for request in world.generator.requests}) == 7


@pytest.mark.parametrize("stream", [False, True])
def test_echo_puts_the_prompt_first(stream: bool) -> None:
    for prompt, text in (("hé", "hé"), ([257, 256, 258], "Hello world"), ("", "")):
        response = ask(World(), COMPLETIONS, prompt=prompt, echo=True, stream=stream)
        assert content_of(join(events(response)) if stream else response.json()) == text + "scripted"


def echoed(prompt: Any, stream: bool = False, world: World | None = None, **fields: Any) -> Json:
    response = ask(world or World(), COMPLETIONS, prompt=prompt, echo=True, stream=stream, **fields)
    return join(events(response)) if stream else response.json()


@pytest.mark.parametrize("stream", [False, True])
def test_echo_with_logprobs_scores_the_prompt(stream: bool) -> None:
    choice = echoed([257, 258, 33], stream, logprobs=1, max_tokens=2)["choices"][0]
    assert choice["text"] == "Hello world!sc"
    assert choice["logprobs"] == {
        "tokens": ["Hello", " world", "!", "s", "c"],
        "token_logprobs": [None, -0.5, -0.5, -0.5, -0.5],
        "top_logprobs": [None, {" world": -0.5}, {"!": -0.5}, {"s": -0.5}, {"c": -0.5}],
        "text_offset": [0, 5, 11, 12, 13],
    }


@pytest.mark.parametrize("stream", [False, True])
def test_echo_of_nothing_but_the_prompt(stream: bool) -> None:
    answer = echoed("hi", stream, logprobs=0, max_tokens=0, stream_options={"include_usage": True} if stream else None)
    choice = answer["choices"][0]
    assert (choice["text"], choice["finish_reason"], answer["usage"]["completion_tokens"]) == ("hi", "length", 0)
    assert choice["logprobs"]["token_logprobs"] == [None, -0.5]
    choice = echoed("hi", stream, max_tokens=0)["choices"][0]
    assert (choice["text"], choice["logprobs"], choice["finish_reason"]) == ("hi", None, "length")


@pytest.mark.parametrize("stream", [False, True])
def test_echo_with_logprobs_of_several_prompts(stream: bool) -> None:
    prompts: list[Any]
    for prompts in (["ab", "c"], [[97, 98], [99]]):
        response = ask(World(), COMPLETIONS, prompt=prompts, echo=True, logprobs=0, n=2, max_tokens=0, stream=stream)
        pieces = [p for chunk in (events(response) if stream else [response.json()]) for p in chunk["choices"]]
        tokens = {piece["index"]: piece["logprobs"]["tokens"] for piece in pieces if piece["logprobs"]}
        assert tokens == {0: ["a", "b"], 1: ["a", "b"], 2: ["c"], 3: ["c"]}


@pytest.mark.parametrize(
    ("prompt", "offsets"),
    [
        ("é!", [0, 0, 1]),  # two tokens make up the first character
        ([256, 257, 256], [0, 0, 5]),  # special tokens stand for no text
        ("", [0]),
    ],
)
def test_offsets_in_an_echo_count_characters(prompt: Any, offsets: list[int]) -> None:
    assert echoed(prompt, logprobs=0, max_tokens=0)["choices"][0]["logprobs"]["text_offset"] == offsets


def test_offsets_in_an_echo_know_special_tokens_written_out() -> None:
    pieces = [b"", b"user", b"\xc3", b"\xa9", b"", b"", b"!"]
    arrays = of_prompt(range(7), "<s>useré</s><s>!", [TokenLogprob(n, -1.0) for n in range(1, 7)], pieces)
    assert arrays["text_offset"] == [0, 3, 7, 7, 8, 8, 15]


def test_without_echo_an_output_has_one_token_at_least() -> None:
    for fields in ({"max_tokens": 0}, {"max_tokens": 0, "echo": False}, {"max_tokens": -1, "echo": True}):
        response = ask(World(), COMPLETIONS, **fields)
        assert (response.status_code, response.json()["error"]["param"]) == (400, "max_tokens")


def test_a_prompt_is_scored_only_where_that_was_asked_for() -> None:
    world = World()
    ask(world, COMPLETIONS, logprobs=1)
    echoed("hi", world=world)
    echoed("hi", world=world, logprobs=3)
    assert [request.prompt_logprobs for request in world.generator.requests] == [None, None, 3]


def test_an_empty_prompt_is_the_start_of_a_document() -> None:
    world = World()
    for prompt in ("", [""], None):
        assert ask(world, COMPLETIONS, prompt=prompt).status_code == 200
    assert [request.prompt for request in world.generator.requests] == [[256]] * 3


def test_max_tokens_of_a_chat_is_an_upper_bound() -> None:
    world = World(context=64)
    room = 64 - len("<user>hi")
    for given, limit in ((None, room), (5, 5), (room, room), (room + 1, room), (2**31, room), (2**63, room), (10**30, room)):
        assert ask(world, max_tokens=given).status_code == 200
        assert world.generator.requests[-1].max_tokens == limit
    ask(world, max_tokens=5, max_completion_tokens=9)
    assert world.generator.requests[-1].max_tokens == 9


def test_a_chat_without_a_limit_gets_the_default_one() -> None:
    world = World(Script(times=10), settings=ServerSettings(default_max_tokens=5))
    for stream in (False, True):
        reply = ask(world, stream=stream)
        answer = join(events(reply)) if stream else reply.json()
        assert (content_of(answer), answer["choices"][0]["finish_reason"]) == ("scrip", "length")
    ask(world, max_tokens=9)
    assert world.generator.requests[-1].max_tokens == 9  # a limit of its own may be higher
    roomy = World(settings=ServerSettings(default_max_tokens=1000))
    ask(roomy)
    assert roomy.generator.requests[-1].max_tokens == 64 - len("<user>hi")
    ask(world, COMPLETIONS)
    assert world.generator.requests[-1].max_tokens == 16  # OpenAI's own


def test_max_tokens_of_a_completion_must_fit() -> None:
    world = World(context=64)
    ask(world, COMPLETIONS)
    assert world.generator.requests[-1].max_tokens == 16
    ask(world, COMPLETIONS, prompt="x" * 60)
    assert world.generator.requests[-1].max_tokens == 4
    assert ask(world, COMPLETIONS, max_tokens=62).status_code == 200
    for too_many in (63, 2**31, 2**63, 10**30):
        error = ask(world, COMPLETIONS, max_tokens=too_many).json()["error"]
        assert error["param"] == "max_tokens" and "room for 62 in the context of 64" in error["message"]
        assert error["code"] != "context_length_exceeded"


@pytest.mark.parametrize("size", [64, 200, 30_000, 1_000_000])
def test_a_prompt_that_does_not_fit_says_both_sizes(size: int) -> None:
    for path in (CHAT, COMPLETIONS):
        response = ask(World(context=64), path, prompt="x" * size, messages=[{"role": "user", "content": "x" * size}])
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (400, "context_length_exceeded")
        assert "maximum context length is 64 tokens" in error["message"]


def test_parameters_reach_the_engine() -> None:
    world = World()
    penalties = {"presence_penalty": 1, "frequency_penalty": -1, "repetition_penalty": 1.5}
    ask(
        world,
        temperature=0,
        top_p=0.5,
        top_k=-1,
        min_p=0.1,
        **penalties,
        logit_bias={"65": -100, "66": 2.5},
        stop=["a", "b"],
        min_tokens=3,
        ignore_eos=True,
        service_tier="fast",
    )
    request = world.generator.requests[0]
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0, 0.5, 0, 0.1)
    assert (sampling.presence_penalty, sampling.frequency_penalty, sampling.repetition_penalty) == (1, -1, 1.5)
    assert sampling.logit_bias == {65: -100, 66: 2.5}
    assert (request.stop, request.min_tokens, request.ignore_eos, request.mode) == (("a", "b"), 3, True, ModeName.FAST)


def test_tools_reach_the_template() -> None:
    world = World(context=200)
    tools = [{"type": "function", "function": {"name": "now", "extra": 1}, "defer_loading": True}]
    for choice in (None, "auto", "none"):
        assert ask(world, tools=tools, tool_choice=choice, parallel_tool_calls=True).status_code == 200
        assert bytes(world.generator.requests[-1].prompt) == b"<user>hinow"


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls(stream: bool) -> None:
    call = '<tool_call>{"name": "now", "arguments": {"a": 1}}</tool_call>'
    world = World(Script(tokens=tuple(f"Look. {call}{call}".encode())), context=400)
    tools = [{"type": "function", "function": {"name": "now"}}]

    def answer(**fields: Any) -> Json:
        response = ask(world, tools=tools, stream=stream, **fields)
        return join(events(response))["choices"][0] if stream else response.json()["choices"][0]

    choice = answer()
    assert choice["message"]["content"] == "Look." and choice["finish_reason"] == "tool_calls"
    calls = choice["message"]["tool_calls"]
    assert [call["function"] for call in calls] == [{"name": "now", "arguments": '{"a": 1}'}] * 2
    assert len({call["id"] for call in calls}) == 2 and calls[0]["id"].startswith("call_")
    assert len(answer(parallel_tool_calls=False)["message"]["tool_calls"]) == 1
    for length in (20, 40, 50):
        cut = answer(max_tokens=length)
        assert cut["finish_reason"] == "length"
    assert "<tool_call>" in answer(tool_choice="none")["message"]["content"]


def test_limit_headers() -> None:
    world = World()
    for stream in (False, True):
        headers = ask(world, stream=stream).headers
        assert headers["x-ratelimit-limit-requests"] == "16" and headers["x-ratelimit-limit-tokens"] == str(8 * 20 * 60)
        assert headers["x-ratelimit-reset-requests"] == "0ms"
    world.generator.refuse = lambda request: RequestError(429, "full", retry_after=2.5)
    refused = ask(world)
    assert (refused.headers["x-ratelimit-remaining-requests"], refused.headers["x-ratelimit-reset-requests"]) == ("0", "2.5s")


@pytest.mark.parametrize("stream", [False, True])
def test_the_tier_served_is_said(stream: bool) -> None:
    for fields, tier, mode in (
        ({}, "default", "standard"),
        ({"service_tier": "flex"}, "default", "standard"),
        ({"service_tier": "fast"}, "fast", "fast"),
        ({"model": "m-fast", "service_tier": "auto"}, "priority", "fast"),
    ):
        response = ask(World(), stream=stream, **fields)
        answer = join(events(response)) if stream else response.json()
        assert (answer["service_tier"], answer["headway"]["mode"]) == (tier, mode)


def full_fast(request: Any) -> RequestError | None:
    return RequestError(429, "full", retry_after=2.5) if request.mode is ModeName.FAST else None


def test_without_a_fast_seat_the_request_is_downgraded_and_says_so() -> None:
    world = World()
    world.generator.refuse = full_fast
    answer = ask(world, service_tier="priority", n=2).json()
    assert {request.mode for request in world.generator.requests} == {ModeName.STANDARD}
    assert (answer["service_tier"], answer["headway"]["mode"], answer["headway"]["pace"]) == ("default", "standard", 20.0)
    metrics = world.metrics.render().decode()
    assert "headway_downgrades_total 1.0" in metrics
    assert 'headway_requests_total{mode="fast",outcome="refused"} 0.0' in metrics


def test_a_downgrade_after_some_choices_had_seats_starts_afresh() -> None:
    world = World()
    world.generator.refuse = lambda request: full_fast(request) if "-2-" in request.id else None
    answer = ask(world, service_tier="priority", n=3).json()
    assert (answer["service_tier"], len(answer["choices"])) == ("default", 3)
    assert len(world.generator.cancelled) == 2
    assert len({request.id for request in world.generator.requests}) == 5


def test_a_promised_pace_is_not_downgraded() -> None:
    world = World()
    world.generator.refuse = full_fast
    body = {"model": "m", "prompt": "x"}
    response = TestClient(world.app).post(COMPLETIONS, json=body, headers={"x-slo-tpot-ms": "25"})
    assert response.status_code == 429


def test_a_refusal_says_when_to_come_again() -> None:
    world = World(downgrade=False)
    world.generator.refuse = full_fast
    for stream in (False, True):
        response = ask(world, service_tier="fast", stream=stream)
        assert response.status_code == 429
        assert response.json()["error"]["code"] == "rate_limit_exceeded"
        assert (response.headers["retry-after"], response.headers["retry-after-ms"]) == ("3", "2500")
    assert 'headway_requests_total{mode="fast",outcome="refused"} 2.0' in world.metrics.render().decode()


def test_when_one_choice_is_refused_none_runs() -> None:
    world = World(Script(hang=True))
    world.generator.refuse = lambda request: RequestError(429, "full") if "-2-" in request.id else None
    response = ask(world, n=3)
    assert (response.status_code, response.headers["retry-after"]) == (429, "1")
    assert len(world.generator.cancelled) == 2 and not world.generator.running


def test_more_choices_than_there_are_seats_are_refused_for_good() -> None:
    assert ask(World(), n=17).json()["error"]["param"] == "n"


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(("end", "status"), [("error", 500), ("cancelled", 503)])
def test_a_failure_of_the_engine_never_ends_a_stream_silently(n: int, end: str, status: int) -> None:
    script = Script(tokens=tuple(b"abc"), end=end, error="the engine failed" if end == "error" else None)
    assert ask(World(script), n=n).status_code == status
    chunks = events(ask(World(script), n=n, stream=True))
    assert chunks[-1]["error"]["type"] == "server_error"
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks[:-1])


def test_a_failure_before_the_first_token_is_an_error_response() -> None:
    response = ask(World(Script(tokens=[65], end="error", error="broken")), stream=True)
    assert (response.status_code, response.json()["error"]["message"]) == (500, "broken")


def test_an_unexpected_exception_is_a_500_and_the_server_lives_on(caplog: pytest.LogCaptureFixture) -> None:
    world = World()

    def explode(request: Any) -> RequestError | None:
        raise ZeroDivisionError("secret")

    world.generator.refuse = explode
    response = ask(world)
    assert response.status_code == 500
    assert "secret" not in response.text and response.headers["x-request-id"] in response.json()["error"]["message"]
    assert "ZeroDivisionError" in caplog.text
    world.generator.refuse = lambda request: None
    assert ask(world).status_code == 200


def test_a_model_without_template_has_no_chat() -> None:
    world = World()
    object.__setattr__(world.served, "template", None)
    assert "no chat template" in ask(world).json()["error"]["message"]
    assert ask(world, COMPLETIONS).status_code == 200


def test_a_large_body_is_refused() -> None:
    world = World(settings=ServerSettings(max_body_mb=0.001))
    client = TestClient(world.app)
    assert client.post(CHAT, content=b"x" * 1001).status_code == 413
    assert client.post(CHAT, content=iter([b"x" * 600, b"x" * 600])).json()["error"]["type"] == "invalid_request_error"
    assert client.post(CHAT, content=b"x", headers={"content-length": "9" * 30}).status_code == 413
    assert ask(world).status_code == 200


def test_ids_differ_and_headers_are_there() -> None:
    world = World()
    answers = [ask(world) for _ in range(3)]
    assert len({answer.json()["id"] for answer in answers}) == 3
    assert len({answer.headers["x-request-id"] for answer in answers}) == 3
    assert ask(world, COMPLETIONS).json()["id"].startswith("cmpl-")
    assert answers[0].json()["id"].startswith("chatcmpl-")
