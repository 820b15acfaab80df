"""One stream at the fast mode beside its peers, on text that repeats and on free chat.

    python benchmarks/speculation.py [--model smollm2] [--rounds 3] [--max-tokens 160]

How to read it: output tokens/s of one greedy stream, by kind of task; medians of the rounds, in brackets the lowest and the
highest. "predicted" sends the text to be edited as OpenAI's `prediction` (the peers get the same prompts without it). The last
column is headway over the better peer. headway's text with drafts is its text without (tests/cases/test_speculation.py).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path
from statistics import median

from contestants import Contestant, Job, Outcome, convert, headway, llama_cpp, openvino_genai
from output import publish, right_aligned
from rich.console import Console

from headway.catalog.resolve import resolve
from headway.compare.prompts import PROMPTS
from headway.errors import HeadwayError
from headway.modes import ModeName

HEADWAY, LLAMA, GENAI, LOOKUP = "headway", "llama.cpp", "OpenVINO GenAI", "GenAI, prompt lookup"
CODE = """class Basket:
    def __init__(self):
        self.items = []

    def add(self, name, price, count=1):
        self.items.append({"name": name, "price": price, "count": count})

    def total(self):
        total = 0
        for item in self.items:
            total = total + item["price"] * item["count"]
        return total

    def remove(self, name):
        self.items = [item for item in self.items if item["name"] != name]
"""
ORDERS = """2026-03-01 order 1041 shipped to Lisbon, 3 parcels, 18.50 EUR
2026-03-01 order 1042 delayed in Hamburg, customs form missing
2026-03-02 order 1043 shipped to Porto, 1 parcel, 7.20 EUR
2026-03-02 order 1044 returned by customer, wrong size
2026-03-03 order 1045 shipped to Lisbon, 2 parcels, 12.90 EUR
2026-03-03 order 1046 delayed in Hamburg, storm
"""
LETTER = (
    "Dear Ms Alvarez, thank you for your letter of the fourth. The roof of the west hall was inspected on Monday. Two of the "
    "beams are cracked and have to be replaced before the winter. The work takes nine days. We would begin on the twelfth. "
    "During the work the hall has to stay closed. Please tell us whether the date suits you. Yours sincerely, Tomas Reiter"
)
EDITS = (
    (f"Rename the class Basket to Cart and give back the whole code.\n\n{CODE}", CODE.replace("Basket", "Cart")),
    (f"Repeat this code exactly and add a comment above each function.\n\n{CODE}", CODE),
    (f"Correct the spelling and repeat the letter word for word.\n\n{LETTER}", LETTER),
)
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "edit": (tuple(prompt for prompt, _ in EDITS), ()),
    "edit, predicted": (tuple(prompt for prompt, _ in EDITS), tuple(text for _, text in EDITS)),
    "extract": (
        (
            f"Copy every line about Lisbon or Porto, unchanged.\n\n{ORDERS}",
            f"List all lines with the word delayed, then all lines with the word shipped.\n\n{ORDERS}",
        ),
        (),
    ),
    "summarize": (tuple(prompt for prompt in PROMPTS if "ummar" in prompt or "Explain what this" in prompt)[:3], ()),
    "free chat": (tuple(prompt for prompt in PROMPTS if len(prompt) < 120)[:6], ()),
}
GOALS = {"edit": 2.0, "edit, predicted": 2.0, "extract": 2.0, "summarize": 2.0, "free chat": 1.2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="a name that `headway pull` knows, or the path of a GGUF")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--ir-cache", type=Path, default=Path(tempfile.gettempdir()) / "headway-bench-ir")
    arguments = parser.parse_args()
    gguf = resolve(arguments.model).path
    folder = convert(gguf, arguments.ir_cache / gguf.stem)
    with contextlib.ExitStack() as stack:
        contestants: dict[str, Contestant] = {
            HEADWAY: stack.enter_context(headway(arguments.model, 1)),
            LLAMA: stack.enter_context(llama_cpp(gguf, 1)),
            GENAI: stack.enter_context(openvino_genai(folder)),
            LOOKUP: stack.enter_context(openvino_genai(folder, lookup=True)),
        }
        results = measure(contestants, arguments.rounds, arguments.max_tokens)
    report(results, arguments)


def measure(contestants: dict[str, Contestant], rounds: int, max_tokens: int) -> dict[str, dict[str, list[Outcome]]]:
    """Outcomes by kind and contestant; all take turns. Each prompt is marked with its round, so that no cache knows it."""
    console = Console(stderr=True)
    results: dict[str, dict[str, list[Outcome]]] = {kind: {name: [] for name in contestants} for kind in KINDS}
    for name, contestant in contestants.items():
        contestant.run(Job(("Say hello.",), 1, 16))
        console.print(f"{name} is warm", highlight=False)
    for number in range(1, rounds + 1):
        for kind, (prompts, predictions) in KINDS.items():
            marked = tuple(f"Task {number}. {prompt}" for prompt in prompts)
            job = Job(marked, 1, max_tokens, may_end=True, mode=ModeName.FAST, predictions=predictions)
            for name, contestant in contestants.items():
                outcome = contestant.run(job)
                results[kind][name].append(outcome)
                rate = f"{outcome.tokens_per_second:.1f} tokens/s, {outcome.output_tokens} tokens"
                console.print(f"round {number} of {rounds}, {kind}, {name}: {rate}", highlight=False)
    return results


def report(results: dict[str, dict[str, list[Outcome]]], arguments: argparse.Namespace) -> None:
    table = right_aligned("Output tokens/s of one greedy stream", "task", HEADWAY, LLAMA, GENAI, LOOKUP, "over the best")
    figures, notes = {}, []
    for kind, outcomes in results.items():
        rates = {name: [round(o.tokens_per_second, 1) for o in each] for name, each in outcomes.items()}
        best = max(median(rates[name]) for name in (LLAMA, GENAI, LOOKUP))
        ratio = median(rates[HEADWAY]) / best
        cells = [f"{median(each):.1f} ({min(each):.0f}-{max(each):.0f})" for each in rates.values()]
        table.add_row(kind, *cells, f"{ratio:.2f}x")
        figures[kind] = {"tokens_per_second": rates, "over_best": round(ratio, 3)}
        notes.append(f"{kind}: {ratio:.2f}x, target {GOALS[kind]:g}x: {'met' if ratio >= GOALS[kind] else 'not met'}")
    notes.append("OpenVINO GenAI is measured without HTTP, the others with it.")
    publish("speculation", table, {"max_tokens": arguments.max_tokens, "kinds": figures}, notes, ("xllamacpp",))


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
