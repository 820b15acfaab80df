"""headway.toml as typed settings, every key of it checked."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from headway.errors import UsageError

DEFAULT_FILE = Path("headway.toml")

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(text: object) -> int:
    """Bytes from a whole number or from text such as "2GB" (2 * 10**9), "512MiB" (512 * 2**20) or "1.5 GB".
    Raises ValueError."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    match = (
        re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([kmgt]i?)?b", text.strip().lower()) if isinstance(text, str) else None
    )
    if match is None:
        raise ValueError('expected a size such as "2GB" or "512MiB"')
    return int(float(match[1]) * _UNITS[match[2] or ""])


def _matching(pattern: str, what: str) -> BeforeValidator:
    """Text that matches as a whole; `what` completes the sentence "it should be ..."."""

    def check(text: object) -> object:
        if not isinstance(text, str) or re.fullmatch(pattern, text) is None:
            raise ValueError(f"expected {what}")
        return text

    return BeforeValidator(check)


Bytes = Annotated[int, BeforeValidator(parse_bytes), Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]
KeyName = Annotated[
    str, _matching(r"[A-Za-z][\w.@-]{0,63}", "a letter followed by up to 63 letters, digits, or characters of _ . @ -")
]
KeyHash = Annotated[str, _matching(r"sha256:[0-9a-f]{64}", '"sha256:" and 64 digits, as `headway key new` prints it')]
LimitStorage = Annotated[
    str, _matching(r"memory|(redis|rediss|valkey|valkeys)://.+", '"memory" or a URL such as "redis://host:6379/0"')
]
DatabaseUrl = Annotated[
    str, _matching(r"(sqlite|postgresql(\+\w+)?)://.+", '"sqlite:///FILE" or "postgresql://USER:PASSWORD@HOST/NAME"')
]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ServerSettings(_Section):
    """keep_alive_s: seconds that an idle connection stays open. grace_s: seconds that running requests get at shutdown.
    allow_without_key: serve whoever comes, even if there are keys, and even on an address that other machines reach.
    default_max_tokens: output of requests that set no limit; None = to the end of the context.
    responses_mb, responses_hours: how much of stored responses is kept, and for how long."""

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8000, ge=0, le=65535)
    max_body_mb: float = Field(default=32, gt=0)
    default_max_tokens: int | None = Field(default=None, ge=1)
    keep_alive_s: float = Field(default=75, ge=0)
    cors_origins: tuple[str, ...] = Field(default=(), strict=False)
    grace_s: float = Field(default=30, ge=0)
    allow_without_key: bool = False
    responses_mb: float = Field(default=256, ge=0)
    responses_hours: float = Field(default=720, gt=0)


class ModelSettings(_Section):
    """name: what `headway serve` takes (known name, hf:..., path). id: the name in the API; None = derived from name.
    chat_template: a file that replaces the model's own. spark: a smaller model to serve beside it, as name; None = none.
    spark_id: its name in the API."""

    name: str | None = Field(default=None, min_length=1)
    id: str | None = Field(default=None, pattern=r"^[!-~]+$")
    chat_template: Path | None = Field(default=None, strict=False)
    spark: str | None = Field(default=None, min_length=1)
    spark_id: str | None = Field(default=None, pattern=r"^[!-~]+$")


class EngineSettings(_Section):
    """profile: "throughput" quantizes activations in larger groups, after the model was prepared for that. kv_memory: bytes of
    the KV cache; None = automatic. threads: None = as many as the machine has cores. draft_head: a file made by
    `headway draft-head`, "none", or "auto": the one that headway has for the model, if it has one. draft_model: a smaller model
    of the same vocabulary, as model.name, that guesses instead of a head."""

    name: Literal["openvino"] = "openvino"
    precision: Literal["f32", "bf16"] = "f32"
    kv_precision: Literal["f16", "f32", "u8"] = "f16"
    weights: Literal["int8", "as-loaded"] = "int8"
    profile: Literal["exact", "throughput"] = "exact"
    kv_memory: Bytes | None = None
    threads: int | None = Field(default=None, ge=1)
    draft_head: str = Field(default="auto", min_length=1)
    draft_model: str | None = Field(default=None, min_length=1)


class SchedulerSettings(_Section):
    """max_rows: seats of the standard mode. max_step_tokens: tokens in one step. fast_rows: fast requests beside a full house
    of standard ones that the paces are made for; more come in when the machine can hold their promises. max_fast_rows: fast
    requests at once, whatever it could hold; None = no limit.
    spark_share: of the device's time, left to a spark when the paces are
    made. margin: share of a pace kept in reserve. efficiency_floor: least share of the best tokens/s that a step may have.
    speculation: guess tokens ahead from a request's own text, where that pays; the text stays the same."""

    max_rows: int = Field(default=32, ge=1)
    max_step_tokens: int = Field(default=256, ge=1)
    fast_rows: int = Field(default=2, ge=1)
    max_fast_rows: int | None = Field(default=None, ge=1)
    spark_share: float = Field(default=0.25, gt=0, lt=1)
    margin: float = Field(default=0.3, ge=0, lt=1)
    efficiency_floor: float = Field(default=0.6, gt=0, le=1)
    speculation: bool = True


class StandardSettings(_Section):
    """pace: tokens/s promised to each request; None = measured at start-up. max_waiting: requests that may queue.
    ttft_ms: milliseconds to the first token that the scheduler aims at."""

    pace: PositiveFloat | None = None
    max_waiting: int = Field(default=256, ge=0)
    ttft_ms: PositiveFloat = 2_000


class FastSettings(_Section):
    """As for standard. speedup: the measured pace is at least this many times standard's."""

    pace: PositiveFloat | None = None
    max_waiting: int = Field(default=0, ge=0)
    ttft_ms: PositiveFloat = 300
    speedup: float = Field(default=2.5, gt=1)


class SparkSettings(_Section):
    """Of the model that `model.spark` names. pace: tokens/s promised to each of its requests; None = `speedup` times
    standard's. max_rows: its seats, as far as promises hold."""

    pace: PositiveFloat | None = None
    speedup: float = Field(default=5, gt=0)
    max_rows: int = Field(default=8, ge=1)
    max_waiting: int = Field(default=64, ge=0)
    ttft_ms: PositiveFloat = 500


class ModesSettings(_Section):
    standard: StandardSettings = StandardSettings()
    fast: FastSettings = FastSettings()
    spark: SparkSettings = SparkSettings()


class LimitSettings(_Section):
    """What one key may have of one mode in a minute; None = no limit of its own, 0 = nothing. input_tokens: of prompts.
    output_tokens: each request takes its max_tokens at its start and gives back at its end what it didn't use."""

    requests: int | None = Field(default=None, ge=0)
    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)


class LimitsSettings(_Section):
    """What every key may have that has no limits of its own. storage: "memory", or the URL of a Redis that several servers
    count in."""

    storage: LimitStorage = "memory"
    standard: LimitSettings = LimitSettings()
    fast: LimitSettings = LimitSettings()
    spark: LimitSettings = LimitSettings()


class KeySettings(_Section):
    """One API key, by its name. hash: of the key, as `headway key new` prints it. modes: those that it may ask for.
    standard, fast, spark: its limits; what isn't given is as in LimitsSettings."""

    hash: KeyHash
    modes: tuple[Literal["standard", "fast", "spark"], ...] = Field(default=("standard", "fast", "spark"), strict=False)
    standard: LimitSettings = LimitSettings()
    fast: LimitSettings = LimitSettings()
    spark: LimitSettings = LimitSettings()


class LedgerSettings(_Section):
    """url: of a database, such as "postgresql://user@host/name"; None = an SQLite file in headway's data folder."""

    enabled: bool = True
    url: DatabaseUrl | None = None


class MultiplierSettings(_Section):
    standard: float = Field(default=1, ge=0)
    fast: float = Field(default=6, ge=0)
    spark: float = Field(default=1, ge=0)


class PricesSettings(_Section):
    """Of a million tokens at standard; a mode's multiplier applies to all three. cached_input: None = as input."""

    currency: str = Field(default="USD", min_length=1)
    input: float = Field(default=0, ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    output: float = Field(default=0, ge=0)
    multiplier: MultiplierSettings = MultiplierSettings()


class Settings(_Section):
    """All settings. Made by load(); the command line's flags go on top with with_overrides()."""

    server: ServerSettings = ServerSettings()
    model: ModelSettings = ModelSettings()
    engine: EngineSettings = EngineSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    modes: ModesSettings = ModesSettings()
    limits: LimitsSettings = LimitsSettings()
    keys: dict[KeyName, KeySettings] = {}
    ledger: LedgerSettings = LedgerSettings()
    prices: PricesSettings = PricesSettings()

    def with_overrides(self, overrides: Mapping[str, Any], source: str = "the command line") -> Settings:
        """New settings with these values by dotted key (`{"server.port": 9000}`); None means not given, and is skipped.
        Raises UsageError."""
        tree = self.model_dump()
        for dotted, value in overrides.items():
            if value is not None:
                *sections, key = dotted.split(".")
                _descend(tree, sections)[key] = value
        return _validate(tree, source)


def load(path: Path | None = None) -> Settings:
    """Settings from a TOML file. Without a path: from ./headway.toml if there is one, else the defaults.

    A relative path of a chat template is taken from the file's folder. Raises UsageError that names file, key and value, or
    the line of a TOML error.
    """
    if path is None and not DEFAULT_FILE.is_file():
        return Settings()
    file = path or DEFAULT_FILE
    settings = _validate(_read(file), str(file))
    template = settings.model.chat_template
    if template is None:
        return settings
    return settings.with_overrides({"model.chat_template": file.parent / template.expanduser()}, str(file))


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{file} is not UTF-8 text (at line {line})") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from None


def _validate(tree: dict[str, Any], source: str) -> Settings:
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise UsageError(_explain(error.errors()[0], source)) from None


def _explain(error: ErrorDetails, source: str) -> str:
    place = [str(part) for part in error["loc"] if part != "[key]"]
    key = ".".join(place)
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place[-1], _keys(place[:-1]), n=1, cutoff=0.5)
        hint = f"did you mean {'.'.join([*place[:-1], near[0]])}?" if near else f"known here: {', '.join(_keys(place[:-1]))}"
        return f"{source}: unknown key {key}; {hint}"
    if error["type"] in ("model_type", "dict_type"):
        return f"{source}: {key} has to be a section, [{key}]"
    reason = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if error["type"] == "missing":
        return f"{source}: {key} is missing"
    if error["type"] == "value_error" and isinstance(error["input"], dict):
        return f"{source}: [{key}]: {reason}"
    value = "nothing" if error["input"] is None else repr(error["input"])
    return f"{source}: {key} is {value}; it should be {reason.removeprefix('expected ')}"


def _keys(sections: list[str]) -> list[str]:
    """What may stand in a section; below a mapping any name leads to the same."""
    section: Any = Settings
    for name in sections:
        section = get_args(section)[1] if get_origin(section) is dict else section.model_fields[name].annotation
    return list(section.model_fields)


def _descend(tree: dict[str, Any], sections: list[str]) -> dict[str, Any]:
    for name in sections:
        tree = tree.setdefault(name, {})
    return tree
