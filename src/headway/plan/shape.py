"""What a planner has to know of a model: its tensors' sizes, how many weights a token uses, what it keeps in the KV cache."""

from __future__ import annotations

from dataclasses import dataclass, replace

MATRICES_OF_MLP = 3  # gate, up and down: every architecture read here has a gated MLP
_ROUTER_BITS = 16.0  # routers, norms and the like are never quantized; of these only routers are large enough to count


@dataclass(frozen=True, slots=True)
class Mla:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): one latent of kv_rank and one rope part a token and layer.

    q_rank: 0 without a low-rank query. index_*: the lightning indexer of DeepSeek sparse attention, 0 without; a query then
    attends to index_topk tokens, chosen by reading an index key of index_dim of every token.
    """

    kv_rank: int
    q_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    index_heads: int = 0
    index_dim: int = 0
    index_topk: int = 0


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts: `active` of `total` a token in each of `layers`, `width` wide; `shared_width` always runs."""

    total: int
    active: int
    width: int
    layers: int
    shared_width: int = 0


@dataclass(frozen=True, slots=True)
class Linear:
    """Layers of linear attention (gated delta net): a state of fixed size for each request instead of a KV cache."""

    layers: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class Bits:
    """Bits a weight takes, by kind of tensor, scales and zero points included; and a value in the KV cache.

    integer: weights of 4 bits are integers (GPTQ, AWQ, GGUF), which are multiplied in 16 bits on every chip.
    """

    attention: float = 16.0
    mlp: float = 16.0
    experts: float = 16.0
    head: float = 16.0  # the output matrix and the table of embeddings
    kv: float = 16.0
    integer: bool = False


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder. `heads` x `head_dim` queries, `kv_heads` keys and values; `window_layers` of
    `layers` look back `window` tokens.

    weight_sum: bytes of all tensors where a file says so exactly (a GGUF), else 0 and they are computed.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool = False
    gated_attention: bool = False
    window: int = 0
    window_layers: int = 0
    mla: Mla | None = None
    experts: Experts | None = None
    linear: Linear | None = None
    bits: Bits = Bits()
    context: int = 0
    weight_sum: int = 0

    def with_bits(self, bits: Bits) -> ModelShape:
        """The same model in another precision."""
        return replace(self, bits=bits, weight_sum=0)

    @property
    def attention_layers(self) -> int:
        """Layers with a KV cache, windowed or full."""
        return self.layers - (self.linear.layers if self.linear else 0)

    @property
    def attention_weights(self) -> int:
        """Weights of all attention (and linear attention) projections."""
        return self.attention_layers * self._attention_of_layer() + self._linear_weights()

    @property
    def mlp_weights(self) -> int:
        """Weights of dense MLPs and shared experts, which every token uses."""
        moe = self.experts
        dense = (self.layers - (moe.layers if moe else 0)) * self.intermediate
        shared = moe.layers * moe.shared_width if moe else 0
        return MATRICES_OF_MLP * self.hidden * (dense + shared)

    @property
    def expert_weights(self) -> int:
        """Weights of all routed experts."""
        moe = self.experts
        return MATRICES_OF_MLP * self.hidden * moe.width * moe.total * moe.layers if moe else 0

    @property
    def router_weights(self) -> int:
        return self.experts.layers * self.experts.total * self.hidden if self.experts else 0

    @property
    def head_weights(self) -> int:
        """Weights of the output matrix, which every step reads whole; the table of embeddings is as large unless tied."""
        return self.vocabulary * self.hidden

    @property
    def total_weights(self) -> int:
        """Parameters in all."""
        tables = self.head_weights * (1 if self.tied else 2)
        return self.attention_weights + self.mlp_weights + self.expert_weights + self.router_weights + tables

    @property
    def active_weights(self) -> int:
        """Parameters that one token is multiplied with (the output matrix counted, the table of embeddings not)."""
        moe = self.experts
        routed = self.expert_weights * moe.active // moe.total if moe else 0
        return self.attention_weights + self.mlp_weights + routed + self.router_weights + self.head_weights

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights in memory."""
        if self.weight_sum:
            return float(self.weight_sum)
        tables = self.head_weights * (1 if self.tied else 2) * self.bits.head / 8
        return self.dense_bytes - self.head_weights * self.bits.head / 8 + self.expert_bytes + tables

    @property
    def dense_bytes(self) -> float:
        """Bytes that every step reads whatever its rows: attention, dense MLPs, shared experts, routers, output matrix."""
        bits = self.bits
        read = self.attention_weights * bits.attention + self.mlp_weights * bits.mlp + self.head_weights * bits.head
        return (read + self.router_weights * _ROUTER_BITS) / 8 * self._scale()

    @property
    def expert_bytes(self) -> float:
        """Bytes of all routed experts."""
        return self.expert_weights * self.bits.experts / 8 * self._scale()

    @property
    def kv_values(self) -> int:
        """Values a token adds to the cache in one layer."""
        if self.mla is not None:
            return self.mla.kv_rank + self.mla.rope_dim + self.mla.index_dim
        return 2 * self.kv_heads * self.head_dim

    @property
    def kv_bytes(self) -> float:
        """KV cache bytes of one token over all layers, before any window cuts it off."""
        return self.attention_layers * self.kv_values * self.bits.kv / 8

    def kv_bytes_of(self, tokens: float) -> float:
        """KV cache bytes of a request of so many tokens: windowed layers keep at most their window, linear ones a state."""
        full = self.attention_layers - self.window_layers
        kept = full * tokens + self.window_layers * min(tokens, self.window)
        return kept * self.kv_values * self.bits.kv / 8 + self.state_bytes

    def kv_read_of(self, tokens: float) -> float:
        """Bytes that a row of so many tokens reads in a step; sparse attention reads every index key but few latents."""
        mla = self.mla
        if mla is None or not mla.index_topk:
            return self.kv_bytes_of(tokens)
        values = tokens * mla.index_dim + min(tokens, mla.index_topk) * (mla.kv_rank + mla.rope_dim)
        return self.layers * values * self.bits.kv / 8

    @property
    def state_bytes(self) -> float:
        """Bytes of a request's linear attention state (kept in 32 bits)."""
        linear = self.linear
        return linear.layers * linear.value_heads * linear.key_dim * linear.value_dim * 4.0 if linear else 0.0

    @property
    def attention_flops(self) -> float:
        """Multiply-adds x 2 of one query with one cached token, over the layers that look at all of them."""
        full = self.attention_layers - self.window_layers
        if self.mla is not None:
            return 2.0 * full * self.heads * (2 * self.mla.kv_rank + self.mla.rope_dim)
        return 4.0 * full * self.heads * self.head_dim

    def experts_touched(self, tokens: float) -> float:
        """Distinct experts of a layer that `tokens` independent tokens use: E (1 - (1 - k/E)^tokens)."""
        moe = self.experts
        if moe is None:
            return 0.0
        return float(moe.total * (1.0 - (1.0 - moe.active / moe.total) ** tokens))

    def _attention_of_layer(self) -> int:
        mla = self.mla
        if mla is None:
            queries = self.heads * self.head_dim
            return self.hidden * (queries * (3 if self.gated_attention else 2) + 2 * self.kv_heads * self.head_dim)
        query_dim = self.heads * (mla.nope_dim + mla.rope_dim)
        query = self.hidden * mla.q_rank + mla.q_rank * query_dim if mla.q_rank else self.hidden * query_dim
        latent = self.hidden * (mla.kv_rank + mla.rope_dim) + mla.kv_rank * self.heads * (mla.nope_dim + mla.value_dim)
        index = mla.q_rank * mla.index_heads * mla.index_dim + self.hidden * (mla.index_dim + mla.index_heads)
        return query + latent + self.heads * mla.value_dim * self.hidden + (index if mla.index_topk else 0)

    def _linear_weights(self) -> int:
        linear = self.linear
        if linear is None:
            return 0
        keys, values = linear.key_heads * linear.key_dim, linear.value_heads * linear.value_dim
        return linear.layers * self.hidden * (2 * keys + 3 * values + 2 * linear.value_heads)

    def _scale(self) -> float:
        """What a file's exact sum says over the computed one: 1 unless there is such a sum."""
        if not self.weight_sum:
            return 1.0
        plain = replace(self, weight_sum=0)
        return self.weight_sum / plain.weight_bytes
