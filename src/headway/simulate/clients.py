"""Whether those who ask wait for answers."""

from __future__ import annotations

from enum import StrEnum


class Clients(StrEnum):
    """open: requests come when they came in the recording, however long the answers take (an open loop). closed: each that came
    soon after an end comes after that end. auto: closed for those that the recording shows to have waited, open for others."""

    AUTO = "auto"
    OPEN = "open"
    CLOSED = "closed"
