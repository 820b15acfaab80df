"""Constraints to grammars over a model's tokens."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from threading import Lock

from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper

from headway.grammar.constraint import Constraint
from headway.grammar.errors import ConstraintError
from headway.grammar.matcher import Matcher, one_line

KEPT = 128
"""Compiled grammars that are kept; of an ordinary schema one has some hundred kilobytes."""
FORCED_CHARS = 128
"""Of forced text so much is tokenized at a time: more than a step's drafts are."""
_ONE_OF = "'oneOf' is only supported where no value can fit two of its schemas; use anyOf"

_LIMITS = LLParserLimits(
    initial_lexer_fuel=500_000,
    step_lexer_fuel=100_000,
    step_max_items=20_000,
    max_lexer_states=50_000,
    max_grammar_size=100_000,
    verbose_errors=False,
)
"""They bound the time to compile (about a second at the worst) and that of a mask (10 ms)."""


class Grammar:
    """A compiled constraint; start() gives a request its own place in it."""

    def __init__(self, native: LLMatcher, vocab_size: int, eos_ids: Sequence[int]) -> None:
        self._native = native
        self._vocab_size = vocab_size
        self._eos_ids = eos_ids

    def start(self) -> Matcher:
        """At the beginning of an output. Takes microseconds."""
        return Matcher(self._native, self._vocab_size, self._eos_ids)


class Compiler:
    """For one model's tokens. token_bytes: what each stands for, b"" for special ones; encode: the model's own way to cut a
    text into tokens, by which forced text is cut too."""

    def __init__(self, token_bytes: Sequence[bytes], eos_ids: Collection[int], encode: Callable[[str], list[int]]) -> None:
        self._token_bytes = token_bytes
        self._eos_ids = sorted(eos_ids)
        self._encode = encode
        self._kept: OrderedDict[Constraint, Grammar] = OrderedDict()
        self._asked: OrderedDict[bytes, Grammar] = OrderedDict()
        self._lock = Lock()
        self.worker = ThreadPoolExecutor(1, "headway-grammar")
        """Where to compile: one at a time, beside the event loop, so that a costly one takes no more than one core."""

    def recall(self, asked: bytes) -> Grammar | None:
        """What `remember` was told of the same request for a constraint: in microseconds, so without a thread."""
        grammar = self._asked.get(asked)
        if grammar is not None:
            self._asked.move_to_end(asked)
        return grammar

    def remember(self, asked: bytes, grammar: Grammar) -> None:
        self._asked[asked] = grammar
        if len(self._asked) > KEPT:
            self._asked.popitem(last=False)

    def kept(self, constraint: Constraint) -> Grammar | None:
        """The grammar, if it has been compiled."""
        with self._lock:
            grammar = self._kept.get(constraint)
            if grammar is not None:
                self._kept.move_to_end(constraint)
            return grammar

    def compile(self, constraint: Constraint) -> Grammar:
        """Takes a millisecond as a rule, and up to a second. Raises ConstraintError."""
        grammar = self.kept(constraint)
        if grammar is None:
            grammar = self._compile(constraint)
            with self._lock:
                self._kept[constraint] = grammar
                if len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return grammar

    def _compile(self, constraint: Constraint) -> Grammar:
        native = LLMatcher(self._tokens, LLMatcher.grammar_from_lark(constraint.lark), log_level=0, limits=_LIMITS)
        if native.is_error():
            told = one_line(native.get_error())
            raise ConstraintError(_ONE_OF if told.startswith("oneOf constraints") else told)
        grammar = Grammar(native, len(self._token_bytes), self._eos_ids)
        first = grammar.start()
        first.prepare(())  # whatever is too large for a mask shows here
        if first.failure:
            raise ConstraintError(f"the constraint is too complex, or nothing fits it: {first.failure}")
        return grammar

    @cached_property
    def _tokens(self) -> LLTokenizer:
        vocabulary = TokenizerWrapper(_Vocabulary(self._token_bytes, self._eos_ids, self._encode))
        return LLTokenizer(vocabulary, n_vocab=len(self._token_bytes), eos_token=self._eos_ids)


class _Vocabulary:
    """As the library wants it. Forced text is tokenized over and over, the same pieces each time."""

    def __init__(self, token_bytes: Sequence[bytes], eos_ids: Sequence[int], encode: Callable[[str], list[int]]) -> None:
        self.tokens = token_bytes
        self.eos_token_id = eos_ids[0]
        self.bos_token_id = None
        self.special_token_ids = [token for token, text in enumerate(token_bytes) if not text]
        self._encode = lru_cache(1 << 16)(encode)

    def __call__(self, text: bytes) -> list[int]:
        return self._encode(text.decode("utf-8", "ignore")[:FORCED_CHARS])
