"""The models that are served, by the names that requests have for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headway.errors import RequestError, UsageError
from headway.runtime.served import ServedModel
from headway.server.body import show

FAST_SUFFIX = "-fast"


@dataclass(frozen=True, slots=True)
class Named:
    """What a request's `model` stands for. fast: it is the alias for the model's fast mode."""

    name: str
    served: ServedModel
    fast: bool


class Models:
    """The first is the main one. Each goes by its id, and by `ID-fast` where it has a fast mode."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        """Raises UsageError if two have the same name."""
        self._models = tuple(models)
        self._named: dict[str, Named] = {}
        for served in models:
            aliases = [] if served.modes.fast is None else [Named(served.id + FAST_SUFFIX, served, True)]
            for named in (Named(served.id, served, False), *aliases):
                if named.name in self._named:
                    raise UsageError(
                        f"two models can't both be {named.name} in the API; give another model.id or model.spark_id"
                    )
                self._named[named.name] = named

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models)

    @property
    def main(self) -> ServedModel:
        return self._models[0]

    @property
    def named(self) -> list[Named]:
        """All there are, the main model's first."""
        return list(self._named.values())

    def find(self, name: str) -> Named:
        """Raises RequestError 404 that lists them all."""
        named = self._named.get(name)
        if named is None:
            raise RequestError(
                404,
                f"The model {show(name)} does not exist. Available: {', '.join(self._named)}.",
                code="model_not_found",
                param="model",
            )
        return named
