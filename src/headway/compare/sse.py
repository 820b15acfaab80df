"""Server-sent events, read from bytes as they arrive."""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class EventParser:
    """Turns any split of an event stream into the data of its events.

    Follows the WHATWG HTML standard, section 9.2: lines end in LF, CRLF or CR; a blank line ends an event; `data` lines of
    one event are joined by LF; comments and other fields are skipped; an event without a data line is not reported.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._after_cr = False
        self._at_start = True

    def feed(self, data: bytes) -> list[bytes]:
        """The data of each event that these bytes complete, in order."""
        if self._after_cr or b"\r" in data:
            data = self._lf_only(data)
        blocks = (self._rest + data).split(b"\n\n")
        self._rest = blocks.pop()
        events: list[bytes] = []
        for block in blocks:
            if self._at_start:
                block = block.removeprefix(_BOM)
                self._at_start = False
            if block.startswith(b"data: ") and b"\n" not in block:  # nearly every event of an LLM server
                events.append(block[6:])
            elif (joined := _joined_data(block)) is not None:
                events.append(joined)
        return events

    @property
    def pending(self) -> bool:
        """True if the bytes so far end inside an event: a stream that closes now was cut."""
        return bool(self._rest.strip(b"\n"))

    def _lf_only(self, data: bytes) -> bytes:
        if not data:
            return data
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]  # the second half of a CRLF whose CR already counted as a line end
            self._after_cr = False
            if not data:
                return data
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _joined_data(block: bytes) -> bytes | None:
    values = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            values.append(value.removeprefix(b" "))
    return b"\n".join(values) if values else None
