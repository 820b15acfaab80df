"""`headway pull` and `headway models`."""

from __future__ import annotations

import json

from rich.console import Console

from headway.catalog import listing
from headway.catalog.known import spark_of
from headway.catalog.pull import pull


def pull_command(name: str) -> None:
    """Pull a model, and its spark if it has one, and say what came. Raises ModelError or UsageError, with one line."""
    spark = spark_of(name)
    for each in [name] if spark is None else [name, spark]:
        model = pull(each)
        licence = f", {model.licence}" if model.licence else ""
        print(f"{model.id}: {model.size / 1e6:,.0f} MB, context {model.context_length}{licence}, in {model.path}")


def models_command(as_json: bool) -> None:
    """Print the models that can be pulled and those that are here, as a table or as JSON."""
    models = listing.rows()
    if as_json:
        print(json.dumps(listing.as_json(models), indent=2))
        return
    Console().print(listing.as_table(models))
