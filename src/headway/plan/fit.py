"""Coefficients of the step model from measured points: least squares of logarithms, robust, held near what physics expects.

A point's time is a sum of terms times coefficients, so its logarithm's derivatives are known and Gauss-Newton steps suffice; a
prior on each coefficient (`TERMS`) keeps those that the points don't determine, and what is predicted beyond them, sane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.plan.machine import Engine
from headway.plan.samples import Sample
from headway.plan.steps import FIRST, SHARPNESS, UNSCALED, Coefficients, first_columns
from headway.plan.terms import TERMS, situation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENGINES, GENERATIONS = ("trtllm", "vllm", "sglang"), ("hopper", "blackwell")
FAMILIES = {"memory": 0.06, "kv": 0.15, "latency": 0.15, "prompts": 0.2, "launch": 0.08}
"""Families of terms that engines and generations scale, and by how much (log) they are expected to."""
DATED = {"latency": (0.15, 0.2), "prompts": (0.1, 0.2), "launch": (0.1, 0.08)}
DRAFTS = {1: (0.8, 0.15), 3: (1.4, 0.2)}
"""Tokens a step yields beyond one, with so many drafts, and the spread of its logarithm."""
FIRST_PRIORS = {
    "always": (0.03, 0.5), "launch": (0.3, 0.7), "prompt": (0.8, 0.4), "step": (5.0, 0.5), "prompts beside": (0.07, 0.5),
    "in step": (0.5, 0.3), "waiting for room": (0.8, 0.3),
}  # fmt: skip
FIRST_SCALES = ("dated", "data parallel", "drafts")

_PRIOR_WEIGHT = 4.0
_SIGMA, _FIRST_SIGMA = 0.10, 0.20  # errors of a point (log) beyond which it counts less
_GROUP_POWER = 0.6  # points of a group of n count n**-0.6, so that no large group rules


class Problem:
    """The points as arrays. The parameters, all logarithms, in order: terms, offsets by (engine or generation, family), dated
    by family, drafts."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = list(samples)
        states = [situation(one.shape, one.machine, one.layout, one.load, one.engine) for one in self.samples]
        self.states = states
        self.values = np.array([state.values for state in states])
        self.tpot = np.log([one.tpot for one in self.samples])
        self.ttft = np.log([one.ttft for one in self.samples])
        self.trained = np.array([one.trained for one in self.samples])
        self.groups = np.array(["/".join(one.group) for one in self.samples])
        self.mixed = np.array([state.mixed for state in states])
        self.met = np.array([state.met for state in states])
        self.drafts = np.array([one.engine.drafts for one in self.samples])
        self.is_prompt = np.array([term.part == "prompts" for term in TERMS])
        self.is_launch = np.array([term.part == "launch" for term in TERMS])
        self.family = np.array([[term.family == family for term in TERMS] for family in FAMILIES], dtype=float)
        self.offsets = [(kind, name, family) for kind, names in _SCALED for name in names for family in FAMILIES]
        self.applies = np.array(
            [[_applies(one, kind, name) for one in self.samples] for kind, name, _ in self.offsets], dtype=float
        )
        self.dated = np.array([one.engine.dated for one in self.samples], dtype=float)
        priors = [(np.log(term.prior), term.spread) for term in TERMS] + [
            (0.0, FAMILIES[family]) for _, _, family in self.offsets
        ]
        priors += list(DATED.values()) + [(np.log(value), spread) for value, spread in DRAFTS.values()]
        self.prior = np.array([value for value, _ in priors])
        self.spread = np.array([spread for _, spread in priors])

    def seconds(self, parameters: Floats, at: Ints) -> Floats:
        """Each term in seconds, (points, terms)."""
        n, m = len(TERMS), len(self.offsets)
        scale = np.zeros((len(at), len(FAMILIES)))
        for place, (_, _, family) in enumerate(self.offsets):
            scale[:, list(FAMILIES).index(family)] += parameters[n + place] * self.applies[place, at]
        for place, family in enumerate(DATED):
            scale[:, list(FAMILIES).index(family)] += parameters[n + m + place] * self.dated[at]
        factor: Floats = np.exp(parameters[:n] + scale @ self.family)
        return self.values[at] * factor

    def predict(self, parameters: Floats, at: Ints) -> tuple[Floats, Floats]:
        """log TPOT and its derivatives by the parameters."""
        n, m = len(TERMS), len(self.offsets)
        seconds, share = self.seconds(parameters, at), self.mixed[at]
        seconds[:, self.is_prompt] *= self.met[at][:, None]
        prompt, launch = seconds[:, self.is_prompt].sum(1), seconds[:, self.is_launch].sum(1)
        decode = seconds.sum(1) - prompt - launch
        divisor = np.maximum(share, 1e-9)
        busy = decode + prompt / divisor
        longer = (busy**SHARPNESS + launch**SHARPNESS) ** (1 / SHARPNESS)
        time = (1 - share) * decode + share * longer
        by_busy = share * (busy / longer) ** (SHARPNESS - 1)
        by_launch = share * (launch / longer) ** (SHARPNESS - 1)
        weight = np.outer((1 - share) + by_busy, ~(self.is_prompt | self.is_launch))
        weight += np.outer(by_busy / divisor, self.is_prompt) + np.outer(by_launch, self.is_launch)
        slopes = np.zeros((len(at), len(parameters)))
        slopes[:, :n] = seconds * weight / time[:, None]
        by_family = slopes[:, :n] @ self.family.T
        names = list(FAMILIES)
        for place, (_, _, family) in enumerate(self.offsets):
            slopes[:, n + place] = self.applies[place, at] * by_family[:, names.index(family)]
        for place, family in enumerate(DATED):
            slopes[:, n + m + place] = self.dated[at] * by_family[:, names.index(family)]
        tokens = np.ones(len(at))
        for place, drafts in enumerate(DRAFTS):
            column = n + m + len(DATED) + place
            extra, has = np.exp(parameters[column]), self.drafts[at] == drafts
            tokens = np.where(has, 1 + extra, tokens)
            slopes[:, column] = np.where(has, -extra / (1 + extra), 0.0)
        return np.log(time / tokens), slopes

    def fit(self, at: Ints) -> Floats:
        """The parameters that fit the points `at` best (those that a fit may use)."""
        at = at[self.trained[at]]
        weights = self.group_weights(at)
        return _gauss_newton(
            lambda p: self.predict(p, at), self.tpot[at], weights, self.prior, self.spread / _PRIOR_WEIGHT, _SIGMA
        )

    def calibrate(self, parameters: Floats, at: Ints) -> Floats:
        """The same parameters moved by a few points of one group: a prior as before, around `parameters`, and small errors."""
        return _gauss_newton(lambda p: self.predict(p, at), self.tpot[at], np.ones(len(at)), parameters, self.spread / 2, 0.05)

    def group_weights(self, at: Ints) -> Floats:
        sizes = Counter(self.groups[at])
        weights = np.array([sizes[group] ** -_GROUP_POWER for group in self.groups[at]])
        scaled: Floats = weights / weights.mean()
        return scaled

    def first_terms(self, parameters: Floats) -> Floats:
        """Columns of the first token's time, (points, FIRST)."""
        everyone = np.arange(len(self.samples))
        seconds, tpot = self.seconds(parameters, everyone), np.exp(self.predict(parameters, everyone)[0])
        rows = [
            first_columns(list(seconds[place]), self.states[place], one.load, float(tpot[place]), one.engine)
            for place, one in enumerate(self.samples)
        ]
        return np.array([[row[name] for name in FIRST] for row in rows])

    def predict_first(self, parameters: Floats, columns: Floats, at: Ints) -> tuple[Floats, Floats]:
        """log TTFT and its derivatives by the parameters: one for each of FIRST, one an engine, and `FIRST_SCALES`."""
        n = len(FIRST)
        applies = np.array(
            [[one.engine.name == name for name in ENGINES] for one in (self.samples[i] for i in at)], dtype=float
        )
        shared = [one.layout.dp > 1 for one in (self.samples[i] for i in at)]
        others = np.array([self.dated[at], shared, self.drafts[at] > 0], dtype=float)
        applies = np.concatenate([applies, others.T], axis=1)
        scaled = np.array([name not in UNSCALED for name in FIRST], dtype=float)
        values = columns[at] * np.exp(parameters[:n] + np.outer(applies @ parameters[n:], scaled))
        time = values.sum(1)
        by_scale = (values @ scaled / time)[:, None] * applies
        return np.log(time), np.concatenate([values / time[:, None], by_scale], axis=1)

    def fit_first(self, columns: Floats, at: Ints, around: Floats | None = None) -> Floats:
        """The parameters of TTFT; around: those that a few points of one group are to move."""
        at = at if around is not None else at[self.trained[at]]
        priors = [(np.log(value), spread) for value, spread in (FIRST_PRIORS[name] for name in FIRST)]
        priors += [(0.0, 0.4)] * (len(ENGINES) + len(FIRST_SCALES))
        prior, spread = (np.array(column) for column in zip(*priors, strict=True))
        prior = prior if around is None else around
        weights = self.group_weights(at)
        return _gauss_newton(
            lambda p: self.predict_first(p, columns, at), self.ttft[at], weights, prior, spread / 2, _FIRST_SIGMA
        )

    def coefficients(self, parameters: Floats, first: Floats, accuracy: dict[str, object], source: str) -> Coefficients:
        """The fitted numbers under their names."""
        n, m, d = len(TERMS), len(self.offsets), len(DATED)
        scales: dict[str, dict[str, dict[str, float]]] = {"engine": {}, "generation": {}}
        for place, (kind, name, family) in enumerate(self.offsets):
            scales[kind].setdefault(name, {})[family] = _short(parameters[n + place])
        values = np.exp(parameters)
        return Coefficients(
            terms={term.name: _short(values[place]) for place, term in enumerate(TERMS)},
            engine=scales["engine"],
            generation=scales["generation"],
            dated={family: _short(parameters[n + m + place]) for place, family in enumerate(DATED)},
            drafts={str(drafts): _short(values[n + m + d + place]) for place, drafts in enumerate(DRAFTS)},
            first={name: _short(np.exp(first[place])) for place, name in enumerate(FIRST)},
            first_engine={name: _short(first[len(FIRST) + place]) for place, name in enumerate((*ENGINES, *FIRST_SCALES))},
            accuracy=accuracy,
            source=source,
        )


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """Seconds of every point as predicted by a fit that saw nothing of its group. calibrated, first_calibrated:
    TPOT and TTFT by one that saw four of its points
    (nan for those four, and for groups of fewer than eight).
    """

    tpot: Floats
    ttft: Floats
    calibrated: Floats
    first_calibrated: Floats


def cross_validate(problem: Problem) -> CrossValidation:
    """Hold out each group in turn. Every fit begins at the prior, so that nothing of the group is in it."""
    count = len(problem.samples)
    found = CrossValidation(np.zeros(count), np.zeros(count), np.full(count, np.nan), np.full(count, np.nan))
    for group in sorted(set(problem.groups)):
        held, rest = np.where(problem.groups == group)[0], np.where(problem.groups != group)[0]
        parameters = problem.fit(rest)
        logs, _ = problem.predict(parameters, held)
        found.tpot[held] = np.exp(logs)
        columns = problem.first_terms(parameters)
        first = problem.fit_first(columns, rest)
        found.ttft[held] = np.exp(problem.predict_first(first, columns, held)[0])
        if len(held) >= 8:
            ordered = held[np.argsort(logs, kind="stable")]
            seen = ordered[[len(held) // 8, len(held) * 3 // 8, len(held) * 5 // 8, len(held) * 7 // 8]]
            others = np.setdiff1d(held, seen)
            moved = problem.calibrate(parameters, seen)
            found.calibrated[others] = np.exp(problem.predict(moved, others)[0])
            columns = problem.first_terms(moved)
            first = problem.fit_first(columns, seen, first)
            found.first_calibrated[others] = np.exp(problem.predict_first(first, columns, others)[0])
    return found


_SCALED = (("engine", ENGINES), ("generation", GENERATIONS))


def _applies(sample: Sample, kind: str, name: str) -> bool:
    engine: Engine = sample.engine
    return name == (engine.name if kind == "engine" else sample.machine.generation)


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _gauss_newton(
    predict: Callable[[Floats], tuple[Floats, Floats]],
    target: Floats,
    weights: Floats,
    prior: Floats,
    spread: Floats,
    sigma: float,
) -> Floats:
    """Minimise the robust (pseudo-Huber) error of predict's values and the distance from the prior, from the prior on.

    predict: parameters -> values (points), derivatives (points, parameters).
    """
    parameters, pull = prior.copy(), 1 / spread**2
    for _ in range(60):
        values, slopes = predict(parameters)
        error = target - values
        weight = weights / np.sqrt(1 + (error / sigma) ** 2) / sigma**2
        matrix = (slopes * weight[:, None]).T @ slopes + np.diag(pull)
        step = np.linalg.solve(matrix, (slopes * weight[:, None]).T @ error - pull * (parameters - prior))
        largest = np.abs(step).max()
        parameters = parameters + step * min(1.0, 0.5 / largest)
        if largest < 1e-4:
            break
    return parameters
