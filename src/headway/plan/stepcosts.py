"""A plan's step times in the form that the scheduler knows, so that its own code can be run on chips that aren't here."""

from __future__ import annotations

from dataclasses import replace

from headway.plan.machine import Engine, Layout, Load, Machine
from headway.plan.shape import ModelShape
from headway.plan.steps import predict
from headway.plan.terms import kv_copies, kv_room
from headway.scheduler.cost import CostModel

ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
TOKENS = (1024, 2048, 4096, 8192)
BLOCK = 32
_SHORT, _LONG = 512.0, 4096.0  # contexts between which the slope of the KV cache's reading is taken
_ROOMY = 1e18  # bytes: so that no batch is cut short for want of memory; blocks are the scheduler's matter


def cost_model(shape: ModelShape, machine: Machine, layout: Layout, engine: Engine) -> CostModel:
    """Seconds of a step: of rows that decode as predicted, of more tokens than ROWS has by what a prompt's tokens take.

    Per position attended to: the KV cache's reading and arithmetic, from the difference of two contexts at a full batch.
    """
    roomy = replace(machine, memory=_ROOMY)
    decode = replace(layout, remote_prefill=True)

    def rows_seconds(rows: float, context: float) -> float:
        return predict(shape, roomy, decode, Load(rows, context, 2), engine).tpot

    most = float(ROWS[-1])
    per_context = max(0.0, (rows_seconds(most, _LONG) - rows_seconds(most, _SHORT)) / (most * (_LONG - _SHORT)))
    base = [(rows, rows_seconds(rows, _SHORT) - per_context * rows * (_SHORT + 1)) for rows in ROWS]
    per_token = prompt_seconds(shape, roomy, layout, engine) / _SHORT
    last_rows, last_seconds = base[-1]
    base += [(tokens, last_seconds + per_token * (tokens - last_rows)) for tokens in TOKENS]
    return CostModel([(tokens, max(seconds, 1e-6)) for tokens, seconds in base], per_context, 0.0)


def prompt_seconds(shape: ModelShape, machine: Machine, layout: Layout, engine: Engine) -> float:
    """What a prompt of `_SHORT` tokens adds to a step."""
    step = predict(shape, machine, layout, Load(1, _SHORT, 1), replace(engine, prompts_first=False))
    return step.parts["prompts"]


def kv_blocks(shape: ModelShape, machine: Machine, layout: Layout) -> int:
    """Blocks of BLOCK tokens that find room beside the weights; 0 if the weights don't. A windowed layer's cache is reckoned
    whole, as schedulers without windows keep it."""
    return max(0, int(kv_room(shape, machine, layout) / (shape.kv_bytes * kv_copies(shape, layout) * BLOCK)))
