"""Chat templates whose text only grows at its end as a conversation goes on, so that the beginning needn't be rendered again.

Whether a template is one of them is read from its syntax tree, and doubt counts as no. It has to be a loop over the messages,
with anything before and after it, in which nothing that is written for a message depends on those that come later, on the
clock or on what the loop has noted down. Then the text of a longer conversation is that of its beginning, up to where the
loop ended, and what the loop writes for the messages that are new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, Template, nodes

MARK = "\ue000headway: the loop ends here\ue000"
"""Written between the loop's text and what follows it, and taken out again."""
_NUM_NEW = "headway_num_new_messages"
_MESSAGES = "messages"
_LOOKS_BACK = frozenset({"first", "index", "index0", "previtem", "depth", "depth0"})
"""Of `loop`. The others know how many messages there are, or what the next one is."""
_CALLED = frozenset({"raise_exception", "range", "dict"})
_FILTERS = frozenset(
    {
        *("capitalize", "count", "default", "first", "float", "indent", "int", "items", "join", "last", "length", "list"),
        *("lower", "map", "reject", "rejectattr", "replace", "reverse", "safe", "select", "selectattr", "sort", "string"),
        *("title", "tojson", "trim", "unique", "upper"),
    }
)
_KINDS: tuple[type[nodes.Node], ...] = (
    *(nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign),
    *(nodes.Const, nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Tuple, nodes.List, nodes.Dict, nodes.Pair),
    *(nodes.Compare, nodes.Operand, nodes.BinExpr, nodes.UnaryExpr, nodes.Concat, nodes.CondExpr, nodes.Keyword),
    *(nodes.Filter, nodes.Test, nodes.Call),
)


@dataclass(frozen=True, slots=True)
class Growing:
    """whole, more: the template with MARK in its text, and without the text before that of new messages."""

    whole: Template
    more: Template

    def begin(self, variables: dict[str, Any]) -> str:
        """What the template makes of `variables`, with MARK where the loop ends."""
        return self.whole.render(variables)

    def go_on(self, variables: dict[str, Any], num_new: int) -> str:
        """Of these messages what the last `num_new` add, MARK, and what follows the loop."""
        return self.more.render({**variables, _NUM_NEW: num_new})


def growing(environment: Environment, source: str) -> Growing | None:
    """None if the template's text may change in its middle, or nothing can be said of it."""
    whole, more = environment.parse(source), environment.parse(source)
    at = _the_loop(whole)
    if at is None:
        return None
    mark = nodes.Output([nodes.TemplateData(MARK)])
    loop = more.body[at]
    assert isinstance(loop, nodes.For)
    is_new = nodes.Compare(
        nodes.Getattr(nodes.Name("loop", "load"), "revindex", "load"), [nodes.Operand("lteq", nodes.Name(_NUM_NEW, "load"))]
    )
    loop.body = [nodes.If(is_new, loop.body, [], [])]
    more.body = [*_assignments(more.body[:at]), loop, mark, *more.body[at + 1 :]]
    whole.body = [*whole.body[: at + 1], mark, *whole.body[at + 1 :]]
    return Growing(*(_compiled(environment, each) for each in (whole, more)))


def _compiled(environment: Environment, tree: nodes.Template) -> Template:
    tree.set_lineno(1)
    tree.set_environment(environment)
    return environment.from_string(tree)


def _the_loop(template: nodes.Template) -> int | None:
    """Where in the template's body the loop over the messages is, if that is a loop as described above."""
    names = {_MESSAGES: 0}
    for index, node in enumerate(template.body):
        if isinstance(node, nodes.For) and isinstance(node.iter, nodes.Name) and node.iter.name in names:
            plain = isinstance(node.target, nodes.Name) and not (node.test or node.else_ or node.recursive)
            sound = plain and all(map(_Check(names, in_loop=True).holds, [node.target, *node.body]))
            after = _Check(frozenset(), in_loop=False)
            return index if sound and all(map(after.holds, template.body[index + 1 :])) else None
        if not _before(node, names):
            return None
    return None


def _before(node: nodes.Node, names: dict[str, int]) -> bool:
    """Whether what stands before the loop stays the same. names: of variables that hold the messages, and how many of the first
    they leave out, which may be one; those that are set here are added."""
    check = _Check(names, in_loop=False)
    if isinstance(node, nodes.Assign) and isinstance(node.target, nodes.Name):
        value, left_out = node.node, 0
        if isinstance(value, nodes.Getitem) and _is_all_but_first(value.arg):
            value, left_out = value.node, 1
        if isinstance(value, nodes.Name) and value.name in names:
            names[node.target.name] = left_out = left_out + names[value.name]
            return left_out <= 1
        return check.holds(node)
    if isinstance(node, nodes.If):
        branches: list[nodes.Node] = [*node.body, *node.else_]
        for elif_ in node.elif_:
            if not check.holds(elif_.test):
                return False
            branches += elif_.body
        return check.holds(node.test) and all(_before(each, names) for each in branches)
    return check.holds(node)


def _is_all_but_first(place: nodes.Expr) -> bool:
    if not isinstance(place, nodes.Slice) or place.stop is not None or place.step is not None:
        return False
    return isinstance(place.start, nodes.Const) and place.start.value == 1


def _assignments(body: Iterable[nodes.Node]) -> list[nodes.Node]:
    """What stands before the loop, but for its text."""
    kept: list[nodes.Node] = []
    for node in body:
        if isinstance(node, nodes.Assign):
            kept.append(node)
        elif isinstance(node, nodes.If):
            node.body, node.else_ = _assignments(node.body), _assignments(node.else_)
            for elif_ in node.elif_:
                elif_.body = _assignments(elif_.body)
            kept.append(node)
    return kept


class _Check:
    """names: of variables that hold the messages; only the first may be looked at in them. in_loop: whether `loop` is the one
    over the messages."""

    def __init__(self, names: Iterable[str], *, in_loop: bool) -> None:
        self._names = frozenset(names)
        self._in_loop = in_loop

    def holds(self, node: nodes.Node) -> bool:
        if not isinstance(node, _KINDS):
            return False
        if isinstance(node, nodes.Getitem) and self._is_messages(node.node):
            return isinstance(node.arg, nodes.Const) and node.arg.value == 0
        if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name) and node.node.name == "loop":
            return not self._in_loop or node.attr in _LOOKS_BACK
        if isinstance(node, nodes.Name):
            return not self._is_messages(node) and not (self._in_loop and node.name == "loop")
        if isinstance(node, nodes.Call) and not (isinstance(node.node, nodes.Name) and node.node.name in _CALLED):
            return isinstance(node.node, nodes.Getattr) and self._children(node)  # a method of a value: of text, of an object
        if isinstance(node, nodes.Filter) and node.name not in _FILTERS:
            return False
        if isinstance(node, nodes.For):
            inner = _Check(self._names, in_loop=False)
            outside = [node.iter, *([node.test] if node.test is not None else [])]
            return all(map(self.holds, outside)) and all(map(inner.holds, [node.target, *node.body, *node.else_]))
        return self._children(node)

    def _children(self, node: nodes.Node) -> bool:
        return all(map(self.holds, node.iter_child_nodes()))

    def _is_messages(self, node: nodes.Node) -> bool:
        return isinstance(node, nodes.Name) and node.name in self._names
