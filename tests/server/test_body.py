"""Every body that isn't a valid request gets a 400 in valid UTF-8 JSON that says what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from headway.errors import RequestError
from headway.server.body import parse, show
from headway.server.openai.errors import error_body
from headway.server.openai.schemas import ChatRequest

from .scripted import Script, World

CHAT = "/v1/chat/completions"
PATHS = [CHAT, "/v1/completions"]
GOOD: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "prompt": "hi"}

NOT_JSON = [
    b"",
    b"   ",
    b"{",
    b'{"a":',
    b"nul",
    b"\x00",
    b"[]",
    b"null",
    b"5",
    b'"text"',
    b"{'model': 'm'}",
    b'{"model": "m",}',
    b'{"model": "m"} x',
    b'{"model": "m"}{"model": "m"}',
    b'{"model": "m", "temperature": NaN}',
    b'{"model": "m", "unknown": NaN}',
    b'{"model": "m", "unknown": -Infinity}',
    b'{"model": "m", "temperature": 1e400}',
    b'{"model": "m", "temperature": 01}',
    b'{"model": "m", "temperature": .5}',
    b'{"model": "m\xff"}',
    b'{"model": "m\xed\xa0\xbd"}',
    b'{"model": "m\xc0\x80"}',
    b'{"model": "\\ud83d"}',
    b'{"model": "m", "unknown": "\\ude00 y"}',
    b'{"\\ud83d": 1}',
    b'{"model": "a\nb"}',
    b'{"model": "\\x41"}',
    b'{"model": "m", "deep": ' + b"[" * 100_000,
    b'{"model": "m", "deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"model": "m", "max_tokens": ' + b"9" * 10_000 + b"}",
    json.dumps(GOOD).encode("utf-16"),
    json.dumps(GOOD).encode("utf-32-le"),
]


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(World(Script(tokens=tuple(b"ok"))).app)


def error_of(response: Any, status: int = 400) -> dict[str, Any]:
    assert response.status_code == status, response.text
    error: dict[str, Any] = json.loads(response.content.decode("utf-8"))["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert "\n" not in error["message"]
    return error


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", NOT_JSON, ids=lambda body: repr(body[:40]))
def test_what_is_no_request_is_refused(client: TestClient, path: str, body: bytes) -> None:
    error_of(client.post(path, content=body))


@pytest.mark.parametrize("path", PATHS)
def test_odd_but_valid_bodies_are_served(client: TestClient, path: str) -> None:
    good = json.dumps(GOOD).encode()
    accepted = [
        b"\xef\xbb\xbf" + good,
        b" \r\n\t" + good + b"\n",
        json.dumps({**GOOD, "prompt": "a\0b", "messages": [{"role": "user", "content": "\0"}]}).encode(),
        json.dumps({**GOOD, "unknown": {"deep": [[[[1]]]]}, "thinking": None}).encode(),
        json.dumps({**GOOD, "prompt": "🫠", "messages": [{"role": "user", "content": "🫠"}]}, ensure_ascii=False).encode(),
        good[:-1] + b', "temperature": 5, "temperature": 1}',
        json.dumps({**GOOD, "prompt": "NaN Infinity", "messages": [{"role": "user", "content": "NaN"}]}).encode(),
    ]
    for body in accepted:
        assert client.post(path, content=body).status_code == 200, body
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x", ""):
        assert client.post(path, content=good, headers={"content-type": content_type}).status_code == 200, content_type


@given(body=st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_bytes_make_it_fail(client: TestClient, body: bytes) -> None:
    error_of(client.post(CHAT, content=body))


@given(value=st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(), st.lists))
@settings(max_examples=300, deadline=None)
def test_no_value_of_a_field_makes_it_fail(value: Any) -> None:
    for name in ChatRequest.model_fields:
        try:
            parse(ChatRequest, json.dumps({**GOOD, name: value}).encode("utf-8", "surrogatepass"))
        except RequestError as error:
            assert error.status == 400
            json.dumps(error_body(error), ensure_ascii=False).encode("utf-8")


BAD_FIELDS = [
    ("max_tokens", ["5", 2.5, True, -1, 0, [], {}, 5.0]),
    ("max_completion_tokens", ["5", 0]),
    ("temperature", ["0", -0.1, 2.1, True, []]),
    ("top_p", [0, 1.1, "1"]),
    ("top_k", [-2, 0.5]),
    ("min_p", [-0.1, 1.1]),
    ("seed", [-2, 2**63, 1.5, "1", True]),
    ("n", [0, -1, 129, "1"]),
    ("presence_penalty", [-2.1, 2.1, "0"]),
    ("frequency_penalty", [-2.1, 2.1]),
    ("repetition_penalty", [0, -1, 5e-324, 10.5]),
    ("stop", [5, ["a", 5], ["a", "b", "c", "d", "e"], [""], "", {}]),
    ("stream", ["true", 1]),
    ("top_logprobs", [2, 0, 21, -1, "2"]),
    ("logprobs", ["yes", 1]),
    (
        "logit_bias",
        [{"1": 500}, {"1": "x"}, {"99999": 5}, {"-1": 5}, {" You": 5}, {"": 5}, {"1.0": 5}, {"٣": 5}, {"+1": 1}, [], 5],
    ),
    ("messages", [[], None, "hi", [5], [{}]]),
    ("tools", [{}, [5]]),
    ("tool_choice", ["required", {"type": "function", "function": {"name": "f"}}, {"type": "function"}, "x", {}]),
    ("response_format", [{"type": "xml"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": {}}, "text", {}]),
    ("service_tier", ["ultrafast", "turbo", "Fast", ""]),
    ("stream_options", [{"include_usage": True}, {}, 5]),
    ("min_tokens", [-1, 10_000]),
    ("ignore_eos", ["no"]),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD_FIELDS for value in values])
def test_a_bad_value_is_refused_and_named(client: TestClient, name: str, value: Any) -> None:
    error = error_of(client.post(CHAT, json={**GOOD, name: value}))
    assert error["param"].startswith(name)
    assert f"'{name}" in error["message"]


def test_nested_fields_are_named_by_their_path(client: TestClient) -> None:
    bad = {**GOOD, "messages": [{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}]}
    error = error_of(client.post(CHAT, json=bad))
    assert error["param"] == "messages[1].role"
    assert error["message"] == ("'messages[1].role' must be one of system, developer, user, assistant, tool, not \"robot\".")


def test_a_user_turn_without_content_is_refused(client: TestClient) -> None:
    for turn in ({"role": "user"}, {"role": "system", "content": None}, {"role": "tool", "tool_call_id": "c"}):
        assert error_of(client.post(CHAT, json={**GOOD, "messages": [turn]}))["param"] == "messages[0].content"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prompt", []), ("prompt", [[]]), ("prompt", [[1], []]), ("prompt", [1, "a"]), ("prompt", ["a", 1]), ("prompt", 5),
        ("prompt", [-1]), ("prompt", [262]), ("prompt", [[1], [262]]), ("prompt", [True]), ("prompt", [1.5]),
        ("prompt", [2**70]),
        ("suffix", "x"), ("best_of", 2), ("best_of", 0), ("logprobs", 6), ("logprobs", True), ("max_tokens", 0),
    ],
)  # fmt: skip
def test_completions_refuse_and_name_it(client: TestClient, name: str, value: Any) -> None:
    error = error_of(client.post("/v1/completions", json={**GOOD, name: value}))
    assert error["param"].startswith(name)


def test_null_is_as_good_as_absent(client: TestClient) -> None:
    for path, kept in ((CHAT, "messages"), ("/v1/completions", "prompt")):
        fields = {**dict.fromkeys(ChatRequest.model_fields), "suffix": None, "best_of": None, "echo": None}
        body = {**fields, "model": "m", kept: GOOD[kept]}
        assert client.post(path, json=body).status_code == 200


def test_values_are_shown_short_and_in_ascii() -> None:
    assert show("\ud83d" + "x" * 1000).startswith('"\\ud83dxxx')
    assert len(show("x" * 1000)) < 70
    assert show(10**5000) == "a value of type int"


def test_an_error_body_is_utf8_whatever_it_quotes() -> None:
    body = json.dumps(error_body(RequestError(400, "bad \ud83d", param="\udc00")), ensure_ascii=False).encode()
    assert json.loads(body.decode("utf-8"))["error"]["message"] == "bad ?"
