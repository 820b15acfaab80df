"""A draft head while it is trained: the network of engines/draft_head.py, in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)

from headway.engines.draft_head import EPSILON, Block, DraftHead
from headway.engines.graph import Ends

Tensor = Any
INNER = 1536
"""Width of the feed-forward layer beside a hidden size of 576; others have it in proportion."""
FIRST_SCALE = 0.25
"""Of the output at the start: guesses shall not be sure of themselves before anything was learned."""


class Network:
    """parameters: by name, the leaves that are trained. What is the model's own (embeddings, output matrix) stays as it is.

    vocabulary: the ids that it can guess [n], in rising order. half: compute products in bf16.
    """

    def __init__(self, ends: Ends, vocabulary: Tensor, num_layers: int, *, device: Tensor, half: bool, seed: int = 0) -> None:
        """num_layers: of those that the features are taken from."""
        kind = torch.bfloat16 if half else torch.float32
        self.hidden = d = ends.output.shape[1]
        self.num_layers = num_layers
        self.vocabulary = vocabulary.to(device)
        self._norm = torch.from_numpy(ends.norm).float()
        self._embeddings = torch.from_numpy(ends.embeddings).to(device, kind)
        self.output = torch.from_numpy(ends.output)[vocabulary].to(device, kind).contiguous()
        inner = INNER * d // 576
        random = torch.Generator().manual_seed(seed)

        def uniform(outputs: int, inputs: int) -> Tensor:
            return (2 * torch.rand(outputs, inputs, generator=random) - 1) / inputs**0.5

        fuse = torch.zeros(d, num_layers * d)
        fuse[:, -d:] = torch.eye(d)  # begin with the last layer alone
        start = {
            "fuse": fuse,
            "feature_gain": torch.ones(num_layers * d),
            "state_gain": torch.ones(d),
            "embedding_gain": torch.ones(d),
            "join": uniform(d, 2 * d),
            "block_gain": torch.ones(d),
            "gate_up": uniform(2 * inner, d),
            "down": torch.zeros(d, inner),
            "output_gain": self._norm.clone(),
            "scale": torch.tensor(FIRST_SCALE),
        }
        self.parameters: dict[str, Tensor] = {name: p.to(device).requires_grad_() for name, p in start.items()}

    def begin(self, features: Tensor) -> Tensor:
        """Features [n, layers * hidden] to states [n, hidden]."""
        p = self.parameters
        parts = [normed(part) for part in features.split(self.hidden, -1)]
        return F.linear(torch.cat(parts, -1) * p["feature_gain"], p["fuse"])

    def step(self, state: Tensor, tokens: Tensor) -> Tensor:
        """States [n, hidden] after `tokens` [n] as well."""
        p = self.parameters
        embedding = normed(self._embeddings[tokens])
        x = F.linear(torch.cat([normed(state) * p["state_gain"], embedding * p["embedding_gain"]], -1), p["join"])
        gate, up = F.linear(normed(x) * p["block_gain"], p["gate_up"]).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, p["down"])

    def before_output(self, state: Tensor) -> Tensor:
        """What the output matrix is applied to [n, hidden]."""
        return (normed(state) * self.parameters["output_gain"] * self.parameters["scale"]).to(self.output.dtype)

    def model_logits(self, features: Tensor) -> Tensor:
        """The model's own, over the head's vocabulary [n, vocabulary], where it knew `features`."""
        last = features[:, -self.hidden :].float()
        return ((normed(last) * self._norm.to(last.device)).to(self.output.dtype) @ self.output.t()).float()

    def head(self, layers: tuple[int, ...], card: dict[str, object]) -> DraftHead:
        values = {name: p.detach().float().cpu().numpy() for name, p in self.parameters.items()}
        gate, up = np.split(values["gate_up"], 2)
        norm = self._norm.numpy()
        gain = np.divide(values["output_gain"] * values["scale"], norm, out=np.zeros_like(norm), where=norm != 0)
        return DraftHead(
            layers=layers,
            vocabulary=self.vocabulary.cpu().numpy().astype(np.int32),
            fuse=values["fuse"],
            feature_gain=values["feature_gain"],
            join=values["join"],
            state_gain=values["state_gain"],
            embedding_gain=values["embedding_gain"],
            output_gain=gain,
            blocks=(Block(values["block_gain"], gate, up, values["down"]),),
            card=card,
        )


def normed(x: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), eps=EPSILON)
