"""What is learnt while serving, and kept for the next start."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headway.runtime import kept
from headway.runtime.kept import BOUNDS, FEWEST_STEPS, LARGEST_STEP, MEMORY, Keeper, KeptTimes
from headway.scheduler.cost import CostModel, Observation


def measured() -> CostModel:
    return CostModel([(1, 0.010), (8, 0.012), (64, 0.040)], 1e-6, 1e-5, per_change=0.004)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "ladders" / "a.json"
    kept.write(file, KeptTimes(measured(), None, "a", 100, 16))
    return file


def read(path: Path) -> KeptTimes:
    known = kept.read(path)
    assert known is not None
    return known


def serve(costs: CostModel, steps: int, slower: float) -> None:
    """Steps of a machine that is so much slower than the ladder."""
    true = measured()
    for number in range(steps):
        tokens = (1, 5, 20, 64)[number % 4]
        costs.observe(Observation(tokens, 100 * tokens, tokens, slower * true.seconds(tokens, 100 * tokens, tokens)))


def slower_by(known: KeptTimes) -> float:
    assert known.learnt is not None
    return known.learnt.seconds(8, 1000, 8) / known.measured.seconds(8, 1000, 8)


def test_long_serving_is_learnt_and_the_ladder_stays_beside_it(path: Path) -> None:
    costs = measured()
    keeper = Keeper(path, costs)
    for _ in range(60):
        serve(costs, 1000, 1.4)
        keeper.save()
    known = read(path)
    assert slower_by(known) == pytest.approx(1.4, rel=0.03)
    assert known.measured.to_dict() == measured().to_dict()
    assert (known.identity, known.num_blocks, known.block_size) == ("a", 100, 16)


def test_a_noisy_minute_changes_little_and_is_forgotten(path: Path) -> None:
    costs = measured()
    keeper = Keeper(path, costs)
    for _ in range(2):
        serve(costs, 1000, 5.0)
        keeper.save()
    assert 1.0 < slower_by(read(path)) < 1.06
    for _ in range(40):
        serve(costs, 1000, 1.0)
        keeper.save()
    assert slower_by(read(path)) == pytest.approx(1.0, abs=0.01)


def test_a_moment_counts_by_its_steps_and_for_a_quarter_at_most() -> None:
    seen = measured()
    seen.drift = 9.0
    learnt = kept.blend(measured(), seen, 0.5, measured())
    for name in ("attended", "sampled", "change"):
        assert getattr(learnt, name) == pytest.approx((1 + 0.5 * LARGEST_STEP) * getattr(measured(), name))
    assert dict(learnt.curve()) == pytest.approx({n: (1 + 0.5 * LARGEST_STEP) * s for n, s in measured().curve()})


@pytest.mark.parametrize(("drift", "bound"), [(50.0, BOUNDS[1]), (0.01, BOUNDS[0])])
def test_what_is_learnt_stays_near_what_was_measured(drift: float, bound: float) -> None:
    seen, learnt = measured(), measured()
    seen.drift = drift
    for _ in range(200):
        learnt = kept.blend(learnt, seen, 0.9, measured())
    assert learnt.seconds(8, 1000, 8) == pytest.approx(bound * measured().seconds(8, 1000, 8))


def test_a_few_steps_are_not_worth_a_write_but_count_later(path: Path) -> None:
    costs = measured()
    keeper = Keeper(path, costs)
    serve(costs, FEWEST_STEPS - 1, 1.2)
    keeper.save()
    assert read(path).learnt is None
    serve(costs, 1, 1.2)
    keeper.save()
    assert slower_by(read(path)) == pytest.approx(1.0 + 0.2 * FEWEST_STEPS / MEMORY, rel=0.02)


def test_it_saves_at_the_end(path: Path) -> None:
    costs = measured()
    keeper = Keeper(path, costs)
    keeper.start()
    serve(costs, 500, 1.2)
    keeper.close()
    assert slower_by(read(path)) > 1.0


def test_it_saves_now_and_then(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "SAVE_SECONDS", 0.01)
    written = threading.Event()
    write = kept.write

    def watched(file: Path, times: KeptTimes) -> None:
        write(file, times)
        written.set()

    monkeypatch.setattr(kept, "write", watched)
    costs = measured()
    keeper = Keeper(path, costs)
    keeper.start()
    serve(costs, 500, 1.2)
    assert written.wait(30), "without an orderly end"
    assert read(path).learnt is not None
    keeper.close()


def test_a_ladder_that_is_gone_or_of_other_sizes_gets_nothing_learnt(path: Path) -> None:
    costs = measured()
    keeper = Keeper(path, costs)
    serve(costs, 500, 1.2)
    other = CostModel([(1, 0.010), (64, 0.040)], 1e-6, 1e-5)
    kept.write(path, KeptTimes(other, None, "a", 100, 16))
    keeper.save()
    assert read(path).learnt is None
    path.unlink()
    keeper.close()
    assert not path.exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept.write(tmp_path / "file" / "a.json", KeptTimes(measured(), measured(), "a", 1, 1))
    assert kept.read(tmp_path / "file" / "a.json") is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"base": [[1, 0.01]], "per_context": 0, "per_sample": 0, "learnt": 3}'])
def test_what_holds_no_step_times_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    assert kept.read(tmp_path / "a.json") is None
