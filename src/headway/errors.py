"""Errors that a user reads. Each message is one line: what is wrong, and what to do about it."""

from __future__ import annotations


class HeadwayError(Exception):
    """Something the user can mend. The CLI prints the message alone (no traceback) and exits with `exit_code`."""

    exit_code = 1


class UsageError(HeadwayError):
    """A wrong argument or setting."""

    exit_code = 2


class ModelError(HeadwayError):
    """A model that is missing, damaged or of a kind that can't be served."""


class RequestError(Exception):
    """A request that can't be served as asked: the server's dialects turn it into their own error bodies.

    `code` is OpenAI's machine-readable word (or None), `param` the request field at fault (or None),
    `retry_after` the seconds after which a retry can succeed (or None).
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = retry_after
