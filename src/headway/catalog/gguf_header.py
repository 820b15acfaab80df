"""The header of a GGUF file, read without trust: metadata and tensor directory.

Every count and length is checked against the size of the file before anything is read or kept, so a broken or hostile file
costs milliseconds and one error. Arrays are kept as their place in the file, and read when asked for. Layout (little-endian):

    magic "GGUF", version u32, tensor count u64, pair count u64
    pairs:   key string, type u32, value          string: length u64, bytes
    tensors: name string, dimensions u32, each u64, type u32, offset u64    array: type u32, count u64, elements
    padding to `general.alignment`, then the tensors' data
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from headway.catalog.not_gguf import looks_like
from headway.errors import ModelError

Scalar = int | float | bool | str

_STRING, _ARRAY = 8, 9
_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_VERSIONS = (2, 3)
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")

_MIN_PAIR, _MIN_TENSOR = 8 + 4 + 1, 8 + 4 + 4 + 8  # bytes that one takes at least
_MAX_PAIRS, _MAX_TENSORS, _MAX_DIMENSIONS = 65_536, 1_048_576, 4
_MAX_STRINGS = 8_388_608  # over all arrays of strings; the largest vocabularies have about a million with their merges
_MAX_TEXT = 16 << 20  # bytes of one string value; chat templates have up to 50 thousand

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """Where an array's elements lie: GGUF type of each, how many, offset in the file."""

    type: int
    count: int
    offset: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """One entry of the tensor directory. type: GGML's number; offset: bytes from the start of the data."""

    name: str
    shape: tuple[int, ...]
    type: int
    offset: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """values: the scalar and string pairs. arrays: number arrays' and string arrays' places.
    data_offset: where tensor data begins; file_size: bytes."""

    path: Path
    version: int
    values: dict[str, Scalar]
    arrays: dict[str, ArrayPlace]
    tensors: list[Tensor]
    data_offset: int
    file_size: int

    def numbers(self, key: str) -> list[int]:
        """The elements of an array of integers. Raises ModelError if it holds anything else."""
        place = self.arrays[key]
        form = _FORMATS.get(place.type)
        if form is None or form[1] in "fd":
            raise ModelError(f"{self.path}: {printable(key)} has to be an array of integers")
        with self.path.open("rb") as file:
            file.seek(place.offset)
            data = file.read(place.count * struct.calcsize(form))
        return list(struct.unpack(f"<{place.count}{form[1]}", data))


def printable(text: str) -> str:
    """Text that may come from a file, fit for a line on a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text[:160])


def read_header(path: Path) -> GgufHeader:
    """Raises ModelError, with one line that says what is wrong, for anything that isn't a whole and sane header."""
    if not path.exists():
        raise ModelError(f"there is no file {path}")
    wrong = looks_like(path)
    if wrong is not None:
        raise ModelError(f"{path} is not a GGUF model: it is {wrong}")
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(path, data).header()
    except OSError as error:
        raise ModelError(f"{path} can't be read: {error.strerror or error}") from None


class _Reader:
    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._size = len(data)
        self._at = 4
        self._strings_left = _MAX_STRINGS
        self._readers: dict[int, Callable[[], Scalar]] = {
            kind: self._scalar_reader(struct.Struct(form)) for kind, form in _FORMATS.items()
        }

    def header(self) -> GgufHeader:
        version = self._number(_U32)
        if version not in _VERSIONS:
            raise self._wrong_version(version)
        num_tensors, num_pairs = self._number(_U64), self._number(_U64)
        self._check_count(num_tensors, _MIN_TENSOR, _MAX_TENSORS, "tensors")
        self._check_count(num_pairs, _MIN_PAIR, _MAX_PAIRS, "metadata keys")
        values: dict[str, Scalar] = {}
        arrays: dict[str, ArrayPlace] = {}
        for _ in range(num_pairs):
            key = self._text("a metadata key")
            if key in values or key in arrays:
                raise self._damaged(f"the key {key!r} is there twice")
            kind = self._number(_U32)
            if kind == _ARRAY:
                arrays[key] = self._array(key)
            else:
                values[key] = self._value(kind, key)
        tensors = [self._tensor() for _ in range(num_tensors)]
        return GgufHeader(self._path, version, values, arrays, tensors, self._aligned(values), self._size)

    def _value(self, kind: int, key: str) -> Scalar:
        if kind == _STRING:
            return self._text(key)
        if kind not in self._readers:
            raise self._damaged(f"{key} has the unknown type {kind}")
        return self._readers[kind]()

    def _array(self, key: str) -> ArrayPlace:
        kind, count = self._number(_U32), self._number(_U64)
        place = ArrayPlace(kind, count, self._at)
        if kind == _STRING:
            self._skip_strings(count, key)
        elif kind in _FORMATS:
            self._skip(count * struct.calcsize(_FORMATS[kind]), key)
        else:
            raise self._damaged(f"{key} is an array of the unknown type {kind}")
        return place

    def _skip_strings(self, count: int, key: str) -> None:
        self._check_count(count, _U64.size, self._strings_left, f"strings in {key}")
        self._strings_left -= count
        data, at, last, unpack = self._data, self._at, self._size - _U64.size, _U64.unpack_from
        for _ in range(count):
            if at > last:
                raise self._cut_short(key)
            at += _U64.size + unpack(data, at)[0]
        if at > self._size:
            raise self._cut_short(key)
        self._at = at

    def _tensor(self) -> Tensor:
        name = self._text("a tensor's name")
        num_dimensions = self._number(_U32)
        if num_dimensions > _MAX_DIMENSIONS:
            raise self._damaged(f"the tensor {name!r} has {num_dimensions} dimensions")
        shape = tuple(self._number(_U64) for _ in range(num_dimensions))
        return Tensor(name, shape, type=self._number(_U32), offset=self._number(_U64))

    def _text(self, what: str) -> str:
        length = self._number(_U64)
        if length > _MAX_TEXT:
            raise self._damaged(f"{what} claims to be {length:,} bytes long")
        start = self._at
        self._skip(length, what)
        return self._data[start : self._at].decode("utf-8", "replace")

    def _skip(self, length: int, what: str) -> None:
        if length > self._size - self._at:
            raise self._cut_short(what)
        self._at += length

    def _number(self, form: struct.Struct) -> int:
        start = self._at
        self._skip(form.size, "the header")
        number: int = form.unpack_from(self._data, start)[0]
        return number

    def _scalar_reader(self, form: struct.Struct) -> Callable[[], Scalar]:
        return lambda: self._number(form)

    def _aligned(self, values: dict[str, Scalar]) -> int:
        alignment = values.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 1 <= alignment <= 65_536 or alignment & (alignment - 1):
            raise self._damaged(f"general.alignment is {alignment!r}, not a power of two")
        return -(-self._at // alignment) * alignment

    def _check_count(self, count: int, least_bytes: int, most: int, what: str) -> None:
        if count > most:
            raise self._damaged(f"its header claims {count:,} {what}")
        if count * least_bytes > self._size - self._at:
            raise self._cut_short(f"its {count:,} {what}")

    def _wrong_version(self, version: int) -> ModelError:
        if int.from_bytes(version.to_bytes(4, "big"), "little") in _VERSIONS:
            return ModelError(f"{self._path} is a big-endian GGUF: get the little-endian file of this model")
        return ModelError(f"{self._path} is a GGUF of version {version}: versions 2 and 3 can be read")

    def _damaged(self, why: str) -> ModelError:
        return ModelError(f"{self._path} is damaged: {printable(why)}; download it again")

    def _cut_short(self, where: str) -> ModelError:
        place = f"it ends at byte {self._size:,}, within {printable(where)}"
        return ModelError(f"{self._path} is cut short: {place}; download it again")
