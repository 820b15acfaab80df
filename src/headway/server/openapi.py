"""The OpenAPI document: every path, in each dialect's own words, with its events and its failures.

Written from the table in `operations.py` rather than drawn from the routes: the endpoints read raw bytes, and what they may
answer is known there alone. A WebSocket has no place in OpenAPI; the path it shares is described with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from headway import __version__
from headway.server.operations import ERRORS, OPERATIONS, Dialect, Operation

Json = dict[str, Any]
REF = "#/components/schemas/{model}"
KEYS: Json = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key of headway.toml, as OpenAI's clients send it."},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "As Anthropic's clients send it."},
}
DIALECTS: Mapping[Dialect, str] = {
    "OpenAI": "Chat, completions and Responses.",
    "Anthropic": "Messages.",
    "models": "In OpenAI's shape; in Anthropic's where the request carries `anthropic-version`.",
    "operations": "For people and machines that look after the server.",
}


def document(model_id: str, aliases: list[str], *, needs_key: bool) -> Json:
    """OpenAPI 3.1. aliases: other names of the model; needs_key: whether a request without a key is refused."""
    models = {each for operation in OPERATIONS for each in operation.models()}
    ordered = sorted(models, key=lambda model: model.__name__)
    _, made = models_json_schema([(model, "validation") for model in ordered], ref_template=REF)
    schemas = made["$defs"]
    for operation in OPERATIONS:
        if operation.asked is not None:
            schemas[operation.asked.__name__]["properties"]["model"]["enum"] = [model_id, *aliases]
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = described = _operation(operation, model_id, needs_key)
        for parameter in described.get("parameters", ()):
            if parameter["name"] == "model_id":
                parameter["schema"] = {"enum": [model_id, *aliases]}
    return {
        "openapi": "3.1.0",
        "info": {"title": "headway", "version": __version__, "description": "An LLM server with speeds that are promised."},
        "tags": [{"name": name, "description": text} for name, text in DIALECTS.items()],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": KEYS},
    }


def _operation(operation: Operation, model_id: str, needs_key: bool) -> Json:
    """model_id: for examples."""
    described: Json = {"operationId": operation.name, "tags": [operation.dialect], "summary": operation.summary}
    if operation.description:
        described["description"] = operation.description
    described["security"] = [{}] if operation.open else [*([] if needs_key else [{}]), {"bearer": []}, {"x-api-key": []}]
    if operation.parameters:
        described["parameters"] = [dict(parameter) for parameter in operation.parameters]
    if operation.asked is not None:
        body = {"schema": _ref(operation.asked.__name__), "example": {"model": model_id, **operation.example}}
        described["requestBody"] = {"required": True, "content": {"application/json": body}}
    described["responses"] = {"200": _success(operation)} | {
        str(status): _failure(operation, status) for status in operation.statuses()
    }
    return described


def _success(operation: Operation) -> Json:
    content: Json = {media_type: {"schema": {"type": "string"}} for media_type in operation.plain}
    if operation.answered:
        content["application/json"] = {"schema": _any(model.__name__ for model in operation.answered)}
    if operation.chunk is not None:
        content["text/event-stream"] = {"itemSchema": _chunk(operation.chunk.__name__)}
    if operation.events:
        named = [_event(kind, model.__name__) for kind, model in operation.events.items()]
        content["text/event-stream"] = {"itemSchema": {"anyOf": named}}
    links = {name: {"operationId": name, "parameters": {"response_id": "$response.body#/id"}} for name in operation.leads_to}
    described = {"description": operation.answer, "headers": _headers(operation, "x-request-id"), "content": content}
    return {**described, "links": links} if links else described


def _failure(operation: Operation, status: int) -> Json:
    if operation.unhealthy is not None and status == 503:
        body = _ref(operation.unhealthy.__name__)
    else:
        body = _any(model.__name__ for model in operation.failures())
    waits = ["retry-after", "retry-after-ms"] if status == 429 else []
    return {
        "description": ERRORS[status],
        "headers": _headers(operation, "x-request-id", *waits),
        "content": {"application/json": {"schema": body}},
    }


def _headers(operation: Operation, *names: str) -> Json:
    names = (*names, "request-id") if operation.dialect == "Anthropic" else names
    texts = {
        "x-request-id": "Names the request in the server's log and ledger.",
        "request-id": "The same, under the name that Anthropic's clients look for.",
        "retry-after": "Seconds to wait, a whole number.",
        "retry-after-ms": "The same in milliseconds.",
    }
    kinds = {"retry-after": "integer", "retry-after-ms": "integer"}
    return {
        name: {"required": True, "description": texts[name], "schema": {"type": kinds.get(name, "string")}} for name in names
    }


def _chunk(name: str) -> Json:
    """An event without a name: a chunk, the error that ends a stream early, or the mark at its end."""
    chunk = {"contentMediaType": "application/json", "contentSchema": {"anyOf": [_ref(name), _ref("ErrorBody")]}}
    data = {"anyOf": [{"const": "[DONE]"}, {"type": "string", **chunk}]}
    return {"type": "object", "properties": {"data": data}, "required": ["data"]}


def _event(kind: str, name: str) -> Json:
    """An event named after its type."""
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": _ref(name)}
    return {"type": "object", "properties": {"event": {"const": kind}, "data": data}, "required": ["event", "data"]}


def _any(names: Any) -> Json:
    refs = [_ref(name) for name in names]
    return refs[0] if len(refs) == 1 else {"anyOf": refs}


def _ref(name: str) -> Json:
    return {"$ref": REF.format(model=name)}
