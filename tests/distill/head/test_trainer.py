"""Training a draft head on a small made-up model whose next token follows from its last one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the extra 'distill'")

from engines.small_head import HIDDEN, VOCABULARY, normal, small_ends  # noqa: E402

from headway.distill import train as train_module  # noqa: E402
from headway.distill.answers import Answers  # noqa: E402
from headway.distill.gather import Stopped  # noqa: E402
from headway.distill.head.accuracy import accuracy  # noqa: E402
from headway.distill.head.network import Network  # noqa: E402
from headway.distill.head.report import figures  # noqa: E402
from headway.distill.head.trainer import HeadTrainer  # noqa: E402
from headway.distill.loss import SparseCrossEntropy  # noqa: E402
from headway.distill.stopping import Stop  # noqa: E402
from headway.distill.train import train  # noqa: E402
from headway.distill.trainer import Plan  # noqa: E402
from headway.engines.drafter import Drafter  # noqa: E402
from headway.engines.openvino import NUM_DRAFTS  # noqa: E402
from headway.errors import UsageError  # noqa: E402

ENDS = small_ends()
WORDS = 60


def following(token: int) -> int:
    return (7 * token + 3) % WORDS


def made_up(seed: int, sequences: int = 40, length: int = 30) -> Answers:
    """Features of two layers: noise, and what the output matrix reads the next token from."""
    r = np.random.default_rng(seed)
    tokens, nexts = [], []
    for _ in range(sequences):
        token = int(r.integers(WORDS))
        for _ in range(length):
            tokens.append(token)
            nexts.append(token)
            token = following(token)
    last = ENDS.output[nexts] / ENDS.norm + 0.1 * normal(r, len(tokens), HIDDEN)
    features = np.concatenate([normal(r, len(tokens), HIDDEN), last], 1).astype(np.float16)
    return Answers(np.array(tokens), np.repeat(np.arange(sequences), length), [features[:500], features[500:]])


def trainer(plan: Plan, answers: Answers | None = None, vocabulary: int = 100) -> HeadTrainer:
    made = HeadTrainer(answers or made_up(0), ENDS, plan, vocabulary, threads=1)
    for _ in made.prepare():
        pass
    return made


class Quiet:
    """A progress bar that nobody sees; it keeps what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def stage(self, name: str, total: float, done: float = 0.0) -> None: ...

    def reach(self, done: float, note: str) -> None:
        self.notes.append(note)


def test_the_loss_falls_and_guesses_become_right() -> None:
    t = trainer(Plan(epochs=20, batch=128))
    held_out = made_up(1, sequences=10)
    before = accuracy(t.guess, held_out, NUM_DRAFTS)
    losses = []
    while t.progress < 1:
        losses.append(t.step())
    after = accuracy(t.guess, held_out, NUM_DRAFTS)
    assert np.mean(losses[-10:]) < 0.4 * np.mean(losses[:10])
    assert before.accepted < 0.3
    assert after.accepted > 2.5
    assert t.epoch == pytest.approx(20)


def test_what_is_exported_guesses_the_same_in_openvino() -> None:
    t = trainer(Plan(epochs=20, batch=128))
    while t.progress < 1:
        t.step()
    held_out = made_up(1, sequences=10)
    drafter = Drafter(t.network.head((3, 7), {}), ENDS, NUM_DRAFTS, 1)
    places = np.arange(0, 300, 5)
    features, tokens = held_out.rows(places), held_out.tokens[places]
    served, _ = drafter.draft(features.astype(np.float32), tokens.tolist())
    assert np.mean(served == t.guess(features, tokens)) > 0.95


def test_a_training_that_is_taken_up_again_has_the_same_curve(tmp_path: Path) -> None:
    plan = Plan(epochs=3, batch=128)
    whole = trainer(plan)
    curve = [whole.step() for _ in range(20)]  # over more than one epoch
    begun = trainer(plan)
    first = [begun.step() for _ in range(7)]
    begun.save(tmp_path / "checkpoint")
    again = trainer(plan)
    again.restore(tmp_path / "checkpoint")
    assert (again.steps, again.loss, again.seconds) == (7, begun.loss, begun.seconds)
    assert first + [again.step() for _ in range(13)] == curve
    for name, parameter in whole.network.parameters.items():
        assert torch.equal(parameter, again.network.parameters[name]), name


def test_every_epoch_has_an_order_of_its_own_and_misses_nothing() -> None:
    t = trainer(Plan(epochs=3, batch=128))
    orders = []
    for _ in range(2):
        batches = []
        while not batches or t.steps % 10:
            batches.append(t._batch())
            t.steps += 1
        orders.append(torch.cat(batches).tolist())
    assert sorted(orders[0]) == sorted(orders[1]) == [i for i in range(1200) if i % 30 != 29]
    assert orders[0] != orders[1]


def test_minutes_end_a_training_by_the_clock() -> None:
    t = trainer(Plan(minutes=2))
    t.seconds = 90.0
    assert t.progress == 0.75
    t.seconds = 130.0
    assert t.progress == 1.0


def test_it_guesses_the_most_frequent_tokens() -> None:
    answers = Answers(
        np.array([5] * 9 + [7] * 8 + [9] * 2 + [200]), np.zeros(20, np.int64), [np.ones((20, HIDDEN), np.float16)]
    )
    t = trainer(Plan(epochs=1), answers, 3)
    assert t.network.vocabulary.tolist() == [5, 7, 9]
    assert t.coverage == 0.95
    t.step()


@pytest.mark.parametrize(
    ("other", "vocabulary", "says"),
    [
        (Plan(epochs=4, batch=128), 100, "epochs = 3, not 4"),
        (Plan(epochs=3, batch=128), 90, "vocabulary = 100, not 90"),
        (Plan(minutes=3, batch=128), 100, "epochs = 3, not None"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path, other: Plan, vocabulary: int, says: str) -> None:
    trainer(Plan(epochs=3, batch=128)).save(tmp_path / "checkpoint")
    with pytest.raises(UsageError, match=says):
        trainer(other, vocabulary=vocabulary).restore(tmp_path / "checkpoint")
    with pytest.raises(UsageError, match="tokens = 1200, not 300"):
        trainer(Plan(epochs=3, batch=128), made_up(0, 10)).restore(tmp_path / "checkpoint")


@pytest.mark.parametrize("content", [b"", b"nothing", b"PK\x03\x04 cut"])
def test_a_damaged_checkpoint_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="can't be read") as refused:
        trainer(Plan(epochs=1)).restore(path)
    assert "\n" not in str(refused.value)


def test_too_few_answers_are_refused() -> None:
    with pytest.raises(UsageError, match="too few answers"):
        HeadTrainer(made_up(0, sequences=3, length=1), ENDS, Plan(epochs=1), 10)


def test_the_loss_and_its_gradient_are_those_of_cross_entropy() -> None:
    random = torch.Generator().manual_seed(0)
    output = torch.randn(50, 8, generator=random)
    ids = torch.tensor([[3, 3, 7], [49, 0, 1]])
    weights = torch.tensor([[0.5, 0.2, 0.1], [0.5, 0.3, 0.2]])
    ours = torch.randn(2, 8, generator=random).requires_grad_()
    plain = ours.detach().clone().requires_grad_()
    loss = 3 * SparseCrossEntropy.apply(ours, output, ids, weights)
    loss.backward()
    chosen = torch.log_softmax(plain @ output.t(), -1).gather(1, ids)
    expected = -3 * (chosen * weights).sum(1).mean()
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert torch.allclose(ours.grad, plain.grad, atol=1e-5)


def test_a_gain_of_zero_in_the_models_norm_gives_no_infinity() -> None:
    norm = ENDS.norm.copy()
    norm[3] = 0
    ends = type(ENDS)(ENDS.embeddings, norm, ENDS.output)
    network = Network(ends, torch.arange(VOCABULARY), 2, device=torch.device("cpu"), half=False)
    assert np.isfinite(network.head((0, 1), {}).output_gain).all()


def test_a_stop_leaves_a_checkpoint_to_go_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, checkpoint = Plan(epochs=2, batch=128), tmp_path / "checkpoint"
    whole = trainer(plan)
    train(whole, lambda: "", tmp_path / "other", Quiet())  # type: ignore[arg-type]

    class StopsAfter:
        """As if a signal came in the fifth step."""

        def __enter__(self) -> Stop:
            self.stop = Stop()
            step = begun.step

            def counted() -> float:
                if begun.steps == 4:
                    self.stop.wanted = 2
                return step()

            monkeypatch.setattr(begun, "step", counted)
            return self.stop

        def __exit__(self, *error: object) -> None: ...

    begun = trainer(plan)
    with monkeypatch.context() as patched:
        patched.setattr(train_module, "stoppable", StopsAfter)
        with pytest.raises(Stopped, match=r"at epoch 0\.50 of the training") as stopped:
            train(begun, lambda: "", checkpoint, Quiet())  # type: ignore[arg-type]
    assert stopped.value.number == 2
    again = trainer(plan)
    train(again, lambda: "", checkpoint, Quiet(), resume=True)  # type: ignore[arg-type]
    assert (again.steps, again.loss) == (whole.steps, whole.loss)


def test_figures_are_shown_and_checkpoints_saved_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_module, "SAVE_SECONDS", 0.0)
    bar = Quiet()
    t, held_out = trainer(Plan(epochs=1, batch=256)), made_up(1, sequences=5)
    train(t, lambda: figures(accuracy(t.guess, held_out, NUM_DRAFTS)), tmp_path / "checkpoint", bar)  # type: ignore[arg-type]
    assert (tmp_path / "checkpoint").exists()
    assert "loss" in bar.notes[-1]
    assert "accepted a step" in bar.notes[-1]
