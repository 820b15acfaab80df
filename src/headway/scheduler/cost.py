"""CostModel: seconds of a step, predicted from what is in it."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from headway.scheduler.sizes import ANY_SIZE, Grid

KNOTS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048)


@dataclass(frozen=True, slots=True)
class Observation:
    """One step as it was. tokens: its size, padding included; context: the sum, over the tokens computed, of the positions each
    attends to; samples: rows of logits; seconds: device time; changes: its size was another than that of the step before."""

    tokens: int
    context: int
    samples: int
    seconds: float
    changes: bool = False


class CostModel:
    """seconds = drift x (base(tokens) + per_context x context + per_sample x samples)

    tokens are rounded up to the engine's grid of sizes first; a step of another size than the last takes `per_change` more.
    base is piecewise linear between knots and never falls, so knees of the real curve are kept; every term is
    non-negative. `fit` sets it from a ladder of measurements; `observe` refines it after every step: a normalised
    least-mean-squares update (forgets at the rate LEARN, one outlier moves it by a bounded amount), with a quicker common
    factor, `drift`, for a machine whose speed changes as a whole.
    """

    LEARN = 0.08
    DRIFT = 0.05
    OUTLIER = 0.5
    ROUNDING = 1e-12
    """Relative errors up to here are those of floating point: nothing to learn from."""
    WINDOW = 512

    def __init__(
        self,
        base: Sequence[tuple[int, float]],
        per_context: float,
        per_sample: float,
        *,
        per_change: float = 0.0,
        grid: Grid = ANY_SIZE,
    ) -> None:
        if not base:
            raise ValueError("a cost model needs at least one knot")
        self._knots = [n for n, _ in base]
        self._base = _rising([seconds for _, seconds in base])
        self._known: dict[int, float] = {}  # of _interpolate, until the base changes
        self.per_context = max(0.0, per_context)
        self.per_sample = max(0.0, per_sample)
        self.per_change = max(0.0, per_change)
        self.grid = grid
        self.drift = 1.0
        self.num_observed = 0
        self._errors: deque[float] = deque(maxlen=self.WINDOW)

    @classmethod
    def fit(cls, ladder: Iterable[Observation], *, per_change: float = 0.0, grid: Grid = ANY_SIZE) -> CostModel:
        """From measured steps. Pairs that differ in context (or in samples) alone give the slopes, the rest the base."""
        points = list(ladder)
        per_context = _slope(points, lambda o: (o.tokens, o.samples), lambda o: o.context)
        per_sample = _slope(points, lambda o: (o.tokens, o.context), lambda o: o.samples)
        by_tokens: dict[int, list[float]] = {}
        for o in points:
            rest = o.seconds - per_context * o.context - per_sample * o.samples
            by_tokens.setdefault(o.tokens, []).append(max(rest, 0.05 * o.seconds))
        base = [(n, sum(v) / len(v)) for n, v in sorted(by_tokens.items())]
        return cls(base, per_context, per_sample, per_change=per_change, grid=grid)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CostModel:
        """What `to_dict` gave. Raises ValueError that says what is wrong with it."""
        try:
            base = [(int(tokens), float(seconds)) for tokens, seconds in data["base"]]
            per_context, per_sample = float(data["per_context"]), float(data["per_sample"])
        except KeyError as error:
            raise ValueError(f"{error} is missing") from None
        except TypeError:
            raise ValueError("base should be a list of [tokens, seconds], per_context and per_sample numbers") from None
        knots = [tokens for tokens, _ in base]
        if knots != sorted(set(knots)) or not knots or knots[0] < 1:
            raise ValueError("the token counts of base should rise from 1 or more")
        if not all(0.0 < seconds < inf for _, seconds in base):
            raise ValueError("the seconds of base should be above 0")
        if not (0.0 <= per_context < inf and 0.0 <= per_sample < inf):
            raise ValueError("per_context and per_sample should not be negative")
        try:
            per_change = float(data.get("per_change", 0.0))
            grid = Grid(tuple((int(limit), int(multiple)) for limit, multiple in data.get("grid", ())))
        except (TypeError, ValueError):
            raise ValueError("per_change should be a number, grid a list of [limit, multiple]") from None
        if not (0.0 <= per_change < inf and all(limit > 0 and multiple > 0 for limit, multiple in grid.entries)):
            raise ValueError("per_change should not be negative, and the numbers of grid should be above 0")
        return cls(base, per_context, per_sample, per_change=per_change, grid=grid)

    def seconds(self, tokens: int, context: int = 0, samples: int = 0) -> float:
        """Predicted seconds of a step; beyond the last knot the curve goes on with its last slope."""
        base = self._known.get(tokens)
        if base is None:
            base = self._interpolate(tokens)
        return self.drift * (base + self.per_context * context + self.per_sample * samples)

    def expected(self, o: Observation) -> float:
        """Predicted seconds of a step like `o`."""
        return self.seconds(o.tokens, o.context, o.samples) + o.changes * self.change

    @property
    def change(self) -> float:
        """Seconds that a step takes longer if its size is another than the last one's."""
        return self.drift * self.per_change

    @property
    def attended(self) -> float:
        """Seconds for each position that a token attends to."""
        return self.drift * self.per_context

    @property
    def sampled(self) -> float:
        """Seconds for each row of logits."""
        return self.drift * self.per_sample

    def tokens_within(self, seconds: float, at_most: int, *, context_each: float = 0.0, sampled: bool = False) -> int:
        """The largest n <= at_most such that a step of n tokens stays within `seconds`; 0 if not even one does.
        context_each: positions each token attends to; sampled: whether each token's logits are wanted."""
        extra = self.per_context * context_each + (self.per_sample if sampled else 0.0)
        budget = seconds / self.drift
        known = self._known
        if at_most <= 0:
            return 0
        single = known.get(1)
        if single is None:
            single = self._interpolate(1)
        if single + extra > budget:
            return 0
        low, high = 1, at_most
        while low < high:
            middle = (low + high + 1) // 2
            base = known.get(middle)
            if base is None:
                base = self._interpolate(middle)
            if base + extra * middle <= budget:
                low = middle
            else:
                high = middle - 1
        return low

    def observe(self, o: Observation) -> None:
        """Learn from a finished step."""
        predicted = self.expected(o)
        error = o.seconds / predicted - 1.0
        self._errors.append(error)
        self.num_observed += 1
        if abs(error) <= self.ROUNDING:
            return
        error = max(-self.OUTLIER, min(self.OUTLIER, error))
        self.drift *= 1.0 + self.DRIFT * error
        self._learn(o, error * predicted * (1.0 - self.DRIFT) / self.drift)

    def _learn(self, o: Observation, residual: float) -> None:
        self._known.clear()
        # The step's features weighed by how much each explains now: a term that contributes much takes most of the blame.
        at, share = self._locate(o.tokens)
        weights = [(at, 1.0 - share), (at + 1, share)] if share > 0.0 else [(at, 1.0)]
        parts = [self._base[i] * w for i, w in weights]
        context, samples = self.per_context * o.context, self.per_sample * o.samples
        total = sum(parts) + context + samples
        if total <= 0.0:
            return
        gain = self.LEARN * residual / total
        for (i, w), part in zip(weights, parts, strict=True):
            if part > 0.0:
                self._base[i] = max(1e-6, self._base[i] + gain * self._base[i] * w)
        self.per_context = max(0.0, self.per_context * (1.0 + gain))
        self.per_sample = max(0.0, self.per_sample * (1.0 + gain))
        self._keep_rising(weights[0][0], weights[-1][0])

    def _keep_rising(self, first: int, last: int) -> None:
        """Neighbours give way to what was just learnt."""
        for i in range(first, 0, -1):
            self._base[i - 1] = min(self._base[i - 1], self._base[i])
        for i in range(first, len(self._base) - 1):
            if i >= last and self._base[i + 1] >= self._base[i]:
                break
            self._base[i + 1] = max(self._base[i + 1], self._base[i])

    def error(self) -> tuple[float, float]:
        """Median and 95th percentile of |observed / predicted - 1| over the last steps; (0, 0) before the first."""
        return median_and_p95(self._errors)

    def curve(self) -> list[tuple[int, float]]:
        """The knots as (tokens, seconds at no context and no samples)."""
        return [(n, self.drift * s) for n, s in zip(self._knots, self._base, strict=True)]

    def to_dict(self) -> dict[str, object]:
        """For a JSON cache; the drift of the moment is not part of it."""
        return {
            "base": [[n, s] for n, s in zip(self._knots, self._base, strict=True)],
            "per_context": self.per_context,
            "per_sample": self.per_sample,
            "per_change": self.per_change,
            "grid": [list(entry) for entry in self.grid.entries],
        }

    def _locate(self, tokens: int) -> tuple[int, float]:
        """Knot at or below `tokens` and the share of the way to the next one."""
        last = len(self._knots) - 1
        at = bisect_right(self._knots, tokens) - 1
        if at < 0 or last == 0:
            return 0, 0.0
        if at >= last:
            return last, 0.0
        low, high = self._knots[at], self._knots[at + 1]
        return at, (tokens - low) / (high - low)

    def _interpolate(self, tokens: int) -> float:
        self._known[tokens] = seconds = self._read_off(tokens)
        return seconds

    def _read_off(self, tokens: int) -> float:
        base, knots = self._base, self._knots
        tokens = self.grid.up(tokens)
        at, share = self._locate(tokens)
        if share > 0.0:
            return base[at] + share * (base[at + 1] - base[at])
        if tokens > knots[at]:
            slope = (base[at] - base[at - 1]) / (knots[at] - knots[at - 1]) if at else base[0] / knots[0]
            return base[at] + slope * (tokens - knots[at])
        return base[at]


def median_and_p95(errors: Iterable[float]) -> tuple[float, float]:
    """Of the absolute values; (0, 0) if there are none."""
    ranked = sorted(abs(e) for e in errors)
    if not ranked:
        return 0.0, 0.0
    return ranked[len(ranked) // 2], ranked[min(len(ranked) - 1, int(0.95 * len(ranked)))]


def _rising(values: Sequence[float]) -> list[float]:
    """The closest never-falling sequence (pool adjacent violators)."""
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, size = value, 1
        while pools and pools[-1][0] > mean:
            before, n = pools.pop()
            mean, size = (mean * size + before * n) / (size + n), size + n
        pools.append((mean, size))
    return [mean for mean, size in pools for _ in range(size)]


def _slope(
    points: Sequence[Observation],
    same: Callable[[Observation], object],
    along: Callable[[Observation], int],
) -> float:
    """Mean slope of seconds along one quantity over groups in which all else is the same."""
    groups: dict[object, list[Observation]] = {}
    for o in points:
        groups.setdefault(same(o), []).append(o)
    slopes = []
    for group in groups.values():
        low, high = min(group, key=along), max(group, key=along)
        if along(high) > along(low):
            slopes.append((high.seconds - low.seconds) / (along(high) - along(low)))
    return max(0.0, sum(slopes) / len(slopes)) if slopes else 0.0
