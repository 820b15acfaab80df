"""What a request holds its output to, whatever its dialect; compiled beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from headway.errors import RequestError
from headway.grammar.compiler import Compiler, Grammar
from headway.grammar.constraint import Constraint, json_object, json_schema
from headway.grammar.errors import ConstraintError
from headway.grammar.tools import CALL_FORMS, forced_calls, special_token_of
from headway.runtime.served import ServedModel
from headway.server.prompt import template_of

Tool = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ForcedCall:
    """That the output must be calls. name: of the one tool to call, once; None: any. parallel: whether there may be several."""

    name: str | None
    parallel: bool


@dataclass(frozen=True, slots=True)
class Form:
    """What text is held to. kind: text (nothing), json_object, or json_schema, which has a schema. param: the field that says
    so."""

    kind: str
    schema: Any
    param: str


def check_together(forced: ForcedCall | None, form: Form | None) -> None:
    """Raises RequestError 400 where a request asks for both."""
    if forced is not None and form is not None and form.kind != "text":
        message = f"'{form.param}' and a 'tool_choice' that forces a call exclude each other; leave one of them out."
        raise RequestError(400, message, param=form.param)


async def constraint(
    served: ServedModel, form: Form | None, forced: ForcedCall | None = None, tools: Sequence[Tool] = ()
) -> Grammar | None:
    """tools: as OpenAI writes them. Raises RequestError 400 about the field that can't be kept."""
    if forced is not None:
        asked = _words([forced.name, forced.parallel, tools])
        return await _compiled(served.grammars, asked, _calls(served, tools, forced), "tool_choice")
    if form is None or form.kind == "text":
        return None
    asked = _words([form.kind, form.schema])
    if form.kind == "json_object":
        return await _compiled(served.grammars, asked, json_object, form.param)
    return await _compiled(served.grammars, asked, lambda: json_schema(form.schema), form.param)


def _words(asked: Any) -> bytes | None:
    """None for what is no text, or nested too deeply."""
    try:
        return to_json(asked, inf_nan_mode="constants")
    except ValueError:
        return None


async def _compiled(compiler: Compiler, asked: bytes | None, make: Callable[[], Constraint], param: str) -> Grammar:
    """asked: what the client wrote, to know it again. make: builds the constraint, which may take milliseconds too."""
    if asked is not None and (known := compiler.recall(asked)) is not None:
        return known
    try:
        grammar = await asyncio.get_running_loop().run_in_executor(compiler.worker, lambda: compiler.compile(make()))
    except ConstraintError as error:
        raise RequestError(400, f"'{param}' can't be used: {error}.", param=param) from None
    if asked is not None:
        compiler.remember(asked, grammar)
    return grammar


def _calls(served: ServedModel, tools: Sequence[Tool], forced: ForcedCall) -> Callable[[], Constraint]:
    if not tools:
        raise RequestError(400, "'tool_choice' asks for a call, but 'tools' is empty.", param="tool_choice")
    form = CALL_FORMS[template_of(served).abilities.format]
    special = special_token_of(served.tokenizer.token_bytes, served.tokenizer.encode)
    return lambda: forced_calls(tools, forced.name, form, parallel=forced.parallel, special_token=special)
