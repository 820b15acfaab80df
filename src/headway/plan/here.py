"""This machine as a chip: step times of the embedded engine as `headway calibrate` or a server measured them here.

Of a model that never ran here they are another model's, scaled: by the weights that a token is multiplied with (products are
most of a step, and both their bytes and their arithmetic grow so), by the KV cache for what is attended to, and by the output's
width for what is sampled.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from headway.catalog.listing import rows
from headway.errors import ModelError, UsageError
from headway.plan.curve import GIB, CurvePoint, Speculation, batches
from headway.plan.frontier import throughput
from headway.plan.gguf_shape import read_gguf
from headway.plan.machine import Layout, Load, Machine
from headway.plan.shape import ModelShape
from headway.plan.steps import Step
from headway.plan.terms import Part
from headway.runtime.kept import KeptTimes
from headway.scheduler.cost import CostModel
from headway.simulate.machine import kept_of

NAME = "this"
SERVED_BITS = 8.5
"""Of a weight as the embedded engine holds it: int8 and its scales."""
KV_SHARE = 0.25
"""Of the memory beside the weights that goes to the KV cache: the engine takes a quarter of what is free."""
_SERVED = (4, 8, 16, 32)  # step sizes of an ordinary server
_SLOPE = (64, 256)  # step sizes between which a prompt's tokens are priced


@dataclass(frozen=True, slots=True)
class Here:
    """costs: of a step of this model. kv_tokens: that the KV cache holds, all requests together. about: whose step times these
    are, in a sentence."""

    machine: Machine
    costs: CostModel
    kv_tokens: int
    about: str

    @property
    def most_rows(self) -> int:
        """The largest step that was measured."""
        return self.costs.curve()[-1][0]

    def points(self, isl: float, osl: float, speculation: Speculation | None = None) -> list[CurvePoint]:
        """Every batch size that the KV cache holds. Raises UsageError if it is none."""
        fitting = self.kv_tokens / (isl + osl)
        if fitting < 1:
            raise UsageError(
                f"the KV cache holds {self.kv_tokens} tokens here, too few for one request of {isl + osl:.0f}; ask for a "
                f"smaller --isl or --osl"
            )
        found = []
        for size in batches(min(fitting, self.most_rows)):
            load = Load(size, isl, osl)
            step = self.step(load, speculation)
            found.append(CurvePoint(Layout(1), load, step, throughput(size, step.ttft, step.tpot, osl, 1)))
        return found

    def step(self, load: Load, speculation: Speculation | None = None) -> Step:
        """Of a closed loop: rows that decode halfway through their answers, and the prompts that come between."""
        rows, context = load.concurrency, load.isl + load.osl / 2
        drafts, yielded = (speculation.drafts, speculation.tokens) if speculation else (0, 1.0)
        tokens = round(rows * (1 + drafts))
        once = self.costs.seconds(1)
        prompt = self._prompt_tokens(load.isl) + self._attended(load.isl)
        parts: dict[Part, float] = {
            "weights": once,
            "compute": max(0.0, self.costs.seconds(tokens) - once),
            "kv": self.costs.attended * tokens * context,
            "rows": self.costs.sampled * tokens,
            "prompts": prompt * rows * yielded / load.osl,
        }
        decoding = sum(parts.values()) - parts["prompts"]
        chunk = min(int(load.isl), self.most_rows)
        alone = self.costs.seconds(chunk) * load.isl / chunk + self._attended(load.isl)
        return Step(sum(parts.values()) / yielded, decoding / 2 + alone, rows, yielded, parts)

    def _prompt_tokens(self, tokens: float) -> float:
        """Seconds that a prompt adds to steps that happen anyway, but for what it attends to."""
        few, many = (min(size, self.most_rows) for size in _SLOPE)
        if many == few:
            return tokens * self.costs.seconds(few) / few
        return tokens * (self.costs.seconds(many) - self.costs.seconds(few)) / (many - few)

    def _attended(self, tokens: float) -> float:
        """Seconds that a prompt's tokens take for those before them."""
        return self.costs.attended * tokens * tokens / 2


def here(name: str, shape: ModelShape) -> Here:
    """This machine for a model, named as a user does. Raises UsageError where nothing was measured, or the embedded engine
    can't run the model."""
    if shape.experts is not None or shape.mla is not None or shape.linear is not None:
        raise UsageError(f"the embedded engine runs dense models with plain attention, which {shape.name} isn't; name a GPU")
    own = _kept_of(name)
    if own is not None:
        about = f"Step times of {shape.name} as measured here on the quiet machine{_while_serving(own)}"
        return Here(_machine(shape, own.measured), own.measured, own.num_blocks * own.block_size, about)
    basis = _nearest(shape)
    if basis is None:
        raise UsageError("no step times have been measured on this machine; `headway calibrate` measures them (half a minute)")
    needed, memory = shape.total_weights * SERVED_BITS / 8, psutil.virtual_memory()
    if needed > memory.total:
        raise UsageError(
            f"{shape.name} needs {needed / GIB:.1f} GiB for its weights as headway holds them; this machine has "
            f"{memory.total / GIB:.1f} GiB"
        )
    costs = scaled(basis.kept.measured, basis.shape, shape)
    about = (
        f"{shape.name} never ran here: its step times are those of {basis.shape.name}, which did, scaled by the weights; "
        "`headway calibrate` with the model itself measures them"
    )
    room = (memory.total - needed) * KV_SHARE
    return Here(_machine(shape, costs), costs, int(room / shape.kv_bytes), about)


def scaled(costs: CostModel, basis: ModelShape, shape: ModelShape) -> CostModel:
    """The step times of `basis` as they should be of `shape`."""
    weights = shape.active_weights / basis.active_weights
    cache = shape.kv_bytes / basis.kv_bytes
    return CostModel(
        [(tokens, seconds * weights) for tokens, seconds in costs.curve()],
        costs.attended * cache,
        costs.sampled * shape.vocabulary / basis.vocabulary,
        per_change=costs.change * shape.layers / basis.layers,
        grid=costs.grid,
    )


@dataclass(frozen=True, slots=True)
class _Basis:
    kept: KeptTimes
    shape: ModelShape


def _kept_of(name: str) -> KeptTimes | None:
    """None for a model that isn't on this machine too."""
    path = Path(name).expanduser()
    with suppress(ModelError):
        return kept_of(str(path) if path.is_file() else name)
    return None


def _while_serving(times: KeptTimes) -> str:
    """What HTTP and clients on the same cores add, as far as a server has learnt it."""
    if times.learnt is None:
        return ""
    longer = median(times.learnt.seconds(tokens) / times.measured.seconds(tokens) for tokens in _SERVED)
    return f"; while a server ran they took {longer:.2f} times as long"


def _nearest(shape: ModelShape) -> _Basis | None:
    """Of the models on this machine whose steps were measured, the one that has most nearly as many weights."""
    found = []
    for row in rows():
        if row.path is None or row.path.suffix != ".gguf":
            continue
        with suppress(ModelError):
            times = _kept_of(row.name)
            if times is not None:
                found.append(_Basis(times, read_gguf(row.path)))
    return min(found, key=lambda one: abs(one.shape.active_weights / shape.active_weights - 1), default=None)


def _machine(shape: ModelShape, costs: CostModel) -> Machine:
    """bandwidth: what a step of one row makes of it."""
    reads = shape.active_weights * SERVED_BITS / 8
    return Machine("this machine", "this", float(psutil.virtual_memory().total), reads / costs.seconds(1), 0.0, 0.0)
