"""The bytes of a request, and a validated model out of them."""

from __future__ import annotations

import json
from types import UnionType
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request

from headway.errors import RequestError

Model = TypeVar("Model", bound=BaseModel)
BOM = b"\xef\xbb\xbf"


class Body(BaseModel):
    """What the schemas of all dialects have in common: strict types; unknown fields are ignored, because new clients send new
    ones. A field's description, up to the first semicolon, completes the sentence "'field' must be ..." in error messages."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Raises RequestError 413 from the Content-Length alone, or as soon as more than `max_bytes` have come. The connection
    stays usable: what the client still sends is thrown away as it arrives."""
    declared = request.headers.get("content-length", "0")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise HTTPException(499, "The client closed the connection before the body was complete.")
        body += message.get("body", b"")
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
        if not message.get("more_body"):
            return bytes(body)


def _too_large(max_bytes: int) -> RequestError:
    return RequestError(413, f"The body is larger than the {max_bytes / 1e6:g} MB that this server takes.")


def parse(model: type[Model], body: bytes) -> Model:
    """A strict reading: UTF-8 JSON (a byte order mark is skipped), no conversions between types, unknown fields ignored,
    of a key given twice the last one counts. Raises RequestError 400 that names the first field at fault."""
    body = body.removeprefix(BOM)
    if not body.strip():
        raise RequestError(400, "The body is empty; a JSON object is expected.")
    try:
        if b"NaN" in body or b"Infinity" in body:
            from_json(body, allow_inf_nan=False)  # model_validate_json would let them pass in fields that it ignores
        return model.model_validate_json(body)
    except ValidationError as exc:
        raise _explain(model, exc.errors(include_url=False)[0]) from None
    except ValueError as exc:
        raise RequestError(400, f"The body is not valid JSON: {exc}.") from None


def _explain(model: type[BaseModel], error: ErrorDetails) -> RequestError:
    if error["type"] == "json_invalid":
        return RequestError(400, f"The body is not valid JSON: {error['ctx']['error']}.")
    if not error["loc"]:
        return RequestError(400, f"The body must be a JSON object, not {show(error['input'])}.")
    path, expected = _locate(model, error["loc"])
    if error["type"] == "missing":
        return RequestError(400, f"'{path}' is missing; it must be {expected}.", param=path)
    return RequestError(400, f"'{path}' must be {expected}, not {show(error['input'])}.", param=path)


def _locate(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[str, str]:
    """The field's path as a client writes it, and what it must be: its description up to the first semicolon."""
    path, expected = "", "something else"
    current: type[BaseModel] | None = model
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif current is not None and part in current.model_fields:
            field = current.model_fields[part]
            path = f"{path}.{part}" if path else part
            expected = (field.description or expected).split(";")[0]
            current = _model_in(field.annotation)
        else:  # the name of a union's branch, or a key of a mapping
            break
    return path, expected


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and not isinstance(annotation, UnionType) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _model_in(arg))), None)


def show(value: Any, width: int = 60) -> str:
    """A value as JSON on one line, cut to `width` characters, in plain ASCII."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):  # an integer of thousands of digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= width else f"{text[:width]}..."


def printable(text: str) -> str:
    """Lone surrogates, which a request can smuggle into a message, are replaced: UTF-8 has none."""
    return text.encode("utf-8", "replace").decode()
