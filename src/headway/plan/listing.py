"""The hardware catalogue for people (a table) and for programs (JSON)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headway.compare.report import STDOUT, UNKNOWN, check_json_path, write_json
from headway.plan.chip import Chip, catalogue


def hardware_command(json_path: Path | None = None) -> None:
    """`headway plan --hardware`: print the catalogue, and write JSON if a path is given (`-` = stdout, the table to stderr)."""
    check_json_path(json_path)
    chips = list(catalogue().values())
    Console(stderr=json_path == STDOUT).print(as_table(chips))
    if json_path is not None:
        write_json(as_json(chips), json_path)


def as_table(chips: Iterable[Chip]) -> Table:
    table = Table(title="Hardware", caption="TFLOPS are dense, links one way; --json has the source of every figure.")
    table.add_column("chip")
    for heading in ("on chip", "memory", "GB/s", "TFLOPS 16/8/4 bits", "link GB/s x chips", "W", "$/h"):
        table.add_column(heading, justify="right", no_wrap="/" in heading)
    for chip in chips:
        table.add_row(chip.name, *_row(chip))
    return table


def as_json(chips: Iterable[Chip]) -> dict[str, Any]:
    """Sizes in bytes, bandwidths in bytes/s, peaks in operations/s, prices in US dollars."""
    return {"chips": [chip.model_dump(mode="json") for chip in chips]}


def size_text(size: float) -> str:
    """Bytes, as people write them: 50 MB, 44 GB, 1.2 TB."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"


def _row(chip: Chip) -> list[str]:
    near, main, peak = chip.on_chip, chip.main, chip.peak
    eight = (peak.fp8 or peak.int8) if peak else None
    rates = [peak.bf16 if peak else None, eight, peak.fp4 if peak else None]
    return [
        f"{size_text(near.size)} {near.level}" if near else UNKNOWN,
        UNKNOWN if main is near else f"{size_text(main.size)} {main.level}",
        f"{main.bandwidth / 1e9:,.0f}" if main.bandwidth else UNKNOWN,
        "/".join(f"{rate / 1e12:,.0f}" if rate else UNKNOWN for rate in rates) if peak else UNKNOWN,
        f"{chip.link.bandwidth / 1e9:.0f} x {chip.link.domain:,}" if chip.link else UNKNOWN,
        f"{chip.power.watts:,.0f}" if chip.power else UNKNOWN,
        f"{chip.price.hourly:.2f}" if chip.price else UNKNOWN,
    ]
