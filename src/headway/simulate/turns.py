"""Many steps at once where paces differ: those of the highest pace ride in every step, the others take turns. Who rides is
decided by compose's own rules, step by step, but on plain numbers: no step is built, and a choice that was made before is
remembered."""

from __future__ import annotations

from operator import attrgetter

from headway.scheduler.compose import efficient, fill_knee, others_within, reckoned, reserve_of, shortest_of, wanted_others
from headway.scheduler.scheduler import Scheduler
from headway.simulate.request import SimulatedRequest
from headway.simulate.stretch import Stretch


class Turns(Stretch):
    """For a scheduler with headway's own compose, without speculation, that has nothing to learn: its cost model is the
    machine's."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self._wanted: dict[tuple[int, int, float, float, int], int] = {}
        self._choices: dict[tuple[int, int, int, int, float], int] = {}
        self._rows: list[_Row] = []
        self._riders: list[_Row] = []

    def plan(self, running: list[SimulatedRequest], now: float, until: float) -> bool:
        most = (self.pool.num_free // len(running) - 1) * self.pool.block_size  # however the turns fall, there are blocks
        if most <= 0:
            return False
        self._rows = [_Row(r) for r in running]
        self._step(now, until, most)
        for row in self._rows:
            self._advance(row)
        for row in self._riders:
            self.give_blocks(row.request, self.new_blocks(row.request, 1))
        return True

    def complete(self) -> list[SimulatedRequest]:
        ended = []
        for row in self._riders:
            r = row.request
            r.receive(r.token, self.end)
            r.num_computed += 1
            self.scheduler.seal(r)
            if r.num_output == r.length:
                ended.append(r)
        self.serve([row.request for row in self._riders], 1)
        for r in ended:
            self.scheduler.cancel(r.id)
        return ended

    def _advance(self, row: _Row) -> None:
        """Bring a request to where the last step begins."""
        r, taken = row.request, row.output - row.request.num_output
        r.engine_seconds += row.seconds
        if taken:
            self.give_blocks(r, self.new_blocks(r, taken))
            r.tokens += [r.token] * taken
            r.num_computed += taken
            r.num_on_time += row.on_time
            r.last_token_at = row.last
            r.service = row.service
            self.scheduler.note_served(r, taken)
            self.scheduler.seal(r)  # those who don't ride in the last step too: what they share can be had from now on

    def _step(self, now: float, limit: float, most: int) -> None:
        """So many steps at most, up to the one that a request ends in or that ends after `limit`."""
        scheduler, rows = self.scheduler, self._rows
        costs, sizes, limits = scheduler.costs, scheduler.sizes, scheduler.limits
        number = len(rows)
        tightest = max([row.pace for row in rows])
        always = [row for row in rows if row.pace >= tightest]
        others = [row for row in rows if row.pace < tightest]
        for row in others:
            row.lead = limits.lead / row.pace
            row.edge = row.due - row.lead
        for row in always:
            row.shortest, row.reserve = shortest_of(row.request, limits), reserve_of(row.request, limits)
        slack = limits.longest / tightest
        step_pace = tightest / min(limits.most_yield, *[row.request.tokens_per_step for row in always])
        context = sum([row.computed for row in rows]) + number
        begin, steps = now, 0
        asked: tuple[int, float, int] | None = None
        places = settled = 0
        while True:
            budget = slack
            for row in always:
                allowed = row.due - now - row.reserve
                if allowed < slack:
                    budget = min(budget, max(row.shortest, allowed))
            horizon = now + 2 * budget
            must = [row for row in others if row.edge < horizon]
            urgent = len(must)
            each_context = reckoned(context, number)
            question = urgent, budget, each_context
            if question != asked:
                asked = question
                places = self._choose(always, others, urgent, budget, slack, step_pace, each_context)
            if places == len(others):
                riders = rows
                computed = context - number
            else:
                riders = always + _first(others, places, must, horizon)
                computed = sum([row.computed for row in riders])
            riding = len(riders)
            if riding == settled:
                size, changes = sizes.size, False
            else:
                size = sizes.within(budget - costs.attended * riding * each_context, riding).fit(riding)
                changes = size != sizes.size
                sizes.take(riding, size)
                settled = riding if sizes.settled(riding) else 0
            taken = costs.seconds(size, computed + riding, riding) + changes * costs.change
            each = taken / riding
            if riding < number:
                least = efficient(number, context, costs)
                if least < each:
                    missing = (taken - least * riding) / len(always)
                    each = least
                    for row in always:
                        row.seconds += missing
            steps += 1
            end = now + taken
            over = end >= limit or steps == most
            for row in riders:
                row.seconds += each
                if row.output == row.last_output:
                    over = True
            if over:
                break
            for row in riders:
                if end <= row.due:
                    row.on_time += 1
                row.output += 1
                row.computed += 1
                promised = row.output / row.pace
                row.service = row.level + promised
                row.due = row.first + promised
                row.edge = row.due - row.lead
                row.last = end
            context += riding
            now = end
        self._riders = always + _first(others, places, must, horizon)  # in compose's order, also where all ride
        self.end, self.steps, self.busy = end, steps, end - begin

    def _choose(
        self, always: list[_Row], others: list[_Row], urgent: int, budget: float, slack: float, step_pace: float, each: int
    ) -> int:
        """How many of the others ride, as compose has it where there are no prompts. each: tokens of context of a row."""
        if not others:
            return 0
        # Where the budget is the longest, as it is for most of the time, the same few questions come again and again.
        key = (len(always), len(others), urgent, each, budget)
        known = self._choices.get(key) if budget == slack else None
        if known is not None:
            return known
        costs, limits = self.scheduler.costs, self.scheduler.limits
        paces = [row.pace for row in others]
        of = (len(always), len(others), sum(paces), step_pace, each)
        wanted = self._wanted.get(of)
        if wanted is None:
            wanted = self._wanted[of] = wanted_others(len(always), paces, step_pace, costs, each, limits)
        _, riding = others_within(budget, len(always), len(others), wanted, urgent, costs, each)
        riding = fill_knee(len(always), riding, len(others), costs, each, limits)
        if budget == slack:
            self._choices[key] = riding
        return riding


class _Row:
    """A request in the course of a stretch."""

    __slots__ = (
        "computed", "due", "edge", "first", "last", "last_output", "lead", "level", "on_time", "output", "pace",
        "request", "reserve", "seconds", "service", "shortest",
    )  # fmt: skip

    def __init__(self, request: SimulatedRequest) -> None:
        assert request.first_token_at is not None
        assert request.last_token_at is not None
        self.request = request
        self.pace = request.pace
        self.first = request.first_token_at
        self.last = request.last_token_at
        self.output = request.num_output
        self.last_output = request.length - 1
        """Output tokens before the step that ends it."""
        self.computed = request.num_computed
        self.level = request.level
        self.service = request.service
        self.on_time = 0
        self.seconds = 0.0
        self.due = self.first + self.output / self.pace
        self.shortest = self.reserve = self.lead = 0.0
        self.edge = self.due
        """Where its lead is lost."""


def _first(others: list[_Row], number: int, must: list[_Row], horizon: float) -> list[_Row]:
    """Whose turn it is, as compose has it: those who would lose their lead before `horizon` by deadline, then those who were
    served least."""
    if not must:
        return sorted(others, key=_service)[:number]
    ranked = sorted(must, key=_due)
    if len(ranked) < number:
        ranked += sorted([row for row in others if row.edge >= horizon], key=_service)
    return ranked[:number]


_service, _due = attrgetter("service"), attrgetter("due")
