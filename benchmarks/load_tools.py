"""headway's load generator beside guidellm and aiperf, against one headway server.

    python benchmarks/load_tools.py --guidellm VENV/bin/guidellm [--aiperf VENV/bin/aiperf] [--streams 4] [--rounds 3]

How to read it: every tool keeps the same number of streams going with prompts of the same length, greedy, and answers of
exactly the same length; each gets prompts of its own, so that no prefix cache helps whoever comes later. Rounds alternate,
because the machine's speed drifts; the table has the median of the rounds, and headway's figure over the other tool's, the
median of the rounds' ratios. TPOT is (end to end - TTFT) / (tokens - 1), which guidellm and aiperf call inter-token latency;
what guidellm calls TPOT has the first token in it and is compared with the same of headway's figures. Every tool counts tokens
by the server's usage. The tools run on the machine that they measure: the last core is theirs and the others are the server's,
so that what a tool itself costs doesn't slow down what it measures (where the system can tell processes their cores).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from output import figure, publish, right_aligned
from rich.console import Console

from headway.compare.embedded import running, serve_command
from headway.compare.progress import Silent
from headway.compare.speed.synthetic import Scale, prompt
from headway.errors import HeadwayError

HEADWAY, GUIDELLM, AIPERF = "headway load", "guidellm", "aiperf"
RATE, TTFT, TPOT, PER_TOKEN = "output tokens/s", "TTFT, mean", "TPOT, mean", "end to end / tokens, mean"
MEASURES = (RATE, TTFT, TPOT, PER_TOKEN)
WITHIN = 0.05
TOOL_SECONDS = 300.0
Figures = dict[str, float | None]


class Job:
    """What each tool is to do in a round: so many requests, `streams` at once, of `output_tokens` each."""

    def __init__(self, url: str, model: str, arguments: argparse.Namespace) -> None:
        self.url = url
        self.model = model
        self.streams: int = arguments.streams
        self.requests: int = arguments.requests
        self.output_tokens: int = arguments.output_tokens
        self.words: int = arguments.words
        self._made = 0

    def prompts(self, folder: Path) -> Path:
        """A file that all three read: lines with `text` (aiperf), `prompt` and the wanted length (headway, guidellm)."""
        path = folder / f"prompts-{self._made}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number in range(self.requests):
                text = prompt(number, self.words, Scale(), seed=self._made)[0]["content"]
                line = {"text": text, "prompt": text, "output_tokens_count": self.output_tokens}
                file.write(json.dumps(line) + "\n")
        self._made += 1
        return path


def run_headway(_: str, job: Job, folder: Path) -> Figures:
    report = folder / "headway.json"
    command = [sys.executable, "-m", "headway", "load", f"{job.url}#{job.model}", "--json", str(report)]
    command += ["--prompts", str(job.prompts(folder)), "--streams", str(job.streams), "--requests", str(job.requests)]
    _run(command)
    (point,) = _read(report)["points"]
    _complete(HEADWAY, point["requests"]["succeeded"], job)
    return {
        RATE: point["output_tokens_per_second"],
        TTFT: point["ttft_ms"]["mean"],
        TPOT: point["tpot_ms"]["mean"],
        PER_TOKEN: point["e2e_ms"]["mean"] / job.output_tokens,
    }


def run_guidellm(program: str, job: Job, folder: Path) -> Figures:
    report = folder / "guidellm.json"
    backend = {
        "kind": "openai_http",
        "target": job.url,
        "model": job.model,
        "request_format": "/v1/chat/completions",
        "extras": {"body": {"temperature": 0}},
    }
    command = [program, "run", "--backend", json.dumps(backend), "--profile", f"kind=concurrent,streams={job.streams}"]
    command += ["--constraint", f"kind=max_requests,count={job.requests}", "--disable-console"]
    command += ["--data", f"kind=json_file,path={job.prompts(folder)}", "--output", f"kind=json,path={report}"]
    _run(command, HF_HUB_OFFLINE="1")
    metrics = _read(report)["benchmarks"][0]["metrics"]
    _complete(GUIDELLM, metrics["time_to_first_token_ms"]["successful"]["count"], job)
    return {
        RATE: metrics["output_tokens_per_second"]["successful"]["mean"],
        TTFT: metrics["time_to_first_token_ms"]["successful"]["mean"],
        TPOT: metrics["inter_token_latency_ms"]["successful"]["mean"],
        PER_TOKEN: metrics["time_per_output_token_ms"]["successful"]["mean"],
    }


def run_aiperf(program: str, job: Job, folder: Path) -> Figures:
    """It wants a tokenizer though the server counts, so it gets one that knows no words."""
    made = folder / "tokenizer"
    made.mkdir(exist_ok=True)
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    (made / "tokenizer.json").write_text(
        json.dumps({"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model})
    )
    (made / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}')
    artifacts = folder / "aiperf"
    command = [program, "profile", "--url", job.url, "--model", job.model, "--endpoint-type", "chat", "--streaming"]
    command += ["--tokenizer", str(made), "--use-server-token-count", "--custom-dataset-type", "single_turn"]
    command += ["--input-file", str(job.prompts(folder)), "--concurrency", str(job.streams), "--ui", "none"]
    command += ["--request-count", str(job.requests), "--artifact-dir", str(artifacts)]
    for field in (f"max_completion_tokens:{job.output_tokens}", "ignore_eos:true", "temperature:0"):
        command += ["--extra-inputs", field]
    patience = dict.fromkeys(("AIPERF_SERVICE_REGISTRATION_TIMEOUT", "AIPERF_SERVICE_START_TIMEOUT"), "300")
    _run(command, **patience)
    report = _read(artifacts / "profile_export_aiperf.json")
    _complete(AIPERF, int(report["request_count"]["avg"]), job)
    return {
        RATE: report["output_token_throughput"]["avg"],
        TTFT: report["time_to_first_token"]["avg"],
        TPOT: report["inter_token_latency"]["avg"],
        PER_TOKEN: report["request_latency"]["avg"] / job.output_tokens,
    }


TOOLS: dict[str, Callable[[str, Job, Path], Figures]] = {HEADWAY: run_headway, GUIDELLM: run_guidellm, AIPERF: run_aiperf}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guidellm", metavar="PROGRAM", help="where it is installed")
    parser.add_argument("--aiperf", metavar="PROGRAM", help="where it is installed")
    parser.add_argument("--model", default="smollm2", help="what to serve")
    parser.add_argument("--url", help="of a headway that serves it already")
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--requests", type=int, default=48, help="of each tool in each round")
    parser.add_argument("--words", type=int, default=100, help="of each prompt")
    parser.add_argument("--output-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    programs = {HEADWAY: "", GUIDELLM: arguments.guidellm, AIPERF: arguments.aiperf}
    programs = {name: program for name, program in programs.items() if program is not None}
    if len(programs) < 2:
        parser.error("name one at least of --guidellm and --aiperf")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        cores = _cores()
        _stay_on(cores[:-1] or cores)
        url = arguments.url or stack.enter_context(running(serve_command(arguments.model, 32))).wait_ready(Silent())
        _stay_on(cores[-1:])
        rounds = measure(programs, Job(url, arguments.model, arguments), Path(folder), arguments.rounds)
        _stay_on(cores)
    report(rounds, programs, arguments)


def measure(programs: dict[str, str], job: Job, folder: Path, rounds: int) -> dict[str, list[Figures]]:
    """A first round of headway's alone warms the server up, and counts for nothing."""
    console = Console(stderr=True)
    run_headway("", job, folder)
    found: dict[str, list[Figures]] = {name: [] for name in programs}
    for number in range(rounds):
        for name, program in programs.items():
            console.print(f"round {number + 1} of {rounds}: {name}", highlight=False)
            found[name].append(TOOLS[name](program, job, folder))
    return found


def report(rounds: dict[str, list[Figures]], programs: dict[str, str], arguments: argparse.Namespace) -> None:
    others = [name for name in programs if name != HEADWAY]
    headings = [heading for name in others for heading in (name, f"headway / {name}")]
    table = right_aligned(f"{arguments.streams} streams, {arguments.output_tokens} tokens each", "", HEADWAY, *headings)
    compared: dict[str, Any] = {}
    for measure_name in MEASURES:
        cells = [figure(_median(rounds[HEADWAY], measure_name), "{:.2f}")]
        compared[measure_name] = {HEADWAY: _median(rounds[HEADWAY], measure_name)}
        for name in others:
            ratio = _ratio(rounds[HEADWAY], rounds[name], measure_name)
            cells += [figure(_median(rounds[name], measure_name), "{:.2f}"), figure(ratio, "{:.3f}")]
            compared[measure_name] |= {name: _median(rounds[name], measure_name), f"headway / {name}": ratio}
        table.add_row(measure_name if measure_name == RATE else f"{measure_name} (ms)", *cells)
    notes = [f"{name} {_version(program)}" for name, program in programs.items() if program]
    ratios = [value for row in compared.values() for key, value in row.items() if key.startswith("headway / ") and value]
    notes.append(f"All within {WITHIN:.0%}: {'yes' if all(abs(value - 1) <= WITHIN for value in ratios) else 'no'}")
    publish("load_tools", table, {"medians": compared, "rounds": rounds}, notes)


def _cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _stay_on(cores: list[int]) -> None:
    """This process, and those that it starts from now on."""
    if cores:
        os.sched_setaffinity(0, cores)


def _median(rounds: list[Figures], name: str) -> float | None:
    known = [value for figures in rounds if (value := figures[name]) is not None]
    return median(known) if known else None


def _ratio(ours: list[Figures], theirs: list[Figures], name: str) -> float | None:
    pairs = [(our[name], their[name]) for our, their in zip(ours, theirs, strict=True)]
    known = [our / their for our, their in pairs if our is not None and their]
    return median(known) if known else None


def _run(command: list[str], **environment: str) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TOOL_SECONDS, check=False, env=os.environ | environment
    )
    if done.returncode:
        raise HeadwayError(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()[-500:]}")


def _read(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def _complete(name: str, succeeded: int, job: Job) -> None:
    if succeeded != job.requests:
        raise HeadwayError(f"{name}: {succeeded} of {job.requests} requests succeeded")


def _version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
    words = done.stdout.split()
    return words[-1] if words else "of unknown version"


if __name__ == "__main__":
    try:
        main()
    except HeadwayError as error:
        sys.exit(str(error))
