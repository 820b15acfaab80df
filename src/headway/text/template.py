"""The chat template of a model: messages to the prompt's text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from headway.errors import ModelError, RequestError
from headway.text.adapt import adapt, probe
from headway.text.messages import normalise
from headway.text.parts import PlainReader, Reader
from headway.text.toolcalls import ToolReader


class ChatTemplate:
    """A Jinja template in the surroundings that Hugging Face gives it, in a sandbox.

    bos, eos: the text of these tokens, for templates that write them. Raises ModelError if the source isn't a template.
    """

    def __init__(self, source: str, *, bos: str = "", eos: str = "") -> None:
        self._tokens = {"bos_token": bos, "eos_token": eos}
        try:
            self._template = _environment().from_string(source)
        except TemplateSyntaxError as error:
            raise ModelError(f"the chat template can't be read: line {error.lineno}: {_one_line(error)}") from None
        self.abilities = probe(self._expand)

    def render(self, messages: Sequence[dict[str, Any]], *, tools: Sequence[dict[str, Any]] | None = None) -> str:
        """The prompt text, with the generation prompt at its end. Raises RequestError(400) with the template's own words when
        the template refuses the messages, and for messages that `normalise` refuses."""
        return self._expand(*adapt(normalise(messages), tools, self.abilities))

    def reader(self, tools: Sequence[dict[str, Any]] | None, *, parallel: bool = True) -> Reader:
        """What tells text from tool calls in one output. tools: as given to `render`; without any there are no calls. parallel:
        whether there may be several."""
        if not tools:
            return PlainReader()
        return ToolReader(self.abilities.format, {tool["function"]["name"] for tool in tools}, parallel=parallel)

    def _expand(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] | None) -> str:
        try:
            return self._template.render(
                messages=messages, tools=tools, documents=None, add_generation_prompt=True, **self._tokens
            )
        except Exception as error:  # the template is a program: whatever goes wrong in it is its way to refuse
            reason = f"the model's chat template refuses these messages: {_one_line(error)}"
            raise RequestError(400, reason, param="messages") from None


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


class _GenerationBlock(Extension):
    """`{% generation %}...{% endgeneration %}` marks the model's own words for training; here only its body counts."""

    tags = {"generation"}  # noqa: RUF012 - jinja's interface: read once, never changed

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own filter escapes HTML's characters, which models were not trained on."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> None:
    raise TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
