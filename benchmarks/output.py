"""What every benchmark does with its figures: a table for people, JSON with the circumstances for programs."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headway.compare.machine import describe, machine_facts, versions

RESULTS = Path(__file__).parent / "results"


def command_line() -> str:
    """How this benchmark was called, without the folders of this machine."""
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    return shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])


def publish(name: str, table: Table, figures: dict[str, Any], notes: list[str], packages: tuple[str, ...] = ()) -> None:
    """Print the table and the notes; write the figures to results/NAME.json."""
    facts = machine_facts()
    console = Console()
    console.print(table)
    for note in notes:
        console.print(note, highlight=False, markup=False)
    console.print(f"Machine: {describe(facts)}", highlight=False, markup=False)
    report = {
        "machine": facts,
        "versions": versions(("headway", "openvino", "openvino-genai", "numpy", *packages)),
        "command": command_line(),
        **figures,
        "notes": notes,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    console.print(f"Written: {path.relative_to(RESULTS.parent.parent)}", highlight=False, markup=False)


def right_aligned(title: str, first: str, *others: str) -> Table:
    """A table whose first column names things and whose others hold figures."""
    table = Table(title=title)
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def figure(value: float | None, form: str = "{:.1f}") -> str:
    return "-" if value is None else form.format(value)
