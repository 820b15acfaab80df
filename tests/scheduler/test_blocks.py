"""The block pool: nothing leaks, prefixes are found again, and no two prefixes are mistaken for each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scheduler.blocks import BlockPool


def hold(pool: BlockPool, tokens: list[int]) -> tuple[list[int], int]:
    """Take blocks for all of `tokens` as the scheduler does; returns (blocks, how many of them came from the cache)."""
    blocks, key = pool.match(tokens)
    found = len(blocks)
    more = pool.allocate(-(-len(tokens) // pool.block_size) - found)
    assert more is not None
    blocks += more
    for at in range(found, len(tokens) // pool.block_size):
        key = pool.seal(blocks[at], key, tokens[at * pool.block_size : (at + 1) * pool.block_size])
    return blocks, found


def beginnings(pool: BlockPool) -> set[tuple[int, tuple[int, ...]]]:
    """(parent key, first tokens) of all cached blocks, by going through them."""
    return {(key, tokens[:n]) for key, tokens in pool._entries.values() for n in range(1, pool.block_size)}


def test_a_prefix_is_found_again_while_held_and_after_release() -> None:
    pool = BlockPool(8, 4)
    tokens = list(range(10))
    first, found = hold(pool, tokens)
    assert found == 0
    second, found = hold(pool, tokens)
    assert found == 2
    assert second[:2] == first[:2]
    assert second[2] != first[2]
    pool.release(first)
    pool.release(second)
    assert pool.num_free == 8
    _, found = hold(pool, tokens)
    assert found == 2


def test_the_last_token_is_never_taken_from_the_cache() -> None:
    pool = BlockPool(8, 4)
    blocks, _ = hold(pool, list(range(8)))
    pool.release(blocks)
    assert len(pool.match(list(range(8)))[0]) == 1


def test_the_same_block_after_another_prefix_is_another_block() -> None:
    pool = BlockPool(8, 2)
    pool.release(hold(pool, [1, 2, 9, 9, 0])[0])
    assert len(pool.match([3, 4, 9, 9, 0])[0]) == 0


def test_least_recently_used_content_goes_first() -> None:
    pool = BlockPool(4, 2)
    old, _ = hold(pool, [1, 1, 0])
    new, _ = hold(pool, [2, 2, 0])
    pool.release(old)
    pool.release(new)
    taken = pool.allocate(3)
    assert taken is not None
    assert len(pool.match([1, 1, 0])[0]) == 0
    assert len(pool.match([2, 2, 0])[0]) == 1


def test_too_much_is_refused_without_a_change() -> None:
    pool = BlockPool(3, 4)
    assert pool.allocate(4) is None
    assert pool.num_free == 3


def test_a_block_released_twice_is_noticed() -> None:
    pool = BlockPool(3, 4)
    blocks = pool.allocate(1)
    assert blocks is not None
    pool.release(blocks)
    with pytest.raises(ValueError, match="more often"):
        pool.release(blocks)


def test_the_beginning_of_a_block_is_found_after_the_same_prefix_only() -> None:
    pool = BlockPool(8, 32)
    first, _ = hold(pool, list(range(64)))
    _, key = pool.match(list(range(33)))
    assert pool.match_head(pool.ROOT, [*range(24), 900, 901]) == (first[0], 24)
    assert pool.match_head(pool.ROOT, [*range(19), 900, 901]) == (first[0], 19)
    assert pool.match_head(pool.ROOT, [*range(7), 900, 901]) is None, "too little to copy"
    assert pool.match_head(key, [*range(32, 50), 900]) == (first[1], 18)
    assert pool.match_head(pool.ROOT, [*range(32, 50), 900]) is None
    assert pool.match_head(key, [*range(50)]) is None


def test_a_copied_beginning_is_short_of_the_last_token_and_of_a_block() -> None:
    pool = BlockPool(8, 32)
    first, _ = hold(pool, list(range(64)))
    assert pool.match_head(pool.ROOT, list(range(20))) == (first[0], 19)
    assert pool.match_head(pool.ROOT, list(range(32))) == (first[0], 31)
    assert pool.match_head(pool.ROOT, list(range(60))) == (first[0], 31)
    assert pool.match_head(pool.ROOT, list(range(9))) == (first[0], 8)
    assert pool.match_head(pool.ROOT, list(range(8))) is None
    assert pool.match_head(pool.ROOT, []) is None


def test_the_longer_beginning_is_better_than_the_later_block() -> None:
    pool = BlockPool(8, 32)
    long, _ = hold(pool, list(range(32)))
    late, _ = hold(pool, [*range(12), *range(500, 520)])
    pool.check()
    assert pool.match_head(pool.ROOT, [*range(30), 900]) == (long[0], 30)
    assert pool.match_head(pool.ROOT, [*range(13), 900]) == (late[0], 12)
    pool.release(late)
    pool.release(long)
    assert pool.allocate(7) is not None  # late's goes first
    pool.check()
    assert pool.match_head(pool.ROOT, [*range(13), 900]) == (long[0], 13), "another one steps in for the one that went"


def test_a_block_that_was_copied_from_is_recently_used() -> None:
    pool = BlockPool(2, 32)
    old, _ = hold(pool, list(range(32)))
    new, _ = hold(pool, list(range(100, 132)))
    pool.release(old)
    pool.release(new)
    assert pool.match_head(pool.ROOT, list(range(10))) == (old[0], 9)
    assert pool.allocate(1) == new


@given(st.lists(st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.integers(0, 5)), max_size=40))
def test_the_books_add_up_over_any_history(history: list[tuple[list[int], int]]) -> None:
    pool = BlockPool(10, 3)
    held: list[list[int]] = []
    for tokens, victim in history:
        matched, key = pool.match(tokens)
        rest = tokens[3 * len(matched) :]
        alike = [length for length in (1, 2) if length < len(rest) and (key, tuple(rest[:length])) in beginnings(pool)]
        head = pool.match_head(key, rest)
        assert (head[1] if head else 0) == max(alike, default=0)
        pool.release(matched)
        if -(-len(tokens) // 3) <= pool.num_free:
            held.append(hold(pool, tokens)[0])
        elif held:
            pool.release(held.pop(victim % len(held)))
        pool.check()
    for blocks in held:
        pool.release(blocks)
    pool.check()
    assert pool.num_free == pool.num_blocks
