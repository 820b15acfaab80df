"""The simulator beside the server that it simulates.

    python benchmarks/simulator.py [--model smollm2] [--seconds 120] [--only open closed] [--rounds 2] [--recordings FOLDER]

How to read it: `headway serve --record` serves real traffic, then `headway simulate` replays the recording with what it holds
(step times, their changes from second to second, guesses that proved right, which clients waited for their answers), and the
figures stand beside each other. "open": requests come at random (Poisson), a tenth of them fast, however long answers take.
"closed": 32 standard streams, each of which sends its next request when its last one has ended, and fast requests at random
beside them. on time: share of tokens that came by the deadline of their pace; off: simulated less real, in points. The real
figures are the recording's own, so that both are counted the same way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from output import publish, right_aligned
from rich.table import Table

from headway.compare.client import Client
from headway.compare.commands import run_async
from headway.compare.embedded import running, serve_command
from headway.compare.endpoint import find_maker, find_model
from headway.compare.load import ClosedLoop
from headway.compare.progress import Silent
from headway.compare.record import RequestRecord
from headway.compare.request import RequestMaker, StreamRequest
from headway.compare.run import arrivals
from headway.compare.stats import percentile
from headway.errors import HeadwayError
from headway.modes import SPEEDS, ModeName
from headway.simulate.trace import MACHINE

PARTS = ("open", "closed")
OPEN_RATE, FAST_SHARE = 4.5, 0.1
FAST_RATE = 0.3
STREAMS = 32
RAMP_SECONDS = 5.0
OPEN_TOKENS, CLOSED_TOKENS, FAST_TOKENS = 64, 96, 64
POINTS = 5.0
"""How far simulated and real attainment should be apart at the most."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--seconds", type=float, default=120.0, help="of traffic in each run")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=2, help="runs of each kind")
    parser.add_argument("--recordings", type=Path, help="keep the recordings here, and replay those that are here already")
    arguments = parser.parse_args()
    table = right_aligned(
        "Real and simulated", "run", "mode", "", "requests", "on time %", "off", "tok/s", "TTFT p50 ms", "TTFT p99 ms"
    )
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        place = arguments.recordings or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for number in range(1, arguments.rounds + 1):
            for part in arguments.only:
                name = f"{part} {number}"
                trace = place / f"{name.replace(' ', '-')}.jsonl"
                if not trace.exists():
                    record(part, trace, arguments)
                runs.append({"run": name, **compare(name, trace, table)})
    off = [abs(mode["off"]) for run in runs for mode in run["modes"].values() if mode["off"] is not None]
    notes = [f"Furthest apart: {max(off):.1f} points; to be within {POINTS:g}."] if off else []
    load = {
        "model": Path(arguments.model).name,
        "seconds": arguments.seconds,
        "open": {"rate": OPEN_RATE, "fast_share": FAST_SHARE, "max_tokens": OPEN_TOKENS},
        "closed": {"streams": STREAMS, "max_tokens": CLOSED_TOKENS, "fast_rate": FAST_RATE, "fast_max_tokens": FAST_TOKENS},
    }
    publish("simulator", table, {"load": load, "runs": runs}, notes)


def record(part: str, trace: Path, arguments: argparse.Namespace) -> None:
    """Serve real traffic with a recording. Raises HeadwayError."""
    part_of_it = trace.with_suffix(".part")
    part_of_it.unlink(missing_ok=True)
    with running([*serve_command(arguments.model, STREAMS), "--record", str(part_of_it)]) as server:
        load = open_loop if part == "open" else closed_loop
        run_async(send(server.wait_ready(Silent()), load, arguments.seconds, random.Random(trace.name)))
    part_of_it.replace(trace)


async def send(url: str, load: Any, seconds: float, randomness: random.Random) -> None:
    async with Client(url) as client:
        maker = await find_maker(client, await find_model(client, None))
        await load(client, maker, seconds, randomness)


async def open_loop(client: Client, maker: RequestMaker, seconds: float, randomness: random.Random) -> None:
    loads = {mode: arrivals(maker, mode, OPEN_TOKENS) for mode in SPEEDS}

    def either() -> Iterator[StreamRequest]:
        while True:
            yield next(loads[ModeName.FAST if randomness.random() < FAST_SHARE else ModeName.STANDARD])

    await poisson(client, either(), OPEN_RATE, seconds, randomness)


async def closed_loop(client: Client, maker: RequestMaker, seconds: float, randomness: random.Random) -> None:
    standard = ClosedLoop(client, arrivals(maker, ModeName.STANDARD, CLOSED_TOKENS))
    standard.start(STREAMS, ramp_seconds=RAMP_SECONDS)
    await poisson(client, arrivals(maker, ModeName.FAST, FAST_TOKENS), FAST_RATE, seconds, randomness)
    await standard.stop(30.0)


async def poisson(
    client: Client, load: Iterator[StreamRequest], rate: float, seconds: float, randomness: random.Random
) -> None:
    """Send requests at random for so long, and wait for their ends."""
    due = begun = client.clock()
    sent: list[asyncio.Task[RequestRecord]] = []
    for request in load:
        due += randomness.expovariate(rate)
        if due > begun + seconds:
            break
        await asyncio.sleep(max(0.0, due - client.clock()))
        sent.append(asyncio.create_task(client.send(request, client.record(request, due))))
    await asyncio.gather(*sent)


def compare(name: str, trace: Path, table: Table) -> dict[str, Any]:
    """Replay a recording; its figures and the simulator's, by the mode in which requests were served."""
    lines = [line for text in trace.read_text(encoding="utf-8").splitlines() if MACHINE not in (line := json.loads(text))]
    result = simulate(trace)
    modes: dict[str, Any] = {}
    for mode in SPEEDS:
        real = real_figures([line for line in lines if line.get("served") == mode])
        simulation = simulated_figures(result["modes"][mode])
        both = None not in (real["attainment"], simulation["attainment"])
        off = 100 * (simulation["attainment"] - real["attainment"]) if both else None
        modes[mode] = {"real": real, "simulated": simulation, "off": off}
        table.add_row(name, mode, "real", *_row(real, None))
        table.add_row("", "", "simulated", *_row(simulation, off))
    table.add_section()
    return {"modes": modes, "steps": result["steps"], "noise": result["options"]["noise"]}


def simulate(trace: Path) -> dict[str, Any]:
    """What `headway simulate` reports of a recording. Raises HeadwayError."""
    command = [sys.executable, "-m", "headway", "simulate", str(trace), "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HeadwayError(done.stderr.strip().removeprefix("headway: "))
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def real_figures(lines: list[dict[str, Any]]) -> dict[str, Any]:
    due = sum(line["output_tokens"] - 1 for line in lines if line["output_tokens"])
    on_time = sum(line["attainment"] * (line["output_tokens"] - 1) for line in lines if line["output_tokens"])
    tpot = [line["tpot"] for line in lines if line["tpot"]]
    ttft = [line["ttft"] for line in lines if line["ttft"]]
    return {
        "requests": len(lines),
        "attainment": on_time / due if due else None,
        "tokens_per_second": 1.0 / median(tpot) if tpot else None,
        "ttft_ms_p50": _ms(percentile(ttft, 50)),
        "ttft_ms_p99": _ms(percentile(ttft, 99)),
    }


def simulated_figures(mode: dict[str, Any]) -> dict[str, Any]:
    return {
        "requests": mode["served"],
        "attainment": mode["attainment"],
        "tokens_per_second": mode["tokens_per_second"],
        "ttft_ms_p50": mode["ttft_ms"]["p50"],
        "ttft_ms_p99": mode["ttft_ms"]["p99"],
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 1)


def _row(figures: dict[str, Any], off: float | None) -> list[str]:
    return [
        str(figures["requests"]),
        _show(figures["attainment"], "{:.1f}", 100),
        "" if off is None else f"{off:+.1f}",
        _show(figures["tokens_per_second"], "{:.1f}"),
        _show(figures["ttft_ms_p50"], "{:.0f}"),
        _show(figures["ttft_ms_p99"], "{:.0f}"),
    ]


def _show(value: float | None, form: str, times: int = 1) -> str:
    return "-" if value is None else form.format(times * value)


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
