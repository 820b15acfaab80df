"""Training a smaller model: needs PyTorch and Transformers (make test-distill)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import gguf
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from headway.catalog.gguf_file import inspect  # noqa: E402
from headway.distill.loss import SparseCrossEntropy  # noqa: E402
from headway.distill.spark.gguf_out import write_gguf  # noqa: E402
from headway.distill.spark.llama import check_teacher, read_llama  # noqa: E402
from headway.distill.spark.making import KEPT, TEACHER  # noqa: E402
from headway.distill.spark.pruning import candidates, evenly  # noqa: E402
from headway.distill.spark.quality import agreement, perplexity  # noqa: E402
from headway.distill.spark.trainer import SparkTrainer  # noqa: E402
from headway.distill.trainer import Plan  # noqa: E402
from headway.errors import UsageError  # noqa: E402

from .tiny import LAYERS, VOCABULARY, answers, write_teacher  # noqa: E402


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_teacher(tmp_path_factory.mktemp("tiny") / "teacher.gguf")


def trainer(teacher: Path, plan: Plan, kept: tuple[int, ...] = (0, 5)) -> SparkTrainer:
    torch.manual_seed(0)
    return SparkTrainer(read_llama(teacher).with_layers(kept), answers(), plan, {"layers": list(kept)}, threads=1)


def rounded(p: torch.Tensor) -> torch.Tensor:
    if p.dim() < 2:
        return p
    kind = gguf.GGMLQuantizationType.Q8_0
    return torch.from_numpy(gguf.dequantize(gguf.quantize(p.detach().numpy(), kind), kind))


def test_what_is_written_is_what_was_trained(teacher: Path, tmp_path: Path) -> None:
    """But for the rounding of its matrices, which is done here to the ones that were trained."""
    model = read_llama(teacher)
    trained = model.with_layers(range(LAYERS)).trained()
    values = {name: p.detach().numpy().copy() for name, p in trained.items()}
    write_gguf(tmp_path / "same.gguf", teacher, values, LAYERS, "q8_0", name="same", description="")
    model = read_llama(teacher).with_layers(range(LAYERS))
    tokens = torch.arange(12).reshape(2, 6)
    with torch.no_grad():
        for p in (*model.trained().values(), model.embeddings):
            p.copy_(rounded(p))
        before, after = model(tokens) @ model.output.t(), read_llama(tmp_path / "same.gguf")(tokens) @ model.output.t()
    assert torch.allclose(before, after, atol=1e-4)


def test_layers_left_out_are_left_out(teacher: Path) -> None:
    model = read_llama(teacher)
    assert model.with_layers((1, 3)).num_layers == 2
    tokens = torch.arange(6).unsqueeze(0)
    with torch.no_grad():
        all_layers, same = model(tokens), model.with_layers(range(LAYERS))(tokens)
        few = model.with_layers((1, 3))(tokens)
    assert torch.allclose(all_layers, same, atol=1e-5)
    assert not torch.allclose(all_layers, few, atol=1e-2)


def test_padding_behind_an_answer_changes_nothing(teacher: Path) -> None:
    model = read_llama(teacher)
    short, long = torch.tensor([[5, 6, 7]]), torch.tensor([[5, 6, 7, 0, 0]])
    with torch.no_grad():
        assert torch.allclose(model(short), model(long)[:, :3], atol=1e-5)


def test_it_learns_and_the_teachers_ends_stay(teacher: Path) -> None:
    t = trainer(teacher, Plan(epochs=60, batch=128))
    embeddings = t.student.embeddings.clone()
    before = agreement(t.student, answers(seed=1))
    while t.progress < 1:
        t.step()
    assert np.mean(t.losses[-20:]) < 0.6 * np.mean(t.losses[:5])
    assert agreement(t.student, answers(seed=1)) > before + 0.3
    assert torch.equal(embeddings, t.student.embeddings)


def test_a_training_that_is_taken_up_again_has_the_same_curve(teacher: Path, tmp_path: Path) -> None:
    plan = Plan(steps=12, batch=96)
    whole = trainer(teacher, plan)
    curve = [whole.step() for _ in range(12)]
    begun = trainer(teacher, plan)
    for _ in range(5):
        begun.step()
    begun.save(tmp_path / "checkpoint")
    again = trainer(teacher, plan)
    again.restore(tmp_path / "checkpoint")
    for _ in range(7):
        again.step()
    assert again.losses == curve
    with pytest.raises(UsageError, match="layers"):
        trainer(teacher, plan, (0, 1)).restore(tmp_path / "checkpoint")


def test_drawn_tokens_stand_for_all_that_no_distribution_names(teacher: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean loss over many draws is near that of the whole vocabulary, where logits don't differ wildly."""
    t = trainer(teacher, Plan(steps=1, batch=96))
    x = torch.randn(6, t.student.output.shape[1]) * 0.3
    ids, weights = torch.tensor([[3, 9]] * 6), torch.tensor([[0.7, 0.3]] * 6)
    output = t.student.output
    exact = float(SparseCrossEntropy.apply(x, output, ids, weights))
    monkeypatch.setattr("headway.distill.spark.trainer.NEGATIVES", 20)
    seen = []
    for t.steps in range(200):
        vocabulary, among, shift = t._subset(ids)
        assert len(vocabulary) == 22
        assert vocabulary[among].tolist() == ids.tolist()
        seen.append(float(SparseCrossEntropy.apply(x, output[vocabulary], among, weights, shift)))
    assert np.mean(seen) == pytest.approx(exact, rel=0.02)


def test_a_token_is_right_if_all_parts_of_its_spelling_are(teacher: Path) -> None:
    t = trainer(teacher, Plan(epochs=60, batch=128))
    while t.progress < 1:
        t.step()
    held_out = answers(sequences=3)
    n = len(held_out.tokens)
    assert agreement(t.student, held_out) == 1.0, "the rest would tell nothing"
    held_out.tokens[-1] += 1  # the last token of an answer is no input to any other
    assert agreement(t.student, held_out) == pytest.approx(1 - 1 / n)
    pairs = np.arange(n) // 2
    assert agreement(t.student, held_out, pairs) == pytest.approx(1 - 1 / (pairs[-1] + 1))


def test_one_goes_on_from_the_layers_of_another(teacher: Path, tmp_path: Path) -> None:
    t = trainer(teacher, Plan(steps=3, batch=96))
    for _ in range(3):
        t.step()
    values = {name: p.detach().numpy() for name, p in t.parameters.items()}
    facts = {TEACHER: "0123", KEPT: [0, 5]}
    write_gguf(tmp_path / "begun.gguf", teacher, values, 2, "q8_0", name="begun", description="", facts=facts)
    fields = gguf.GGUFReader(tmp_path / "begun.gguf").fields
    assert fields[TEACHER].contents() == "0123" and fields[KEPT].contents() == [0, 5]
    ends = read_llama(teacher)
    onward = ends.with_body_of(read_llama(tmp_path / "begun.gguf"))
    assert onward.num_layers == 2
    for name, p in onward.trained().items():
        assert torch.allclose(p, rounded(t.parameters[name]), atol=1e-6), name
    tokens = torch.arange(6).unsqueeze(0)
    with torch.no_grad():
        assert torch.equal(onward.body.embed_tokens(tokens), ends.embeddings[tokens])


def test_layers_are_chosen_by_measurement(teacher: Path) -> None:
    model = read_llama(teacher)
    ticks: list[float] = []
    choices = candidates(model, answers(), 2, ticks.append)
    assert [choice.how for choice in choices] == ["evenly", "influence", "one by one"]
    assert choices[0].kept == (0, 5)
    assert all(list(c.kept) == sorted(set(c.kept)) and len(c.kept) == 2 for c in choices)
    assert all(np.isfinite(c.loss) for c in choices)
    assert ticks == sorted(ticks)
    assert evenly(30, 8) == [0, 4, 8, 12, 17, 21, 25, 29]


def test_perplexity_is_that_of_cross_entropy(teacher: Path) -> None:
    model = read_llama(teacher)
    text = [(11 * i) % VOCABULARY for i in range(40)]
    with torch.no_grad():
        logits = model(torch.tensor([text]))[0] @ model.output.t()
        loss = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(text[1:]))
    assert perplexity(model, text) == pytest.approx(float(loss.exp()), rel=1e-4)


def test_a_teacher_of_another_kind_is_refused_in_one_line(tmp_path: Path) -> None:
    path = write_teacher(tmp_path / "other.gguf", architecture="mamba")
    with pytest.raises(UsageError, match="architecture 'mamba'; a spark can be made of llama, qwen2, qwen3"):
        check_teacher(inspect(path))


@pytest.mark.model
def test_it_is_killed_in_the_middle_and_goes_on_with_the_same_curve(tmp_path: Path, smollm2: Path) -> None:
    """`headway distill` with kill -9 and --resume, beside one that nobody killed."""
    common = ["smollm2", "--layers", "2", "--tokens", "1000", "--steps", "200"]
    command = [sys.executable, "-m", "headway", "distill", *common, "--work", str(tmp_path / "work")]
    begun = subprocess.Popen([*command, "--out", str(tmp_path / "spark")], stderr=subprocess.DEVNULL)
    checkpoint = tmp_path / "work" / "checkpoint.pt"
    deadline = time.monotonic() + 600
    while not checkpoint.exists() and begun.poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    begun.send_signal(signal.SIGKILL)
    assert begun.wait() == -signal.SIGKILL, "it ended before it could be killed"
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "spark"), "--resume", "--json", str(tmp_path / "resumed.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    resumed = json.loads((tmp_path / "resumed.json").read_text())
    assert resumed["training"]["steps"] == 200
    command += ["--out", str(tmp_path / "whole"), "--json", "-"]
    whole = subprocess.run(command, capture_output=True, text=True, check=True)
    assert resumed["training"]["losses"] == json.loads(whole.stdout)["training"]["losses"]
    made = inspect(tmp_path / "spark" / "spark.Q8_0.gguf")
    assert made.block_count == 2
    assert "base_model: smollm2" in (tmp_path / "spark" / "README.md").read_text()
