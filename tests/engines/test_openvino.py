"""The embedded engine on the real model: the same logits to the last bit, however the tokens are cut into steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.catalog.home import home
from headway.catalog.local import open_local
from headway.config import EngineSettings, Settings
from headway.engines import open_engine
from headway.engines.base import BatchRow, Engine, start_padded
from headway.engines.convert import Smoothing, converted
from headway.errors import ModelError, UsageError
from headway.runtime.ladder import is_exact
from headway.runtime.opened import graph_folder
from headway.text.tokenizer import Tokenizer

pytestmark = pytest.mark.model

TEXT = (
    "Public transport works best when people can trust it. A bus that comes every ten minutes is worth more than a faster one "
    "that comes when it likes, since nobody plans a day around luck. "
) * 6


@pytest.fixture(scope="module")
def folder(smollm2: Path) -> Path:
    return graph_folder(open_local(smollm2), Settings(), lambda what: None)


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    opened = open_engine(folder, EngineSettings(kv_memory=200 * 2**20), 8192, 34 * 8192)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def tokens(smollm2: Path) -> list[int]:
    return Tokenizer.load(smollm2).encode(TEXT)[:200]


class Sequences:
    """Runs sequences through the engine, each on blocks of its own."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._free = list(range(engine.info.num_blocks))

    def blocks(self, tokens: int) -> list[int]:
        return [self._free.pop() for _ in range(tokens // self.engine.info.block_size + 1)]

    def run(self, rows: Sequence[BatchRow]) -> NDArray[np.float32]:
        start_padded(self.engine, rows)
        return self.engine.wait().copy()


@pytest.fixture
def sequences(engine: Engine) -> Sequences:
    return Sequences(engine)


def test_it_counts_the_weights_that_a_step_reads(engine: Engine) -> None:
    matrices = engine.info.matrices
    assert matrices is not None
    layers = 30 * (960 * 576 + 576 * 576 + 3 * 1536 * 576)
    assert matrices.weights == layers + 49152 * 576
    assert matrices.weights < matrices.bytes < 1.01 * matrices.weights, "int8, and a scale for each output"
    assert matrices.bytes < engine.info.weight_bytes, "the table of embeddings is not read"


def whole(s: Sequences, tokens: list[int]) -> NDArray[np.float32]:
    """Logits of every token of a prompt computed in one step."""
    return s.run([BatchRow(tokens, 0, s.blocks(len(tokens)), len(tokens))])


@pytest.mark.parametrize("chunks", [[200], [100, 100], [1] * 200, [7, 1, 1, 80, 13, 98], [31, 1, 32, 1, 135]])
@pytest.mark.parametrize("others", [0, 1, 9])
def test_any_cut_into_steps_beside_any_others_gives_the_same_bits(
    sequences: Sequences, tokens: list[int], chunks: list[int], others: int
) -> None:
    expected = whole(sequences, tokens)
    blocks, beside = sequences.blocks(len(tokens)), [sequences.blocks(40 + i) for i in range(others)]
    start, seen = 0, []
    for n in chunks:
        rows = [BatchRow([start + i + 5], 40 + i, table, i % 2) for i, table in enumerate(beside)]
        sampled_before = sum(r.num_sampled for r in rows)
        logits = sequences.run([*rows, BatchRow(tokens[start : start + n], start, blocks, n)])
        seen.append(logits[sampled_before:])
        start += n
    assert np.array_equal(np.concatenate(seen), expected)


def test_a_reused_prefix_gives_the_same_bits_as_a_fresh_one(sequences: Sequences, tokens: list[int]) -> None:
    expected = whole(sequences, tokens)[-1]
    size = sequences.engine.info.block_size
    first = sequences.blocks(len(tokens))
    sequences.run([BatchRow(tokens[: 4 * size], 0, first, 0)])
    tail = tokens[4 * size :]
    shared = [[*first[:4], *sequences.blocks(len(tail))] for _ in range(3)]
    logits = sequences.run([BatchRow(tail, 4 * size, table, 1) for table in shared])
    assert all(np.array_equal(row, expected) for row in logits)


def test_a_copied_beginning_of_a_block_gives_the_same_bits_as_a_fresh_one(sequences: Sequences, tokens: list[int]) -> None:
    check_copies(sequences, tokens)


@pytest.mark.parametrize("kv_precision", ["f32", "u8"])
def test_a_copied_beginning_gives_the_same_bits_in_other_kv_precisions(
    folder: Path, tokens: list[int], kv_precision: str
) -> None:
    other = open_engine(folder, EngineSettings(kv_precision=kv_precision, kv_memory=100 * 2**20), 8192, 8192)  # type: ignore[arg-type]
    check_copies(Sequences(other), tokens)
    other.close()


def check_copies(s: Sequences, tokens: list[int]) -> None:
    """A sequence that shares one whole block and m tokens of the next with another one, which also went on differently."""
    size = s.engine.info.block_size
    expected = whole(s, tokens)
    for m in (1, 8, 24, size - 1):
        other = s.blocks(3 * size)
        s.run([BatchRow([*tokens[: size + m], *range(100, 100 + size)], 0, other, 0)])
        table = [other[0], *s.blocks(len(tokens) - size)]
        s.run([BatchRow(range(500, 500 + size), 0, [table[1]], 0)])  # what was there before is of no matter
        s.engine.copy(other[1], table[1], m)
        # The source goes on to another use: nothing of it is read any more.
        s.run([BatchRow(range(900, 900 + size), 0, [other[1]], 0)])
        tail = tokens[size + m :]
        assert np.array_equal(s.run([BatchRow(tail, size + m, table, len(tail))]), expected[size + m :])


def test_drafts_to_verify_give_the_bits_that_decoding_gives(sequences: Sequences, tokens: list[int]) -> None:
    blocks = sequences.blocks(len(tokens))
    sequences.run([BatchRow(tokens[:50], 0, blocks, 0)])
    verified = sequences.run([BatchRow(tokens[50:58], 50, blocks, 8)])
    for i, row in enumerate(verified):
        decoded = sequences.run([BatchRow([tokens[50 + i]], 50 + i, blocks, 1)])
        assert np.array_equal(decoded[0], row)


def test_greedy_text_is_the_same_alone_and_in_a_batch(sequences: Sequences, tokens: list[int]) -> None:
    prompts = [tokens[i * 11 : i * 11 + 12 + i] for i in range(8)]

    def generate(which: Sequence[int], n: int = 24) -> list[list[int]]:
        tables = [sequences.blocks(len(prompts[i]) + n) for i in which]
        outputs = [list(prompts[i]) for i in which]
        done = [0] * len(which)
        for _ in range(n):
            rows = [BatchRow(o[d:], d, t, 1) for o, d, t in zip(outputs, done, tables, strict=True)]
            best = sequences.run(rows).argmax(axis=1).tolist()
            done = [len(o) for o in outputs]
            for o, token in zip(outputs, best, strict=True):
                o.append(token)
        return outputs

    together = generate(range(8))
    assert together == [generate([i])[0] for i in range(8)]


def test_a_step_that_samples_nothing_is_fine(sequences: Sequences, tokens: list[int]) -> None:
    assert sequences.run([BatchRow(tokens[:5], 0, sequences.blocks(5), 0)]).shape == (0, sequences.engine.info.vocab_size)


def test_the_start_up_check_agrees(engine: Engine) -> None:
    assert is_exact(engine)


@pytest.mark.parametrize("kv_precision", ["f32", "u8"])
def test_other_kv_precisions_are_exact_too(folder: Path, kv_precision: str) -> None:
    other = open_engine(folder, EngineSettings(kv_precision=kv_precision, kv_memory=50 * 2**20), 8192, 8192)  # type: ignore[arg-type]
    assert is_exact(other)
    other.close()


def test_the_weights_are_those_of_the_file(engine: Engine, sequences: Sequences, tokens: list[int]) -> None:
    """Perplexity of a plain English text: 30.7 with the file's own weights, 41.9 with the reader's rounded zero points."""
    assert perplexity(whole(sequences, tokens[:60]), tokens[:60]) < 34


def perplexity(logits: NDArray[np.float32], tokens: list[int]) -> float:
    ahead = logits[:-1].astype(np.float64)
    ahead -= ahead.max(1, keepdims=True)
    losses = np.log(np.exp(ahead).sum(1)) - ahead[np.arange(len(ahead)), tokens[1:]]
    return float(np.exp(losses.mean()))


@pytest.fixture(scope="module")
def throughput_folder(smollm2: Path) -> Path:
    tokenizer = Tokenizer.load(smollm2)
    prompts = [tokenizer.encode_prompt(text) for text in ("How do bees find a new place to live?", TEXT[:400], "2, 3, 5, 9")]
    # In the folder of the tests' own prompts: what is served is calibrated on others.
    return converted(
        smollm2,
        open_local(smollm2).sha256,
        "int8",
        home() / "converted-by-tests",
        smoothing=Smoothing(256, True, lambda: prompts),
    )


def test_the_throughput_profile_is_exact_and_near_the_weights_of_the_file(throughput_folder: Path, tokens: list[int]) -> None:
    other = open_engine(throughput_folder, EngineSettings(profile="throughput", kv_memory=100 * 2**20), 8192, 8192)
    assert is_exact(other)
    sequences = Sequences(other)
    expected = whole(sequences, tokens[:100])
    blocks, beside = sequences.blocks(100), sequences.blocks(40)
    rows = [[BatchRow([9], 40, beside, 1), BatchRow(tokens[at : at + 20], at, blocks, 20)] for at in range(0, 100, 20)]
    assert np.array_equal(np.concatenate([sequences.run(step)[1:] for step in rows]), expected)
    assert perplexity(expected[:60], tokens[:60]) < 34
    other.close()


def test_a_folder_not_made_for_the_throughput_profile_is_refused_in_one_line(smollm2: Path) -> None:
    as_loaded = Settings().with_overrides({"engine.weights": "as-loaded"})
    folder = graph_folder(open_local(smollm2), as_loaded, lambda what: None)
    with pytest.raises(UsageError, match="was not prepared"):
        open_engine(folder, EngineSettings(profile="throughput"), 8192, 8192)


def test_the_kv_pool_is_sized_by_its_budget(folder: Path) -> None:
    small = open_engine(folder, EngineSettings(kv_memory=30 * 10**6), 8192, 34 * 8192)
    assert small.info.kv_bytes_per_token == 23040
    assert small.info.num_blocks == 30 * 10**6 // (32 * 23040)
    assert small.info.context_length == small.info.num_blocks * 32
    small.close()
    bounded = open_engine(folder, EngineSettings(), 8192, 4096)
    assert bounded.info.num_blocks == 128
    bounded.close()


def test_memory_that_is_not_there_or_too_little_is_refused_in_one_line(folder: Path) -> None:
    with pytest.raises(UsageError, match="free memory"):
        open_engine(folder, EngineSettings(kv_memory=10**15), 8192, 8192)
    with pytest.raises(UsageError, match="larger --kv-memory"):
        open_engine(folder, EngineSettings(kv_memory=10**6), 8192, 8192)


def test_what_the_reader_can_not_convert_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ModelError, match="can't be converted"):
        converted(broken, "0" * 64, "int8", tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_folder_that_is_no_graph_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "openvino_model.xml").write_text("<net/>")
    (tmp_path / "openvino_model.bin").write_bytes(b"")
    with pytest.raises(ModelError):
        open_engine(tmp_path, EngineSettings(), 8192, 8192)


def test_a_cache_that_can_not_be_written_is_one_line(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with pytest.raises(UsageError, match="HEADWAY_HOME"):
        converted(tmp_path / "any.gguf", "1" * 64, "int8", in_the_way / "cache")
