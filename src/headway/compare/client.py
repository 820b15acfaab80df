"""A streaming client for OpenAI-compatible servers that notes when every chunk came."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Protocol, Self

import aiohttp

from headway.compare.chunks import ChunkReader
from headway.compare.record import RequestRecord
from headway.compare.request import StreamRequest

Clock = Callable[[], float]

CONNECT_SECONDS = 60.0  # a server that is too busy to accept is slow, not gone
SILENCE_SECONDS = 120.0  # without a byte for so long, a request has failed
DRAIN_SECONDS = 1.0  # how long a body may stay open after [DONE]


class EventReader(Protocol):
    """Fills a record from the bytes of an event stream."""

    @property
    def last_event(self) -> str:
        """What a whole stream ends with."""

    def feed(self, data: bytes, now: float) -> bool:
        """Take bytes that came at `now`; true once the stream has said that it is whole. Raises ValueError, TypeError,
        KeyError, AttributeError or IndexError for what has another shape."""


class Client:
    """Sends requests to one server. Use it as an async context manager; it has no limit of connections.

    Every request has a connection of its own, as the requests of different users have: none can fall onto a kept-alive one
    that the server is just closing. Latencies include connecting. Over https connections are kept, as SDKs do: a handshake
    takes several round trips to a server that is far away.

    headers: of every request. clock: monotonic seconds (tests inject their own).
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        clock: Clock = time.perf_counter,
    ) -> None:
        self.url = url
        self.clock = clock
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else dict(headers or {})
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        secure = self.url.startswith("https:")
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(limit=0, force_close=not secure),
            trust_env=secure,  # a proxy on the way out; what is near is reached directly
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("Client is an async context manager: enter it first")
        return self._session

    def record(self, request: StreamRequest, intended: float | None = None) -> RequestRecord:
        """A fresh record of a request that is to be sent now (or was to be sent at `intended`)."""
        now = self.clock()
        return RequestRecord(request.mode, now if intended is None else intended, now)

    async def send(
        self, request: StreamRequest, record: RequestRecord | None = None, reader: EventReader | None = None
    ) -> RequestRecord:
        """Send a request and fill its record as it streams. Never raises for what the server or the network does: that is
        the record's outcome and reason. Cancelled half way, the record keeps what came and its outcome stays "cut".
        reader: of another API's events than OpenAI's."""
        record = self.record(request) if record is None else record
        try:
            await self._stream(request, record, reader or ChunkReader(record, keep_text=request.keep_text))
        except TimeoutError:
            record.fail("timed out")
        except (aiohttp.ClientError, OSError) as error:
            record.fail(f"{type(error).__name__}: {error}".rstrip(": "))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            record.fail(f"malformed response: {error}")
        record.finished = self.clock()
        return record

    async def _stream(self, request: StreamRequest, record: RequestRecord, reader: EventReader) -> None:
        async with self.session.post(self.url + request.path, json=request.body) as response:
            record.status = response.status
            if response.status != 200:
                record.retry_after = _wait_asked_for(response.headers)
                record.gives_up = response.headers.get("x-should-retry") == "false"
                record.fail(f"HTTP {response.status}: {_error_message(await response.read())}")
            elif response.content_type != "text/event-stream":
                record.fail(f"not an event stream but {response.content_type}")
            elif not await self._read_events(response, reader):
                record.fail(record.reason or f"the stream ended without {reader.last_event}")
            elif record.reason is None:
                record.outcome = "success"

    async def _read_events(self, response: aiohttp.ClientResponse, reader: EventReader) -> bool:
        """Read to the end of the stream; true if it was whole."""
        async for data in response.content.iter_any():
            if reader.feed(data, self.clock()):
                await _drain(response)
                return True
        return False


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read to the end of the body: a server that is still writing would take a closed connection for a cancelled request."""
    with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(DRAIN_SECONDS):
            await response.read()


def _wait_asked_for(headers: Mapping[str, str]) -> float | None:
    """Seconds: `retry-after-ms` (OpenAI's and Anthropic's SDKs obey it), else `retry-after`, a number or a date (RFC 9110,
    section 10.2.3). None if neither is there, or can be read."""
    with contextlib.suppress(ValueError, KeyError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    text = headers.get("retry-after", "")
    with contextlib.suppress(ValueError):
        return max(0.0, float(text))
    with contextlib.suppress(ValueError, TypeError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None


def _error_message(body: bytes) -> str:
    """The sentence in an error body like OpenAI's or Anthropic's, else the body's beginning."""
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body[:200].decode(errors="replace").strip()
