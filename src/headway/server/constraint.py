"""Constraints that a request asks for, compiled beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.errors import RequestError
from headway.grammar.compiler import Compiler, Grammar
from headway.grammar.constraint import Constraint, json_object, json_schema
from headway.grammar.errors import ConstraintError
from headway.grammar.tools import CALL_FORMS, forced_calls, special_token_of
from headway.runtime.served import ServedModel
from headway.server.prompt import template_of

Tool = Mapping[str, Any]


async def grammar_of(compiler: Compiler, make: Callable[[], Constraint], param: str) -> Grammar:
    """make: builds the constraint, which may take milliseconds too. Raises RequestError 400 about the field `param`."""
    try:
        return await asyncio.get_running_loop().run_in_executor(compiler.worker, lambda: compiler.compile(make()))
    except ConstraintError as error:
        raise RequestError(400, f"'{param}' can't be used: {error}.", param=param) from None


async def grammar_of_format(compiler: Compiler, kind: str, schema: Any, param: str) -> Grammar | None:
    """For a response format: text, json_object or json_schema."""
    if kind == "text":
        return None
    if kind == "json_object":
        return await grammar_of(compiler, json_object, param)
    return await grammar_of(compiler, lambda: json_schema(schema), param)


async def grammar_of_calls(served: ServedModel, tools: Sequence[Tool], name: str | None, *, parallel: bool) -> Grammar:
    """For an output that must be calls of these tools (as OpenAI writes them): of the one named, or of any. Raises RequestError
    400 about the field `tool_choice`."""
    if not tools:
        raise RequestError(400, "'tool_choice' asks for a call, but 'tools' is empty.", param="tool_choice")
    form = CALL_FORMS[template_of(served).abilities.format]
    special = special_token_of(served.tokenizer.token_bytes, served.tokenizer.encode)

    def calls() -> Constraint:
        return forced_calls(tools, name, form, parallel=parallel, special_token=special)

    return await grammar_of(served.grammars, calls, "tool_choice")
