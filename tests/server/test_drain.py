from __future__ import annotations

import asyncio

from headway.server.drain import Drain


class Job:
    aborted = 0

    def abort(self) -> None:
        self.aborted += 1


def test_it_waits_for_the_last_request() -> None:
    async def scene() -> None:
        drain = Drain()
        assert await drain.wait(0.01)
        with drain.request():
            with drain.request():
                pass
            assert not await drain.wait(0.01)
        assert await drain.wait(0.01)

    asyncio.run(scene())


def test_abort_ends_what_runs_and_what_begins_later() -> None:
    async def scene() -> None:
        drain, before, running, later = Drain(), Job(), Job(), Job()
        with drain.generation(before):
            pass
        with drain.generation(running):
            assert drain.abort() == 1
            with drain.generation(later):
                pass
        assert (before.aborted, running.aborted, later.aborted) == (0, 1, 1)

    asyncio.run(scene())
