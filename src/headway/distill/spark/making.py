"""From a teacher and its answers to a spark: its layers, its vocabulary, its training, its file and its card."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headway.catalog.gguf_file import GgufInfo
from headway.compare.progress import Bar
from headway.config import Settings
from headway.distill.answers import Answers
from headway.distill.dialogue import Dialogue
from headway.distill.gather import Gathered, Source
from headway.distill.library import reference
from headway.distill.memory import keep_freed_memory
from headway.distill.spark.gguf_out import write_gguf
from headway.distill.spark.options import DEFAULT_EPOCHS, DEFAULT_LAYERS, Begun, DistillOptions
from headway.distill.spark.result import Result, card
from headway.distill.spark.vocabulary import OutputVocabulary, choose
from headway.distill.whole_file import write_whole
from headway.distill.workplace import CHECKPOINT
from headway.engines.shortlist import OUTPUT_TOKENS
from headway.errors import UsageError
from headway.runtime.texts import load_texts
from headway.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from headway.distill.spark.llama import Llama
    from headway.distill.spark.pruning import Choice
    from headway.distill.spark.quality import Quality
    from headway.distill.spark.trainer import SparkTrainer

LAYERS = "layers.json"
TEACHER, KEPT = "headway.teacher.sha256", "headway.teacher.layers"
"""In a spark's GGUF."""
BATCH_TOKENS = 4096
TRIAL_STEPS, TRIAL_TOKENS = 20, 2048
"""Of training that each choice of layers gets, before the best one is kept."""
CHAPTER = 4_000
"""Characters of each chapter of the held-out text that are read: all of them have their say."""
QUESTIONS = ("What is the capital of France?", "What is 3 + 4?", "What do bees make?", "Write one sentence about the sea.")
LONGEST_SAMPLE = 40
"""What the card shows of it."""
GLANCE = 12
"""Answers on which the spark is tried during training."""


@dataclass(frozen=True, slots=True)
class Making:
    """All that it takes. begun: a spark to go on from. prompts: what they are called. work: what a stopped training needs."""

    source: Source
    info: GgufInfo
    gathered: Gathered
    settings: Settings
    options: DistillOptions
    begun: Begun | None
    prompts: str
    work: Path
    out: Path
    bar: Bar

    def run(self) -> tuple[Result, Path, list[float]]:
        """What came of it, the file, and the loss of each step. Raises Stopped, UsageError and OSError."""
        from headway.distill.spark.llama import read_llama
        from headway.distill.spark.quality import agreement
        from headway.distill.spark.trainer import SparkTrainer
        from headway.distill.train import train
        from headway.distill.trainer import Plan, use_threads

        options, begun, bar, threads = self.options, self.begun, self.bar, self.settings.engine.threads
        keep_freed_memory()
        use_threads(threads)
        bar.phase("reading the teacher")
        teacher = read_llama(self.source.model.path)
        tokenizer, template = load_texts(self.source.model, self.settings)
        vocabulary = None
        answers, held_out, of = self.gathered.answers, self.gathered.held_out, None
        if options.vocabulary is not None:
            bar.phase("choosing a vocabulary")
            vocabulary = choose(answers, tokenizer.token_bytes, sorted(tokenizer.eos_ids), options.vocabulary)
            answers, _ = vocabulary.rewritten(answers)
            held_out, of = vocabulary.rewritten(held_out)
        choice = self._layers(teacher, answers)
        epochs = DEFAULT_EPOCHS if (options.epochs, options.minutes, options.steps) == (None, None, None) else options.epochs
        plan = Plan(epochs, options.minutes, options.steps, BATCH_TOKENS)
        student = teacher.with_layers(choice.kept) if begun is None else teacher.with_body_of(read_llama(begun.path))
        facts = {
            "layers": list(choice.kept),
            "vocabulary": options.vocabulary,
            "start": begun.sha256 if begun is not None else None,
        }
        trainer = SparkTrainer(student, answers, plan, facts, threads)

        def glance() -> str:
            return f"agrees {agreement(student, held_out, of, GLANCE):.1%}"

        train(trainer, glance, self.work / CHECKPOINT, bar, resume=options.resume)
        bar.phase("writing the model")
        file = self._write(trainer, teacher.num_layers, choice, vocabulary)
        spark = read_llama(file)
        seen = self._measured(teacher, choice, spark, tokenizer, vocabulary)
        bar.phase("asking it something")
        asked = _asked(spark, Dialogue(tokenizer, template), tokenizer, vocabulary)
        result = Result(
            name=self.name,
            teacher=self.source.model.id,
            sha256=self.source.model.sha256,
            licence=self.info.licence,
            kept=choice.kept,
            teacher_layers=teacher.num_layers,
            how=choice.how,
            quantization=options.quantization,
            prompts=self.prompts,
            vocabulary=options.vocabulary,
            parts=len(held_out.tokens) / len(self.gathered.held_out.tokens),
            start=begun.name if begun is not None else None,
            tokens=len(self.gathered.answers.tokens),
            answers=self.gathered.num_answers,
            epochs=trainer.epoch,
            steps=trainer.steps,
            loss=trainer.loss,
            seconds=trainer.seconds,
            device=trainer.device,
            held_out=len(self.gathered.held_out.tokens),
            teacher_quality=seen[0],
            spark=seen[1],
            untrained=seen[2],
            answers_to=asked,
        )
        write_whole(self.out / "README.md", lambda readme: readme.write(card(result, file).encode()))
        return result, file, trainer.losses

    @property
    def name(self) -> str:
        return self.out.absolute().name

    def _layers(self, teacher: Llama, answers: Answers) -> Choice:
        """Those of the spark that is gone on from, or the choice that a stopped training has made, or the one that is best
        after some steps of training."""
        from headway.distill.spark.pruning import Choice, candidates
        from headway.distill.spark.trainer import SparkTrainer
        from headway.distill.trainer import Plan

        if self.begun is not None:
            return Choice(f"as in {self.begun.name}", self.begun.kept, math.nan)
        wanted = self.options.layers or DEFAULT_LAYERS
        path = self.work / LAYERS
        if self.options.resume and path.exists():
            known = json.loads(path.read_bytes())
            if len(known["kept"]) != wanted:
                hint = "go on with that, or delete it"
                raise UsageError(f"{self.work} is of a training with --layers {len(known['kept'])}: {hint}")
            return Choice(known["how"], tuple(known["kept"]), known["loss"])
        self.bar.stage("choosing layers", 1.0)
        choices = candidates(teacher, answers, wanted, lambda share: self.bar.reach(share / 2, ""))
        best: list[tuple[float, Choice]] = []
        for number, choice in enumerate(choices):
            plan = Plan(steps=TRIAL_STEPS, batch=TRIAL_TOKENS)
            trial = SparkTrainer(teacher.with_layers(choice.kept), answers, plan, {}, self.settings.engine.threads)
            self.bar.reach(0.5 + 0.5 * number / len(choices), f"trying {choice.how}: {', '.join(map(str, choice.kept))}")
            best.append((_tried(trial), choice))
        loss, choice = min(best, key=lambda pair: pair[0])
        state = json.dumps({"how": choice.how, "kept": choice.kept, "loss": loss})
        write_whole(path, lambda file: file.write(state.encode()))
        return Choice(choice.how, choice.kept, loss)

    def _write(self, trainer: SparkTrainer, of: int, choice: Choice, vocabulary: OutputVocabulary | None) -> Path:
        """of: layers of the teacher."""
        teacher, kind = self.source.model, self.options.quantization
        file = self.out / f"{self.name}.{kind.upper()}.gguf"
        self.out.mkdir(exist_ok=True)
        part = file.with_name(file.name + ".part")
        values = {key: p.detach().float().cpu().numpy() for key, p in trainer.parameters.items()}
        about = f"{len(choice.kept)} of the {of} layers of {teacher.id}, distilled by headway"
        facts: dict[str, str | Sequence[int]] = {TEACHER: teacher.sha256, KEPT: choice.kept}
        if vocabulary is not None:
            facts[OUTPUT_TOKENS] = vocabulary.tokens.tolist()
        count = len(choice.kept)
        write_gguf(part, teacher.path, values, count, kind, name=self.name, description=about, facts=facts)
        part.replace(file)
        return file

    def _measured(
        self, teacher: Llama, choice: Choice, spark: Llama, tokenizer: Tokenizer, vocabulary: OutputVocabulary | None
    ) -> list[Quality]:
        """Of the teacher, of the spark as its file holds it, and of the same layers untrained."""
        from headway.distill.spark.quality import quality

        text = [token for chapter in reference() for token in tokenizer.encode(chapter[:CHAPTER])]
        models = [
            ("the teacher", teacher, None),
            ("the spark", spark, vocabulary),
            ("the untrained one", teacher.with_layers(choice.kept), None),
        ]
        seen = []
        for title, model, spoken in models:
            self.bar.phase(f"measuring {title}")
            seen.append(quality(model, self.gathered.held_out, text, spoken))
        return seen


def _asked(
    model: Llama, dialogue: Dialogue, tokenizer: Tokenizer, vocabulary: OutputVocabulary | None
) -> tuple[tuple[str, str], ...]:
    from headway.distill.spark.quality import answer

    found = []
    for question in QUESTIONS:
        prompt = dialogue.prompt([{"role": "user", "content": question}])
        said = answer(model, prompt, LONGEST_SAMPLE, dialogue.eos_ids, vocabulary)
        found.append((question, b"".join(tokenizer.token_bytes[token] for token in said).decode("utf-8", "replace").strip()))
    return tuple(found)


def _tried(trial: SparkTrainer) -> float:
    """The mean loss of its last steps."""
    for _ in range(TRIAL_STEPS):
        trial.step()
    last = trial.losses[-TRIAL_STEPS // 4 :]
    return sum(last) / len(last)
