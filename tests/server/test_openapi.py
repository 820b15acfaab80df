"""The OpenAPI document: it has every path, and what is sent is as it says."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from cases.client import CHAT, COMPLETIONS
from cases.messages import MESSAGES
from cases.responses import RESPONSES
from starlette.routing import Route
from starlette.testclient import TestClient

from headway.access.keys import hash_of
from headway.config import Settings
from headway.server.openai.shapes import ChatChunk, ErrorBody
from headway.server.openapi import document
from headway.server.operations import OPERATIONS

from .scripted import Script, World

Json = dict[str, Any]
DOCUMENT = document("m", ["m-fast"], needs_key=False)
FUNCTION: Json = {"name": "now", "parameters": {"type": "object"}}
ASKED: dict[str, Json] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}], "logprobs": True, "top_logprobs": 2},
    COMPLETIONS: {"prompt": "hi", "logprobs": 2},
    MESSAGES: {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 90},
    RESPONSES: {"input": "hi", "include": ["message.output_text.logprobs"], "top_logprobs": 2},
}
TOOLS: dict[str, Json] = {
    CHAT: {"tools": [{"type": "function", "function": FUNCTION}]},
    COMPLETIONS: {},
    MESSAGES: {"tools": [{"name": "now", "input_schema": {"type": "object"}}]},
    RESPONSES: {"tools": [{"type": "function", **FUNCTION}]},
}
CALL = b'Well: <tool_call>{"name": "now", "arguments": {"a": 1}}</tool_call>'
SCRIPTS = [Script(tuple(b"text")), Script(tuple(CALL)), Script(tuple(b"ab"), end="error", error="the engine failed")]


def schema_of(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]})


def test_every_path_is_described_and_nothing_else() -> None:
    world = World()
    served = TestClient(world.app).get("/openapi.json").json()
    assert served == DOCUMENT
    routes = {
        (method.lower(), route.path.replace(":path", ""))
        for route in world.app.routes
        if isinstance(route, Route) and route.path != "/openapi.json"
        for method in route.methods or ()
        if method != "HEAD"
    }
    described = {(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert described == routes == {(each.method, each.path) for each in OPERATIONS}


def test_requests_and_answers_have_their_schemas() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for path, asked, answered in ((CHAT, "ChatRequest", "ChatCompletion"), (MESSAGES, "MessagesRequest", "MessageAnswer")):
        post = DOCUMENT["paths"][path]["post"]
        assert post["requestBody"]["content"]["application/json"]["schema"] == {"$ref": f"#/components/schemas/{asked}"}
        ok = post["responses"]["200"]["content"]
        assert ok["application/json"]["schema"] == {"$ref": f"#/components/schemas/{answered}"}
        assert "itemSchema" in ok["text/event-stream"]
        assert {"400", "401", "403", "404", "413", "429", "500"} <= set(post["responses"])
        assert {"retry-after", "retry-after-ms", "x-request-id"} <= set(post["responses"]["429"]["headers"])
        assert schemas[asked]["properties"]["model"]["enum"] == ["m", "m-fast"]
        assert all("description" in field for field in schemas[asked]["properties"].values())
    errors = {path: str(DOCUMENT["paths"][path]["post"]["responses"]["400"]["content"]) for path in (CHAT, MESSAGES)}
    assert "ErrorBody" in errors[CHAT] and "MessageError" in errors[MESSAGES]
    assert "529" in DOCUMENT["paths"][MESSAGES]["post"]["responses"] and "503" in DOCUMENT["paths"][CHAT]["post"]["responses"]


def test_a_body_that_the_schema_refuses_is_refused_and_the_other_way_round() -> None:
    validator, client = schema_of("ChatRequest"), TestClient(World().app)
    good = {"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": None}
    parts = [{"type": "text", "text": "x"}]
    bad: list[Json] = [
        {"temperature": 3},
        {"stop": ""},
        {"model": "x"},
        {"service_tier": "turbo"},
        {"tool_choice": {"type": "function"}},
        {"logit_bias": {"x": 1}},
        *({"messages": [{"role": "user", "content": content}]} for content in ([], [{"type": ["text"], "text": "x"}], 5)),
    ]
    assert validator.is_valid(good) and client.post(CHAT, json=good).status_code == 200
    assert validator.is_valid({**good, "messages": [{"role": "user", "content": parts}]})
    for fields in bad:
        assert not validator.is_valid({**good, **fields}), fields
        assert client.post(CHAT, json={**good, **fields}).status_code in (400, 404), fields


def test_calls_in_a_conversation_are_as_described() -> None:
    validator, client = schema_of("ResponsesRequest"), TestClient(World(context=400).app)
    call = {"type": "function_call", "call_id": "c", "name": "now"}
    for arguments, is_good in (("{}", True), ("", True), (None, True), ({}, False), (0, False), (False, False)):
        body = {"model": "m", "input": [{**call, "arguments": arguments}]}
        assert validator.is_valid(body) is is_good
        assert client.post(RESPONSES, json=body).status_code == (200 if is_good else 400), arguments


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("script", SCRIPTS, ids=["text", "call", "failure"])
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_sent_is_what_is_described(path: str, script: Script, stream: bool) -> None:
    client = TestClient(World(script, context=400).app)
    operation = next(each for each in OPERATIONS if each.path == path)
    response = client.post(path, json={"model": "m", "stream": stream, **ASKED[path], **TOOLS[path]})
    assert str(response.status_code) in DOCUMENT["paths"][path]["post"]["responses"]
    if not stream:
        (model,) = operation.answered if response.status_code == 200 else operation.failures()
        model.model_validate(response.json())
        return
    framed = response.content.decode().removesuffix("\n\n").split("\n\n")
    for frame in framed:
        fields = dict(line.split(": ", 1) for line in frame.splitlines())
        if "event" in fields:
            operation.events[fields["event"]].model_validate(json.loads(fields["data"]))
        elif fields["data"] != "[DONE]":
            chunk = json.loads(fields["data"])
            (ErrorBody if "error" in chunk else operation.chunk or ChatChunk).model_validate(chunk)


def test_it_says_whether_a_key_is_needed() -> None:
    config = Settings.model_validate({"keys": {"alice": {"hash": hash_of("k")}}, "ledger": {"enabled": False}})
    served = TestClient(World(config=config).app).get("/openapi.json", headers={"x-api-key": "k"}).json()
    assert served["paths"][CHAT]["post"]["security"] == [{"bearer": []}, {"x-api-key": []}]
    assert served["paths"]["/health"]["get"]["security"] == [{}]
    assert {} in DOCUMENT["paths"][CHAT]["post"]["security"]
