"""Work in several steps with tools, where one mistake spoils the rest."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any

from headway.compare.suites.calls import Wanted, arguments_of, invalid, is_wanted
from headway.compare.suites.task import Suite, Verdict, fresh
from headway.compare.suites.texts import shown
from headway.compare.suites.words import MONTHS, PLACES, THINGS, code, date
from headway.compare.suites.world import LOOKS, TOOLS, World
from headway.compare.target import Answer, Ask, Call

MAX_TOKENS = 80
LENGTHS = (1, 2, 3, 5, 8)
SYSTEM = "You work with tools. Do the steps in their order, one call at a time. When all are done, say: done."


@dataclass(frozen=True, slots=True)
class Step:
    """In words, and as the call that it comes to."""

    words: str
    wanted: Wanted


class Chain:
    """A Play: the steps' calls must come in their order, in one answer or one by one. It ends with the first wrong call (a look
    that nobody asked for is none, up to once for each step), or when an answer calls nothing before all is done."""

    def __init__(self, steps: list[Step], world: World) -> None:
        self._steps = steps
        self._world = deepcopy(world)
        numbered = "\n".join(f"{place}. {step.words}" for place, step in enumerate(steps, start=1))
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": numbered}]
        self._done = self._calls = self._valid = self._looks = 0
        self._fault: str | None = None

    def ask(self) -> Ask | None:
        if self._fault is not None or self._done == len(self._steps):
            return None
        return Ask(list(self._messages), MAX_TOKENS, tools=TOOLS, tool_choice="required")

    def take(self, answer: Answer) -> None:
        if not answer.calls:
            self._fault = f"step {self._done + 1}: no call; said {shown(answer.text)}"
            return
        calls = [
            Call(call.id or f"call_{self._calls + place}", call.name, call.arguments) for place, call in enumerate(answer.calls)
        ]
        self._messages.append(
            {"role": "assistant", "content": answer.text or None, "tool_calls": [_worded(call) for call in calls]}
        )
        for call in calls:
            self._calls += 1
            self._fault = self._fault_of(call)
            if self._fault is not None:
                return

    def verdict(self) -> Verdict:
        return Verdict(self._fault, self._calls, self._valid, len(self._steps), self._done)

    def _fault_of(self, call: Call) -> str | None:
        """Carry the call out if it is the next one, or a look."""
        here = f"step {min(self._done + 1, len(self._steps))}: "
        if (broken := invalid(call, TOOLS)) is not None:
            return here + broken
        self._valid += 1
        if self._done < len(self._steps) and is_wanted(call, self._steps[self._done].wanted):
            self._done += 1
        elif call.name in LOOKS and self._looks < len(self._steps):
            self._looks += 1
        else:
            return f"{here}{call.name}({shown(call.arguments)})"
        answer = self._world.call(call.name, arguments_of(call))
        self._messages.append({"role": "tool", "tool_call_id": call.id, "content": answer})
        return None


def _worded(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


class _Author:
    """Makes up steps, and knows what the world will say to them."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.world = World(prices={thing: rng.randint(2, 60) for thing in THINGS})
        self._things = rng.sample(THINGS, len(THINGS))
        self._number = 0

    def plain(self) -> Step:
        """A step that says all that it needs."""
        thing, self._number = self._things.pop(), self._number + 1
        match self._rng.randint(1, 4):
            case 1:
                name, text = f"{thing}.txt", code(self._rng)
                return Step(f"Write the text {text} into the file {name}.", Wanted("write_file", {"name": name, "text": text}))
            case 2:
                day = date(self._rng)
                return Step(f"Add the event {thing} on {day}.", Wanted("add_event", {"title": thing, "date": day}))
            case 3:
                return Step(f"Get the price of the {thing}.", Wanted("get_price", {"item": thing}))
            case _:
                count = self._rng.randint(2, 9)
                return Step(f"Buy {count} pieces of the {thing}.", Wanted("buy", {"item": thing, "count": count}))

    def pair(self) -> list[Step]:
        """Two steps, of which the second needs what the first one's tool answers."""
        thing, self._number = self._things.pop(), self._number + 1
        note = f"note{self._number}.txt"
        read = Step(f"Read the file {note}.", Wanted("read_file", {"name": note}))
        match self._rng.randint(1, 3):
            case 1:
                count = self._rng.randint(2, 9)
                self.world.files[note] = f"We need {count} pieces."
                wanted = Wanted("buy", {"item": thing, "count": count})
                return [read, Step(f"Buy as many pieces of the {thing} as that file says.", wanted)]
            case 2:
                day, month = self._rng.randint(1, 28), self._rng.randint(1, 12)
                city = self._rng.choice(PLACES)
                self.world.files[note] = f"Trip to {city} on {day} {MONTHS[month - 1]} 2026"
                wanted = Wanted("add_event", {"title": city, "date": f"2026-{month:02}-{day:02}"})
                return [read, Step("Add the trip in that file to the calendar; its title is the city alone.", wanted)]
            case _:
                price, budget = self.world.prices[thing], self._rng.randint(70, 300)
                look = Step(f"Get the price of the {thing}.", Wanted("get_price", {"item": thing}))
                wanted = Wanted("buy", {"item": thing, "count": budget // price})
                return [look, Step(f"Buy as many pieces of it as {budget} euros are enough for.", wanted)]


def make(rng: Random, level: int) -> tuple[list[Step], World]:
    """Level 1 to 5: 1, 2, 3, 5 and 8 steps. From level 3 on some need what an earlier step's tool has answered."""
    author, count = _Author(rng), LENGTHS[level - 1]
    steps: list[Step] = []
    while len(steps) < count:
        steps += author.pair() if level >= 3 and count - len(steps) >= 2 and rng.random() < 0.6 else [author.plain()]
    return steps, author.world


def _play(rng: Random, level: int) -> Any:
    steps, world = make(rng, level)
    return lambda: Chain(steps, world)


SUITE = Suite(
    "chain", "Does work in up to eight steps with tools, where one mistake spoils the rest.", fresh("chain", 5, _play), quick=6
)
