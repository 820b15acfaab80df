"""Bodies that are in no dialect, and what the shapes of all dialects have in common."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """Documents what is sent; the tests hold the bytes against it."""

    model_config = ConfigDict(extra="forbid")


class Health(Shape):
    status: Literal["ok", "draining", "failed"]


class Root(Shape):
    name: Literal["headway"]
    version: str
    models: list[str]
