"""The ledger's tables. New columns have to be nullable: old databases get them added, empty. (Imports SQLAlchemy.)"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, Float, Integer, MetaData, String, Table

VERSION = 1
"""To be raised by what adding columns can't do."""

metadata = MetaData()

schema = Table("headway_schema", metadata, Column("version", Integer, primary_key=True, autoincrement=False))

requests = Table(
    "headway_requests",
    metadata,
    Column("n", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", String(64), nullable=False, index=True),  # the answer's x-request-id
    Column("time", DateTime, nullable=False, index=True),  # of arrival, UTC
    Column("key", String(64), nullable=False),  # the key's name, "" without one
    Column("dialect", String(16), nullable=False),
    Column("endpoint", String(64), nullable=False),
    Column("model", String(255), nullable=False),
    Column("requested_mode", String(16), nullable=False),
    Column("served_mode", String(16), nullable=False),  # also the one that is billed
    Column("outcome", String(16), nullable=False),  # stop, length, cancelled, error, refused
    Column("prompt_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),  # part of prompt_tokens
    Column("output_tokens", Integer, nullable=False),
    Column("drafted_tokens", Integer, nullable=False),
    Column("accepted_tokens", Integer, nullable=False),  # part of output_tokens
    Column("ttft", Float),  # seconds; null if there was no token
    Column("tpot", Float),  # seconds; null if there was no second token
    Column("attainment", Float),  # null if no token had a deadline
    Column("engine_seconds", Float, nullable=False),
    Column("price_nano", BigInteger, nullable=False),  # 10**-9 of the currency
)
