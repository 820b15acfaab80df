"""The chat template of a model: messages to the prompt's text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from headway.errors import ModelError, RequestError
from headway.text.adapt import adapt, adapt_more, probe
from headway.text.growing import MARK, growing
from headway.text.messages import Message, normalise
from headway.text.parts import PlainReader, Reader
from headway.text.toolcalls import ToolReader

Tools = Sequence[dict[str, Any]] | None


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation's prompt, and what a longer one can be gone on from. messages, tools: as they were given. num_fixed: how
    many characters of the text stay when messages follow; 0 if that isn't known. adapted: what the template was given."""

    text: str
    messages: Sequence[Message]
    tools: Tools
    num_fixed: int
    adapted: tuple[list[Message], Tools]


class ChatTemplate:
    """A Jinja template in the surroundings that Hugging Face gives it, in a sandbox.

    bos, eos: the text of these tokens, for templates that write them. Raises ModelError if the source isn't a template.
    """

    def __init__(self, source: str, *, bos: str = "", eos: str = "") -> None:
        self._tokens = {"bos_token": bos, "eos_token": eos}
        environment = _environment()
        try:
            self._template = environment.from_string(source)
        except TemplateSyntaxError as error:
            raise ModelError(f"the chat template can't be read: line {error.lineno}: {_one_line(error)}") from None
        self._growing = growing(environment, source)
        self.abilities = probe(self._expand)

    def render(self, messages: Sequence[dict[str, Any]], *, tools: Sequence[dict[str, Any]] | None = None) -> str:
        """The prompt text, with the generation prompt at its end. Raises RequestError(400) with the template's own words when
        the template refuses the messages, and for messages that `normalise` refuses."""
        return self._expand(*adapt(normalise(messages), tools, self.abilities))

    def render_on(self, known: Iterable[Rendered], messages: Sequence[Message], tools: Tools) -> Rendered:
        """What `render` gives, and raises; sooner where the conversation goes on from one that is known."""
        for before in known:
            if (rendered := self._more(before, messages, tools)) is not None:
                return rendered
        return self._whole(messages, tools)

    def _whole(self, messages: Sequence[Message], tools: Tools) -> Rendered:
        adapted = adapt(normalise(messages), tools, self.abilities)
        if self._growing is not None:
            fixed, *rest = self._expand(*adapted, self._growing.begin).split(MARK)
            if len(rest) == 1:  # else a message holds the mark
                return Rendered(fixed + rest[0], messages, tools, len(fixed), adapted)
        return Rendered(self._expand(*adapted), messages, tools, 0, adapted)

    def _more(self, before: Rendered, messages: Sequence[Message], tools: Tools) -> Rendered | None:
        """None where that can't be gone on from, or where something is wrong with the new messages."""
        known = len(before.messages)
        if self._growing is None or not before.num_fixed or len(messages) <= known:
            return None
        if tools != before.tools or messages[:known] != before.messages:
            return None
        try:
            more = adapt_more(before.messages, normalise(messages[known:]), self.abilities)
            if more is None:
                return None
            go_on, (earlier, told) = self._growing.go_on, before.adapted
            adapted = [*earlier, *more]
            new, *rest = self._expand(adapted, told, lambda variables: go_on(variables, len(more))).split(MARK)
        except RequestError:
            return None
        if len(rest) != 1:
            return None
        fixed = before.text[: before.num_fixed] + new
        return Rendered(fixed + rest[0], messages, tools, len(fixed), (adapted, told))

    def reader(self, tools: Sequence[dict[str, Any]] | None, *, parallel: bool = True) -> Reader:
        """What tells text from tool calls in one output. tools: as given to `render`; without any there are no calls. parallel:
        whether there may be several."""
        if not tools:
            return PlainReader()
        return ToolReader(self.abilities.format, {tool["function"]["name"] for tool in tools}, parallel=parallel)

    def _expand(
        self,
        messages: Sequence[Message],
        tools: Tools,
        render: Callable[[dict[str, Any]], str] | None = None,
    ) -> str:
        given = {"messages": messages, "tools": tools, "documents": None, "add_generation_prompt": True, **self._tokens}
        try:
            return (render or self._template.render)(given)
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
