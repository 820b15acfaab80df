"""The KV block pool and the prefix cache in it, shared by all modes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

Entry = tuple[int, tuple[int, ...]]
"""(key of the block before, tokens)"""
Siblings = dict[tuple[int, ...], tuple[int, int]]
"""Tokens -> (key, block), latest last, of the blocks after the same one."""
Heads = dict[tuple[int, ...], dict[int, None]]
"""First tokens -> blocks that begin so, latest last."""


@dataclass(frozen=True, slots=True)
class BlockCopy:
    """The KV of the first `num_tokens` of block `source`, to be put into block `destination` as well."""

    source: int
    destination: int
    num_tokens: int


class BlockPool:
    """Blocks of `block_size` tokens, counted by reference; content that nobody holds any more stays findable until its block is
    needed again (least recently used first).

    A cached block is found by (key of the block before it, its own tokens): the comparison is of the tokens themselves, never
    of a hash alone, so two different prefixes can't be mistaken for each other.

    Whole blocks are shared. Where a prefix goes on into the middle of a cached block, that block is found by its first quarter,
    half or three quarters, to be copied from (in blocks of fewer than 8 tokens by any beginning).
    """

    ROOT = 0
    QUARTERS = 4

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._blank = list(range(num_blocks - 1, -1, -1))
        self._idle: OrderedDict[int, None] = OrderedDict()  # unreferenced, content still findable, oldest first
        self._references = [0] * num_blocks
        self._children: dict[int, Siblings] = {}  # by parent key
        self._entries: dict[int, Entry] = {}  # block -> where it is in _children
        quarter = max(1, block_size // self.QUARTERS)
        self._head_lengths = range(quarter, block_size, quarter)
        self._heads: dict[int, Heads] = {}  # parent key -> index of its blocks by their beginnings, once it was asked for
        self._keys = count(1)

    @property
    def num_free(self) -> int:
        """Blocks that can be allocated now."""
        return len(self._blank) + len(self._idle)

    @property
    def num_cached(self) -> int:
        """Unreferenced blocks whose content can still be found."""
        return len(self._idle)

    def allocate(self, n: int) -> list[int] | None:
        """n blocks with one reference each, or None (and no change) if there aren't so many."""
        if n > len(self._blank) + len(self._idle):
            return None
        blocks = []
        for _ in range(n):
            if self._blank:
                block = self._blank.pop()
            else:
                block, _ = self._idle.popitem(last=False)
                self._forget(block)
            self._references[block] = 1
            blocks.append(block)
        return blocks

    def release(self, blocks: Sequence[int]) -> None:
        """Give up one reference to each. The end of a prefix goes first when memory is needed: it is of use to fewer."""
        for block in reversed(blocks):
            self._references[block] -= 1
            if self._references[block] < 0:
                raise ValueError(f"block {block} released more often than it was taken")
            if self._references[block] == 0:
                if block in self._entries:
                    self._idle[block] = None
                else:
                    self._blank.append(block)

    def match(self, tokens: Sequence[int]) -> tuple[list[int], int]:
        """The longest cached run of whole blocks at the head of `tokens`, short of the last token (which has to be computed to
        get logits). Returns the blocks, each with a reference taken, and the key of the last one."""
        blocks: list[int] = []
        key = self.ROOT
        for start in range(0, len(tokens) - self.block_size, self.block_size):
            siblings = self._children.get(key)
            if siblings is None:
                break
            found = siblings.get(tuple(tokens[start : start + self.block_size]))
            if found is None:
                break
            key, block = found
            if self._references[block] == 0:
                del self._idle[block]
            self._references[block] += 1
            blocks.append(block)
        return blocks, key

    def match_head(self, key: int, tokens: Sequence[int]) -> tuple[int, int] | None:
        """Where the beginning of the next block can be copied from. key: of the last block that `match` found; tokens: those
        after it. Returns (block, tokens to copy: short of a whole block and of the last token); None for less than a quarter.

        No search: of the blocks alike by the longest of the indexed beginnings it is the latest, so less than a quarter of a
        block is lost to the best of them. No reference is taken: the block may be handed out again, which is no harm if the
        copies are made in the order in which they were planned and before anything else is written.
        """
        heads = self._heads_after(key)
        if not heads:
            return None
        wanted = tuple(tokens[: min(len(tokens), self.block_size) - 1])
        for length in reversed(self._head_lengths):
            alike = heads.get(wanted[:length]) if length <= len(wanted) else None
            if alike:
                block = next(reversed(alike))
                if block in self._idle:
                    self._idle.move_to_end(block)
                return block, _num_alike(wanted, self._entries[block][1])
        return None

    def seal(self, block: int, parent_key: int, tokens: Sequence[int]) -> int:
        """Make a fully computed block findable; returns its key. If the same content is known already, that entry stays and its
        key is returned (the block given is then simply freed at its end)."""
        content = tuple(tokens)
        key = next(self._keys)
        siblings = self._children.get(parent_key)
        if siblings is None:
            self._children[parent_key] = {content: (key, block)}
        else:
            known, _ = siblings.setdefault(content, (key, block))
            if known != key:
                return known
        self._entries[block] = parent_key, content
        if parent_key in self._heads:
            self._index(self._heads[parent_key], block)
        return key

    def _forget(self, block: int) -> None:
        parent_key, tokens = self._entries.pop(block)
        siblings = self._children[parent_key]
        if len(siblings) == 1:
            del self._children[parent_key]
            self._heads.pop(parent_key, None)
            return
        del siblings[tokens]
        if parent_key in self._heads:
            heads = self._heads[parent_key]
            for length in self._head_lengths:
                alike = heads[tokens[:length]]
                del alike[block]
                if not alike:
                    del heads[tokens[:length]]

    def _heads_after(self, key: int) -> Heads | None:
        """The index of the blocks after the one with this key: made when it is first asked for, as most never are."""
        heads = self._heads.get(key)
        if heads is None and key in self._children:
            heads = self._heads[key] = {}
            for _, block in self._children[key].values():
                self._index(heads, block)
        return heads

    def _index(self, heads: Heads, block: int) -> None:
        tokens = self._entries[block][1]
        for length in self._head_lengths:
            heads.setdefault(tokens[:length], {})[block] = None

    def check(self) -> None:
        """Raise AssertionError if the books don't add up (used by tests)."""
        held = sum(1 for n in self._references if n > 0)
        assert held + len(self._blank) + len(self._idle) == self.num_blocks, "blocks leaked"
        assert len(set(self._blank)) == len(self._blank), "a block is free twice"
        assert not set(self._blank) & set(self._idle), "a block is blank and cached at once"
        assert all(self._references[b] == 0 for b in (*self._blank, *self._idle)), "a referenced block is free"
        assert all(self._children.values()), "a parent of nobody"
        assert sum(map(len, self._children.values())) == len(self._entries), "the prefix cache disagrees with itself"
        assert all(self._children[key][tokens][1] == block for block, (key, tokens) in self._entries.items())
        for key, heads in self._heads.items():
            fresh: Heads = {}
            for _, block in self._children[key].values():
                self._index(fresh, block)
            assert heads == fresh, "the index of beginnings is wrong"


def _num_alike(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens `a` and `b` have in common at their beginning."""
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n
