"""What a distillation came to: a table, JSON, and the model's card."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headway import __version__
from headway.compare.machine import describe, machine_facts
from headway.distill.spark.quality import Quality

HELD_OUT_TEXT = "the reference of the Python language (pydoc_data)"


@dataclass(frozen=True, slots=True)
class Result:
    """how: the layers were chosen. vocabulary: tokens that the spark speaks with, None = all; parts: how many of them it says
    for one of its teacher's, on average. start: what it was trained on from. prompts, tokens, answers: learned from.
    seconds: of training. held_out: tokens of the teacher's greedy answers on which agreement was counted. answers_to: questions
    and what the spark says, greedily."""

    name: str
    teacher: str
    sha256: str
    licence: str | None
    kept: tuple[int, ...]
    teacher_layers: int
    how: str
    quantization: str
    prompts: str
    vocabulary: int | None
    parts: float
    start: str | None
    tokens: int
    answers: int
    epochs: float
    steps: int
    loss: float
    seconds: float
    device: str
    held_out: int
    teacher_quality: Quality
    spark: Quality
    untrained: Quality
    answers_to: tuple[tuple[str, str], ...] = ()

    def rows(self) -> list[tuple[str, Quality]]:
        return [("teacher", self.teacher_quality), (self.name, self.spark), ("the same layers, untrained", self.untrained)]


def to_json(result: Result, file: Path, losses: list[float]) -> dict[str, Any]:
    return {
        "file": str(file),
        "bytes": file.stat().st_size,
        "name": result.name,
        "teacher": {
            "model": result.teacher,
            "sha256": result.sha256,
            "licence": result.licence,
            "layers": result.teacher_layers,
        },
        "layers": {"kept": list(result.kept), "chosen": result.how},
        "quantization": result.quantization,
        "vocabulary": {"tokens": result.vocabulary, "for_one_of_the_teacher": round(result.parts, 4)},
        "start": result.start,
        "data": {"prompts": result.prompts, "tokens": result.tokens, "answers": result.answers},
        "training": {
            "epochs": round(result.epochs, 3),
            "steps": result.steps,
            "loss": round(result.loss, 4),
            "losses": [round(x, 4) for x in losses],
            "seconds": round(result.seconds, 1),
            "device": result.device,
        },
        "held_out": {"tokens": result.held_out, "text": HELD_OUT_TEXT},
        "quality": {
            name: {"agreement": round(q.agreement, 4), "perplexity": round(q.perplexity, 3)}
            for name, q in zip(("teacher", "spark", "untrained"), (q for _, q in result.rows()), strict=True)
        },
        "answers": dict(result.answers_to),
        "date": datetime.now(UTC).date().isoformat(),
        "headway": __version__,
        "machine": machine_facts(),
    }


def card(result: Result, file: Path) -> str:
    """In Markdown, with the header that model hubs read."""
    licence = result.licence or "that of the teacher"
    lines = [
        "---",
        f"license: {(result.licence or 'other').lower()}",
        f"base_model: {result.teacher}",
        "tags: [headway, spark, distillation, pruning]",
        "---",
        "",
        f"# {result.name}",
        "",
        f"A small, quick model made of {result.teacher} with `headway distill`: {len(result.kept)} of its "
        f"{result.teacher_layers} layers, trained to foretell what the teacher would say. It is weaker than its teacher: take "
        "it where speed counts and a mistake is cheap.",
        "",
        "| | next token as the teacher's | perplexity |",
        "|---|---|---|",
        *(f"| {name} | {_share(q)} | {q.perplexity:.1f} |" for name, q in result.rows()),
        "",
        f"The first is how often the likeliest token is the teacher's, over {result.held_out:,} tokens of its greedy answers "
        f"to prompts that were held out; the second is of {HELD_OUT_TEXT}, in windows of 512 tokens. The spark's were measured "
        "on what this file holds.",
        "",
        *_samples(result),
        f"- **File**: {file.name}, {file.stat().st_size / 1e6:.1f} MB, {result.quantization.upper()}",
        f"- **Teacher**: {result.teacher}, SHA-256 `{result.sha256}`",
        f"- **Layers kept**: {', '.join(map(str, result.kept))} (chosen: {result.how}); embeddings and output matrix are the "
        "teacher's",
        *_spoken(result),
        f"- **Data**: {result.tokens:,} tokens of {result.answers:,} of the teacher's own answers; prompts: {result.prompts}",
        f"- **Training**: {result.steps:,} steps, {result.epochs:.2f} epochs, {result.seconds / 60:.0f} minutes on "
        f"{result.device}; last loss {result.loss:.3f}",
        *([f"- **Begun with**: {result.start}"] if result.start is not None else []),
        f"- **Licence**: {licence}",
        f"- **Made**: {datetime.now(UTC).date().isoformat()} by headway {__version__}",
        "",
    ]
    return "\n".join(lines)


def _samples(result: Result) -> list[str]:
    if not result.answers_to:
        return []
    rows = [f"| {question} | {' '.join(said.replace('|', '/').split())} |" for question, said in result.answers_to]
    return ["| asked | it says (greedy, cut short) |", "|---|---|", *rows, ""]


def _spoken(result: Result) -> list[str]:
    if result.vocabulary is None:
        return []
    return [
        f"- **Vocabulary**: it understands every token, and speaks with the {result.vocabulary:,} that its teacher uses most, "
        f"of which it spells the others: {result.parts:.3f} for one of the teacher's. Agreement and perplexity are by the "
        "teacher's tokens. headway computes no logits but these; other engines run the file as it is"
    ]


def print_result(result: Result, file: Path, console: Console) -> None:
    table = Table()
    table.add_column("model")
    table.add_column("next token as the teacher's", justify="right")
    table.add_column("perplexity", justify="right")
    for name, q in result.rows():
        table.add_row(name, _share(q), f"{q.perplexity:.1f}")
    console.print(table)
    lines = [
        f"Kept: layers {', '.join(map(str, result.kept))} of {result.teacher_layers} ({result.how})",
        f"Learned from: {result.tokens:,} tokens of {result.answers:,} answers, {result.epochs:.1f} epochs; loss "
        f"{result.loss:.2f}",
        f"Machine: {describe(machine_facts())}; training on {result.device}, {result.seconds / 60:.0f} min",
        f"Written: {file} ({file.stat().st_size / 1e6:.1f} MB) and its card; headway serve {result.teacher} --spark {file}",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _share(q: Quality) -> str:
    return f"{q.agreement:.1%}"
