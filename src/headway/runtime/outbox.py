"""What a step yielded and nobody has seen yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.runtime.api import TokenLogprob
from headway.runtime.live import Live
from headway.scheduler.scheduler import Received


@dataclass(slots=True)
class Outbox:
    """tokens: of each request, with the reason why the last of them ends it, if it does."""

    tokens: list[tuple[Live, list[TokenLogprob], str | None]] = field(default_factory=list)

    def take_firsts(self) -> Outbox | None:
        """The first tokens of answers, which are then no longer in here; None if there are none."""
        firsts = [entry for entry in self.tokens if not entry[0].num_delivered]
        if not firsts:
            return None
        self.tokens = [entry for entry in self.tokens if entry[0].num_delivered]
        return Outbox(firsts)


def outbox_of(received: Sequence[Received], sampling: Sequence[Live], sampled: Sequence[list[TokenLogprob]]) -> Outbox:
    """Only what the scheduler took: a row that was cancelled meanwhile has yielded nothing. First tokens that are held come
    with the next one."""
    took = {r.request.id: r for r in received}
    outbox = Outbox()
    for live, tokens in zip(sampling, sampled, strict=True):
        r = took.get(live.request.id)
        if r is None:
            continue
        taken = [*live.held, *tokens[: r.num_tokens]] if live.held else tokens[: r.num_tokens]
        live.held = taken if r.request.held else []
        if not live.held:
            outbox.tokens.append((live, taken, r.ended))
    return outbox
