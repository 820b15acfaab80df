"""The servers that peers.py measures, each behind the same two methods: run some prompts, and stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from headway.compare.client import Client
from headway.compare.commands import run_async
from headway.compare.embedded import running, serve_command
from headway.compare.endpoint import find_maker, find_model
from headway.compare.load import ClosedLoop
from headway.compare.progress import Silent
from headway.compare.request import StreamRequest
from headway.compare.stats import Window, summarize, within
from headway.errors import HeadwayError
from headway.modes import ModeName

HERE = Path(__file__).parent
MIX_SETTLE_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class Job:
    """prompts: one request each; streams: how many go on at once; answers are greedy and have max_tokens tokens, or fewer if
    they may end by themselves. mode and predictions (one for each prompt) are headway's; others don't know them."""

    prompts: tuple[str, ...]
    streams: int
    max_tokens: int
    may_end: bool = False
    mode: ModeName = ModeName.STANDARD
    predictions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """seconds: from the first request sent to the last token received."""

    seconds: float
    output_tokens: int
    prompt_tokens: int

    @property
    def tokens_per_second(self) -> float:
        return self.output_tokens / self.seconds


@dataclass(frozen=True, slots=True)
class Mix:
    """One client that asks for fast, beside `streams` that don't: its prompts one after the other, theirs again and again until
    it is done. Greedy, max_tokens tokens each."""

    fast_prompts: tuple[str, ...]
    prompts: tuple[str, ...]
    streams: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Speeds:
    """Tokens/s after the first token of the client that asked for fast, and of the others meanwhile; medians of requests."""

    fast: float
    others: float


class Contestant(Protocol):
    def run(self, job: Job) -> Outcome: ...

    def run_mix(self, mix: Mix) -> Speeds: ...


class HttpContestant:
    """A server behind OpenAI's chat API, driven by the client of `headway compare`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def run(self, job: Job) -> Outcome:
        return run_async(self._run(job))

    async def _run(self, job: Job) -> Outcome:
        async with Client(self._url) as client:
            maker = await find_maker(client, await find_model(client, None))
            if job.may_end:
                maker = replace(maker, ignore_eos=False)
            arrivals = [maker.chat(p, job.mode, job.max_tokens, temperature=0.0) for p in job.prompts]
            for request, text in zip(arrivals, job.predictions, strict=False):
                request.body["prediction"] = {"type": "content", "content": text}
            load = ClosedLoop(client, iter(arrivals))
            load.start(job.streams)
            await asyncio.wait_for(load.finish(), timeout=600)
        records = load.records
        failed = [record.reason for record in records if not record.succeeded]
        if failed:
            raise HeadwayError(f"{len(failed)} of {len(records)} requests failed: {failed[0]}")
        begun = min(record.started for record in records)
        ended = max(record.chunk_times[-1] for record in records)
        return Outcome(
            ended - begun,
            sum(record.output_tokens or 0 for record in records),
            sum(record.prompt_tokens or 0 for record in records),
        )

    def run_mix(self, mix: Mix) -> Speeds:
        return run_async(self._run_mix(mix))

    async def _run_mix(self, mix: Mix) -> Speeds:
        async with Client(self._url) as client:
            maker = await find_maker(client, await find_model(client, None))

            def chats(prompts: Iterable[str], mode: ModeName) -> Iterator[StreamRequest]:
                return (maker.chat(prompt, mode, mix.max_tokens, temperature=0.0) for prompt in prompts)

            others = ClosedLoop(client, chats(cycle(mix.prompts), ModeName.STANDARD))
            fast = ClosedLoop(client, chats(mix.fast_prompts, ModeName.FAST))
            others.start(mix.streams)
            await asyncio.sleep(MIX_SETTLE_SECONDS)
            start = client.clock()
            fast.start(1)
            await asyncio.wait_for(fast.finish(), timeout=300)
            window = Window(start, client.clock())
            await others.stop(60.0)
        speed = summarize(fast.records).tokens_per_second
        beside = summarize(within(others.records, [window])).tokens_per_second
        if speed is None or beside is None:
            raise HeadwayError(f"{self._url} served no mix: {[r.reason for r in fast.records if r.reason]}")
        return Speeds(speed, beside)


class GenaiContestant:
    """OpenVINO GenAI in a process of its own, without HTTP (see peer_genai.py)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._read()

    def run(self, job: Job) -> Outcome:
        request = {
            "prompts": job.prompts,
            "streams": job.streams,
            "max_tokens": job.max_tokens,
            "may_end": job.may_end,
        }
        answer = self._ask(request)
        return Outcome(answer["seconds"], answer["output_tokens"], answer["prompt_tokens"])

    def run_mix(self, mix: Mix) -> Speeds:
        answer = self._ask(asdict(mix) | {"may_end": False})
        return Speeds(median(answer["fast"]), median(answer["others"]))

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._process.stdin is None:
            raise HeadwayError("the GenAI process has no stdin")
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            raise HeadwayError(f"the GenAI process ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextlib.contextmanager
def headway(model: str, streams: int) -> Iterator[Contestant]:
    """headway's own server."""
    with _http(serve_command(model, streams)) as contestant:
        yield contestant


@contextlib.contextmanager
def llama_cpp(gguf: Path, streams: int) -> Iterator[Contestant]:
    """llama.cpp's server, from the prebuilt wheel."""
    with _http([sys.executable, str(HERE / "peer_llama.py"), str(gguf), str(streams)]) as contestant:
        yield contestant


@contextlib.contextmanager
def openvino_genai(folder: Path, *, lookup: bool = False) -> Iterator[Contestant]:
    """OpenVINO GenAI, with its own prompt lookup if so wanted; `folder` as made by `convert`."""
    command = [sys.executable, str(HERE / "peer_genai.py"), str(folder), *(["--lookup"] if lookup else [])]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield GenaiContestant(process)
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def _http(command: Sequence[str]) -> Iterator[Contestant]:
    with running(command) as server:
        yield HttpContestant(server.wait_ready(Silent()))


def convert(gguf: Path, folder: Path) -> Path:
    """The GGUF as OpenVINO IR with its tokenizer, made once by GenAI's own reader (it writes beside the GGUF, so the folder
    gets a link to it). Returns the folder."""
    if not (folder / "openvino_model.xml").exists():
        folder.mkdir(parents=True, exist_ok=True)
        link = folder / gguf.name
        link.unlink(missing_ok=True)
        link.symlink_to(gguf.resolve())
        make = "import sys, openvino_genai; openvino_genai.LLMPipeline(sys.argv[1], 'CPU', enable_save_ov_model=True)"
        subprocess.run([sys.executable, "-c", make, str(link)], check=True, stdout=subprocess.DEVNULL)
    return folder
