"""What simulators of such servers got wrong, by public reports (inference-sim#209): requests that vanish, blocks leaked when an
allocation fails, prefixes mistaken under chunked prompts, negative counts, answers without a token."""

from __future__ import annotations

import json

from simulate.small import STANDARD, simulation

from headway.simulate.result import SimulationResult
from headway.simulate.run import Simulation
from headway.simulate.trace import Arrival

BLOCKS, SIZE = 4, 32
ASKED = [
    Arrival(0.0, 100, 1, STANDARD),
    Arrival(0.0, 33, 0, STANDARD),
    Arrival(0.0, BLOCKS * SIZE + 1, 5, STANDARD),  # more than there is
    Arrival(0.0, 64, 3, STANDARD, prefix=(7, 8), prefix_tokens=SIZE),
    Arrival(0.0, 64, 3, STANDARD, prefix=(7, 8), prefix_tokens=SIZE),
]


def run() -> tuple[Simulation, SimulationResult]:
    one = simulation(num_blocks=BLOCKS, block_size=SIZE)
    return one, one.run(ASKED)


def test_every_request_ends_as_served_or_refused_and_no_token_is_lost() -> None:
    _, result = run()
    standard = result.standard
    assert standard.asked == len(ASKED)
    assert standard.too_long == 1
    assert standard.served + standard.refused + standard.too_long == len(ASKED)
    assert standard.served == 4
    # An answer has a token at least: the one that ends it.
    assert standard.tokens == sum(max(1, a.output_tokens) for a in ASKED if a.prompt_tokens <= BLOCKS * SIZE)
    assert all(seconds > 0 for seconds in standard.ttft)


def test_no_block_is_left_in_use() -> None:
    one, _ = run()
    assert one._scheduler.pool.num_free == BLOCKS
    assert not one._scheduler.running()


def test_the_second_of_two_equal_prompts_finds_the_firsts_blocks() -> None:
    """Its last token has to be computed to have its logits, so of 64 tokens one block and part of another are shared."""
    later = [Arrival(at, 64, 3, STANDARD, prefix=(7, 8), prefix_tokens=SIZE) for at in (0.0, 5.0)]
    result = simulation(num_blocks=BLOCKS, block_size=SIZE).run(later)
    assert SIZE <= result.standard.cached_tokens < 64


def test_two_runs_are_equal_to_the_last_byte() -> None:
    assert json.dumps(run()[1].to_dict()) == json.dumps(run()[1].to_dict())
