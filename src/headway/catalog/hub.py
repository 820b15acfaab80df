"""Models on the Hugging Face Hub: `hf:ORG/REPO` and `hf:ORG/REPO:FILE`.

FILE is a GGUF in the repository, or a folder of it that holds an OpenVINO IR (`.` for its root). Without FILE the repository
has to hold exactly one of either. Downloads resume, show their progress and honour HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE:
that is huggingface_hub's work. They lie in headway's own models folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, OfflineModeIsEnabled, RepositoryNotFoundError

from headway.catalog.home import models_dir
from headway.errors import ModelError, UsageError

PREFIX = "hf:"
_IR_MODEL = "openvino_model.xml"
_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_NOT_MODELS = ("mmproj", "imatrix")  # GGUFs that go with a model


@dataclass(frozen=True, slots=True)
class HubName:
    """repo: ORG/REPO; file: path within it, or None."""

    repo: str
    file: str | None

    @classmethod
    def parse(cls, name: str) -> HubName:
        """Raises UsageError."""
        repo, _, file = name.removeprefix(PREFIX).partition(":")
        if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", repo, re.ASCII):
            raise UsageError(f"{name!r} is not a name on the hub: write hf:ORG/REPO or hf:ORG/REPO:FILE")
        if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts:
            raise UsageError(f"{name!r}: the part after the second colon has to be a path within the repository")
        return cls(repo, file or None)

    def __str__(self) -> str:
        return f"{PREFIX}{self.repo}:{self.file}" if self.file else f"{PREFIX}{self.repo}"


def fetch(name: HubName) -> Path:
    """The GGUF file or IR folder, downloaded if it is not there or there is a newer one. Raises ModelError."""
    try:
        siblings = HfApi().model_info(name.repo).siblings or []
        return _download(name, choose(name, [sibling.rfilename for sibling in siblings]))
    except ModelError:
        raise
    except Exception as error:  # huggingface_hub raises its own errors, its HTTP client's and the system's
        raise ModelError(_explain(name, error)) from None


def find_pulled(name: HubName) -> Path | None:
    """The download of it that lies here, found without the network; None if there is none, or several to choose from."""
    pulled = [path for hub_name, path in list_pulled() if hub_name.repo == name.repo and name.file in (None, hub_name.file)]
    return pulled[0] if len(pulled) == 1 else None


def list_pulled() -> list[tuple[HubName, Path]]:
    """Every GGUF and IR folder downloaded from the hub. Each file is whole: huggingface_hub names them when they are."""
    found = []
    for folder in sorted(_cache().glob("models--*--*")):
        repo = folder.name.removeprefix("models--").replace("--", "/", 1)
        snapshot = _current_snapshot(folder)
        if snapshot is None:
            continue
        files = [path.relative_to(snapshot).as_posix() for path in sorted(snapshot.rglob("*")) if path.is_file()]
        found += [(HubName(repo, item), snapshot / item) for item in _models_among(files)]
    return found


def choose(name: HubName, files: Iterable[str]) -> str:
    """Which model of the repository's files is meant. Raises ModelError, listing them if it is open."""
    files = list(files)
    if name.file is not None and _PART.search(name.file):
        raise ModelError(f"{name} is one part of a model in several: headway serves models of one file")
    models = _models_among(files)
    if name.file is not None:
        if name.file in models:
            return name.file
        raise ModelError(f"{name}: there is no such model in {name.repo}; it holds {_listing(models)}")
    if len(models) == 1:
        return models[0]
    if not models:
        parts = " (only one split into parts)" if any(_PART.search(file) for file in files) else ""
        raise ModelError(f"{name.repo} holds no GGUF file and no OpenVINO model{parts}")
    raise ModelError(f"{name.repo} holds several models: add :FILE, one of {_listing(models)}")


def _models_among(files: Iterable[str]) -> list[str]:
    models = []
    for file in files:
        path = PurePosixPath(file)
        if path.name == _IR_MODEL:
            models.append(str(path.parent))
        elif path.suffix == ".gguf" and not _PART.search(file) and not any(word in path.name for word in _NOT_MODELS):
            models.append(file)
    return models


def _download(name: HubName, item: str) -> Path:
    if item.endswith(".gguf"):
        return Path(hf_hub_download(name.repo, item, cache_dir=_cache()))
    folder = "" if item == "." else f"{item}/"
    patterns = [f"{folder}openvino_*", f"{folder}*.json", f"{folder}*.jinja", "README.md"]
    return Path(snapshot_download(name.repo, allow_patterns=patterns, cache_dir=_cache())) / item


def _current_snapshot(folder: Path) -> Path | None:
    try:
        snapshot = folder / "snapshots" / (folder / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return snapshot if snapshot.is_dir() else None


def _cache() -> Path:
    return models_dir() / "hub"


def _listing(models: list[str]) -> str:
    return ", ".join(sorted(models)) or "none"


def _explain(name: HubName, error: Exception) -> str:
    if isinstance(error, GatedRepoError):
        return f"{name.repo} is gated: accept its terms on its page, then set HF_TOKEN to a token of your account"
    if isinstance(error, RepositoryNotFoundError):
        return f"there is no repository {name.repo} on the hub (a private one needs HF_TOKEN)"
    if isinstance(error, OfflineModeIsEnabled):
        return f"{name} is not here, and HF_HUB_OFFLINE forbids to download it"
    if isinstance(error, HfHubHTTPError) and error.response is not None:
        return f"{name} could not be pulled: the hub answered {error.response.status_code}"
    reason = " ".join(str(error).split()) or type(error).__name__
    return f"{name} could not be pulled: {reason}"
