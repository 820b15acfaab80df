"""The reference case: the two labs' fast modes of February 2026, step by step, and where public information ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from headway.compare.report import STDOUT, check_json_path, write_json
from headway.errors import UsageError
from headway.plan.chip import chip
from headway.plan.curve import SPLITS, Curve, Speculation, make_curve
from headway.plan.known import known_shape
from headway.plan.machine import Engine
from headway.plan.onchip import Placed, check, rule_of
from headway.plan.picture import write_pictures
from headway.plan.report import Plan
from headway.plan.source import in_precision

STANDARD, FAST, SPARK = 65.0, 170.0, 1000.0
PRICE = 6.0
SOURCES = (
    "65 -> about 170 tokens/s at 6 times the price (Claude Opus 4.6 fast mode, 7 Feb 2026) and 65 -> over 1,000 "
    "(GPT-5.3-Codex-Spark, 12 Feb 2026): the labs' announcements, speeds as put together by https://www.seangoedecke.com/fast-llm-inference"
)
MODELS = (
    ("llama-3.1-70b", "fp8"),
    ("llama-3.1-405b", "fp8"),
    ("gpt-oss-120b", None),
    ("qwen3-235b-a22b", "fp8"),
    ("minimax-m2.5", None),
    ("qwen3.5-397b-a17b", "fp8"),
    ("deepseek-v3", None),
    ("glm-5", "fp8"),
    ("kimi-k2", None),
)
CHIPS = ("H100 SXM", "H200 SXM", "B200 SXM", "B300 SXM", "GB200")
ISL, OSL = 8192, 1024
_WAFER = "WSE-3"
DRAFTS = Speculation(3, 0.7)
_NEAR = (4.0, 9.0)  # price multiples that count as "about 6"


@dataclass(frozen=True, slots=True)
class Case:
    """A model on a chip, at 65 and 170 tokens/s of one user. drafts: with speculation at both; multiple: what the faster costs;
    rows, chips: of a batch at each, and the chips that share the model; most: tokens/s of one user alone."""

    model: str
    chip: str
    drafts: bool
    multiple: float
    rows: tuple[float, float]
    chips: tuple[int, int]
    limit: str
    most: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """cases: what reaches 170 tokens/s, dearest multiple first; slow: what doesn't; wafer: tokens/s of one user by weights that
    a token uses, without drafts; limit: the most of those that reach SPARK; gpu: what a GPU does alone with a small model."""

    cases: list[Case]
    slow: list[str]
    wafer: list[tuple[str, float]]
    limit: float
    gpu: tuple[str, float]


def explain_command(json_path: Path | None = None, plots: Path | None = None) -> None:
    """`headway plan --explain`: print it, write the reference curve's pictures and JSON if asked to."""
    check_json_path(json_path)
    found, plan = explain()
    console = Console(stderr=json_path == STDOUT)
    console.print(as_text(found))
    if plots is not None:
        for path in write_pictures(plan, plots):
            console.print(f"wrote {path}", highlight=False, soft_wrap=True)
    if json_path is not None:
        write_json(as_json(found), json_path)


def explain(tell: Callable[[str], None] = lambda name: None) -> tuple[Explanation, Plan]:
    """The figures, and the plan of the case whose multiple is nearest to PRICE."""
    cases: list[tuple[Case, Plan]] = []
    slow: list[str] = []
    for name, precision in MODELS:
        shape = in_precision(known_shape(name), precision)
        for each in CHIPS:
            machine = chip(each).machine()
            for drafts in (None, DRAFTS):
                label = f"{name} on {each}{' with drafts' if drafts else ''}"
                tell(label)
                engine = Engine(drafts=drafts.drafts if drafts else 0)
                try:
                    curve = make_curve(shape, machine, engine, SPLITS, ISL, OSL, FAST / STANDARD, drafts, standard=STANDARD)
                except UsageError:
                    slow.append(label)
                    continue
                if curve.multiple is None or curve.fast is None:
                    slow.append(label)
                    continue
                cases.append((_case(name, each, curve, drafts is not None), Plan(shape, machine, engine, ISL, OSL, curve)))
    nearest = min(cases, key=lambda pair: abs(pair[0].multiple - PRICE))
    factor = rule_of(_WAFER).seconds(Placed(1, 1e9, 1))
    wafer = [
        (what, 1 / rule_of(_WAFER).seconds(Placed(1, active, 1)))
        for what, active in (
            ("20B dense in 16 bits, one wafer", 20e9),
            ("40B dense in 8 bits, one wafer", 40e9),
            ("gpt-oss-120b (5.1B of 117B used)", 5.1e9),
            ("a mixture that uses 30B, several wafers", 30e9),
        )
    ]
    small = in_precision(known_shape("qwen3-32b"), "fp8")
    alone = make_curve(small, chip("B200").machine(), Engine(), SPLITS, 1024, OSL, 1.01, standard=1.0).best[-1].speed
    ranked = sorted((case for case, _ in cases), key=lambda case: -case.multiple)
    limit = (1 / SPARK / factor) ** 2 * 1e9
    return Explanation(
        ranked, slow, wafer, limit, ("qwen3-32b in 8 bits, without drafts, alone on up to 8 B200,", alone)
    ), nearest[1]


def _case(model: str, name: str, curve: Curve, drafts: bool) -> Case:
    standard, fast = curve.standard, curve.fast
    assert fast is not None and curve.multiple is not None
    rows = (standard.load.concurrency, fast.load.concurrency)
    chips = (standard.layout.chips, fast.layout.chips)
    return Case(model, name, drafts, curve.multiple, rows, chips, fast.step.limit, curve.best[-1].speed)


def as_json(found: Explanation) -> dict[str, Any]:
    return {
        "reference": {"standard": STANDARD, "fast": FAST, "spark": SPARK, "price_multiple": PRICE, "sources": SOURCES},
        "isl": ISL,
        "osl": OSL,
        **asdict(found),
    }


def as_text(found: Explanation) -> Group:
    table = Table(title=f"{STANDARD:g} -> {FAST:g} tokens/s by batch size, prompts of {ISL:,} tokens, answers of {OSL:,}")
    for heading in ("model", "chip", "drafts"):
        table.add_column(heading)
    for heading in ("costs", "batch, chips at 65", "at 170", "alone"):
        table.add_column(heading, justify="right")
    table.add_column("limit at 170")
    for case in found.cases:
        near = "[bold]" if _NEAR[0] <= case.multiple <= _NEAR[1] else ""
        table.add_row(
            f"{near}{case.model}",
            case.chip,
            "yes" if case.drafts else "",
            f"{near}{case.multiple:.1f}x",
            *(f"{rows:,.0f} on {chips}" for rows, chips in zip(case.rows, case.chips, strict=True)),
            f"{case.most:,.0f}",
            case.limit,
        )
    paragraphs = [Text(f"{one}\n") for one in _words(found)]
    return Group(paragraphs[0], table, *paragraphs[1:])


def _words(found: Explanation) -> Iterator[str]:
    multiples = [case.multiple for case in found.cases]
    near = sorted(
        {
            f"{case.model} on {case.chip}{' with drafts' if case.drafts else ''}"
            for case in found.cases
            if _NEAR[0] <= case.multiple <= _NEAR[1]
        }
    )
    yield (
        f"What was sold. {SOURCES}.\n\n1. The same model in smaller batches. A step reads the weights once for all rows; with "
        "fewer rows it is shorter, and each token carries more of it. By this plan's model of a step:"
    )
    plain = sum(not case.drafts for case in found.cases)
    yield (
        f"2. {STANDARD:g} -> {FAST:g} costs {min(multiples):.1f} to {max(multiples):.1f} times as much on these "
        f"{len(multiples)} curves ({plain} of them without drafts); {len(found.slow)} more don't reach {FAST:g} at all, so "
        "there it can't be bought by batch size. The multiple is no constant: it is what the batch at the one speed carries "
        "over the batch at "
        f"the other. Near the fastest that a model runs alone, a little more speed empties the batch. About {PRICE:g}x: "
        f"{', '.join(near) if near else 'none of these'}. Drafts: {DRAFTS.drafts}, {DRAFTS.acceptance:.0%} of them right, at "
        "both speeds."
    )
    errors = sorted(abs(one.error) for one in check(_WAFER) if not one.published.drafts)
    yield (
        f"3. {STANDARD:g} -> {SPARK:,.0f} is another trade. No batch size gives it: {found.gpu[0]} has {found.gpu[1]:,.0f} "
        "tokens/s. A wafer holds the weights in SRAM and waits for distance, not for reading: seconds a token grow with the "
        f"square root of the weights used ({errors[0]:.0%} to {errors[-1]:.0%} from published speeds without drafts, each left "
        "out of its own fit). "
        + "; ".join(f"{what}: {speed:,.0f} tokens/s" for what, speed in found.wafer)
        + f". Over {SPARK:,.0f} without drafts means at most {found.limit / 1e9:.0f}B weights used for a token, whatever the "
        "total; with drafts more."
    )
    yield (
        "4. Where public information ends. Neither lab says how large its models are, on which chips and how many the modes "
        "run, in which batches, with or without drafts, or what share of the price is margin or scarcity. What is said: the "
        "fast mode is the same model; the spark is a smaller one, on Cerebras, weaker at hard tasks (Terminal-Bench 2.0: 58.4% "
        "against 77.3%). That batch size makes the one and SRAM the other is inferred, from speeds and prices like these."
    )
