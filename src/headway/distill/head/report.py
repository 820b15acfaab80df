"""What a training came to: a table, JSON, and the card in the head's file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headway import __version__
from headway.compare.machine import describe, machine_facts
from headway.distill.head.accuracy import Accuracy

ORDINALS = ("first", "second", "third")


@dataclass(frozen=True, slots=True)
class Result:
    """coverage: share of the answers' tokens that the head's vocabulary has. seconds: of training. held_out: as served."""

    model: str
    sha256: str
    prompts: str
    tokens: int
    answers: int
    epochs: float
    loss: float
    seconds: float
    device: str
    vocabulary: int
    coverage: float
    held_out: Accuracy

    def card(self) -> dict[str, object]:
        return {
            "model": self.model,
            "sha256": self.sha256,
            "prompts": self.prompts,
            "tokens": self.tokens,
            "answers": self.answers,
            "epochs": round(self.epochs, 3),
            "vocabulary": self.vocabulary,
            "coverage": round(self.coverage, 4),
            "loss": round(self.loss, 4),
            "held_out": held_out_json(self.held_out),
            "date": datetime.now(UTC).date().isoformat(),
            "headway": __version__,
        }


def held_out_json(seen: Accuracy) -> dict[str, object]:
    """right: how often each guess is right if those before it are. accepted_per_step: of the guesses, if all are verified."""
    return {
        "places": seen.places,
        "right": [round(x, 4) for x in seen.by_guess],
        "accepted_per_step": round(seen.accepted, 4),
    }


def to_json(result: Result, out: Path, card: dict[str, object]) -> dict[str, Any]:
    """The card and what is no business of the file's: where it lies, how long training took, on what machine."""
    return {
        "file": str(out),
        "bytes": out.stat().st_size,
        "card": card,
        "training": {"seconds": round(result.seconds, 1), "device": result.device},
        "machine": machine_facts(),
    }


def figures(seen: Accuracy) -> str:
    right = " ".join(f"{right:.0%}" for right in seen.by_guess)
    return f"guesses right {right}, {seen.accepted:.2f} accepted a step"


def print_report(result: Result, out: Path, is_found: bool, console: Console) -> None:
    """is_found: `headway serve` takes the file by itself."""
    table = Table()
    table.add_column("guess")
    table.add_column("right if those before are", justify="right")
    table.add_column("all right so far", justify="right")
    seen = result.held_out
    for name, right, chain in zip(ORDINALS, seen.by_guess, seen.in_a_row, strict=False):
        table.add_row(name, f"{right:.1%}", f"{chain:.1%}")
    use = f"headway serve {result.model} uses it" if is_found else f'set engine.draft_head = "{out.absolute()}" to use it'
    lines = [
        f"Accepted: {seen.accepted:.2f} guesses a step, where all are verified (as served, {seen.places:,} places held out)",
        f"Learned from: {result.tokens:,} tokens of {result.answers:,} answers, {result.epochs:.1f} epochs, "
        f"loss {result.loss:.2f}; {result.vocabulary:,} tokens can be guessed ({result.coverage:.1%} of the answers')",
        f"Machine: {describe(machine_facts())}; training on {result.device}",
        f"Written: {out} ({out.stat().st_size / 1e6:.1f} MB); {use}",
    ]
    console.print(table)
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
