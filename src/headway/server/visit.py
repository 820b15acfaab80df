"""Who an HTTP request is from, and what it turned out to be: kept in the ASGI scope, for the endpoints and the access log."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import HTTPConnection

from headway.access.keys import Caller
from headway.modes import ModeName

VISIT = "headway.visit"
"""The scope's key."""


@dataclass(slots=True)
class Visit:
    """requested, served: modes, once they are known; served is also the one that is billed."""

    caller: Caller
    requested: ModeName | None = None
    served: ModeName | None = None


def visit_of(connection: HTTPConnection) -> Visit:
    visit: Visit = connection.scope[VISIT]
    return visit
