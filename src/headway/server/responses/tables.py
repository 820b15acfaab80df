"""The table of kept responses, in the ledger's database. New columns have to be nullable. (Imports SQLAlchemy.)"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

metadata = MetaData()

responses = Table(
    "headway_responses",
    metadata,
    Column("n", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),  # the older, the smaller
    Column("owner", String(64), nullable=False),  # whose it is: a key's name, or what stands for a caller without one
    Column("id", String(64), nullable=False),
    Column("until", Float, nullable=False, index=True),  # Unix seconds
    Column("size", Integer, nullable=False),  # bytes
    Column("response", Text, nullable=False),  # JSON, as answered
    Column("input", Text, nullable=False),  # JSON, the items that it was made from
    UniqueConstraint("owner", "id"),
    Index("headway_responses_sizes", "owner", "size"),
)
