"""Texts and code that every Python brings along: the standard library's documentation and functions."""

from __future__ import annotations

import ast
import re
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SHORTEST, LONGEST = 150, 900
"""Characters of a piece."""


@dataclass(frozen=True, slots=True)
class Library:
    """texts: paragraphs of prose. functions: sources of functions. Both sorted; empty where Python has no sources."""

    texts: tuple[str, ...]
    functions: tuple[str, ...]


@cache
def standard_library() -> Library:
    """Of the modules at the top; they are read, not imported, since importing some does things. Takes some seconds."""
    texts: set[str] = set()
    functions: set[str] = set()
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("[a-z]*.py")):
        try:
            source = path.read_text(encoding="utf-8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about escapes in old modules
                tree = ast.parse(source)
        except (OSError, ValueError, SyntaxError):
            continue
        texts.update(_texts(tree))
        functions.update(_functions(tree, source.splitlines()))
    return Library(tuple(sorted(texts)), tuple(sorted(functions)))


def reference() -> list[str]:
    """Chapters of the reference of the language, as `help` prints it: prose of which `standard_library` has nothing."""
    from pydoc_data.topics import topics

    return [text for _, text in sorted(topics.items())]


def _texts(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            text = re.sub(r"\s*\n\s*", " ", text).strip()
            if SHORTEST < len(text) < LONGEST:
                yield text


def _functions(tree: ast.Module, lines: list[str]) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if SHORTEST < len(source) < LONGEST:
                yield source
