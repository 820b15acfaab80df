"""Suites of tasks with programmatic checks. Adding one: a file with a `SUITE`, and its line here."""

from __future__ import annotations

from headway.compare.suites import (
    arithmetic,
    bfcl,
    chain,
    classification,
    code_editing,
    extraction,
    irrelevance,
    json_schema,
    many_tools,
    parallel_calls,
    single_call,
    transformation,
)
from headway.compare.suites.task import Suite

SUITES: tuple[Suite, ...] = (
    extraction.SUITE,
    classification.SUITE,
    arithmetic.SUITE,
    transformation.SUITE,
    json_schema.SUITE,
    code_editing.SUITE,
    single_call.SUITE,
    parallel_calls.SUITE,
    many_tools.SUITE,
    irrelevance.SUITE,
    chain.SUITE,
    bfcl.SUITE,
)
