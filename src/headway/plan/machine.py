"""What the model of a step has to know of the chips it runs on, how they share a model, and what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """One chip. memory: bytes; bandwidth: bytes/s; peak: dense 16-bit operations/s; link: bytes/s to its peers, one way.

    generation: which offsets of the fit apply ("hopper", "blackwell"; others have none). fp4: multiplies 4-bit floats natively.
    """

    name: str
    generation: str
    memory: float
    bandwidth: float
    peak: float
    link: float
    fp4: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """How a model is split: attention over `tp` chips in each of `dp` groups that share the rows; experts whole on `ep`.

    remote_prefill: prompts are computed on other chips (disaggregated serving).
    """

    tp: int
    dp: int = 1
    ep: int = 1
    remote_prefill: bool = False

    @property
    def chips(self) -> int:
        return self.tp * self.dp


@dataclass(frozen=True, slots=True)
class Load:
    """A closed loop of `concurrency` requests of `isl` prompt and `osl` output tokens."""

    concurrency: float
    isl: float
    osl: float


@dataclass(frozen=True, slots=True)
class Engine:
    """name: "vllm", "sglang" or "trtllm". dated: a version of 2025. eager: without CUDA graphs.

    prompts_first: takes waiting prompts before it goes on decoding; where all lengths are equal, requests then move in step
    and each meets half of the others' prompts on average. drafts: guessed tokens verified in each step; 0 without speculation.
    """

    name: str = "vllm"
    dated: bool = False
    eager: bool = False
    prompts_first: bool = False
    drafts: int = 0
