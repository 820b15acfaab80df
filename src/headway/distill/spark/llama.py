"""Models of the Llama kind in PyTorch: read from a GGUF, some layers of one, and what goes into them and comes out."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from headway.catalog.gguf_file import GgufInfo
from headway.errors import UsageError

Tensor = Any
ARCHITECTURES = ("llama", "qwen2", "qwen3")
"""Of GGUF files: those whose layers all have one shape, and which Transformers reads from a GGUF."""


def check_teacher(info: GgufInfo) -> None:
    """Raises UsageError for a model that no smaller one can be made of here."""
    if info.architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise UsageError(f"{info.path} is of the architecture {info.architecture!r}; a spark can be made of {known}")
    unread = [name for name, _ in info.quantization if not _is_read(name)]
    if unread:
        raise UsageError(f"{info.path} has tensors of the type {unread[0]}, which isn't read for training: take another file")


def _is_read(kind: str) -> bool:
    return kind in GGMLQuantizationType.__members__ and GGMLQuantizationType[kind] in GGML_QUANT_SIZES


class Llama:
    """embeddings and output: [vocabulary, hidden], which stay as they are; the same tensor where a model ties them.

    A model is called with tokens [rows, length], padded behind their ends, and gives the states before the output matrix [rows,
    length, hidden]: what stands after a token doesn't change what came before it, so padding needs no mask.
    """

    def __init__(self, body: Any, embeddings: Tensor, output: Tensor) -> None:
        self.body = body
        self.embeddings = embeddings
        self.output = output

    @property
    def num_layers(self) -> int:
        return len(self.body.layers)

    def __call__(self, tokens: Tensor) -> Tensor:
        return self.body(input_ids=tokens, use_cache=False).last_hidden_state

    def with_layers(self, kept: Sequence[int]) -> Llama:
        """Of these layers alone, in this order, as a copy whose ends are shared."""
        body = copy.copy(self.body)
        body._modules = dict(self.body._modules)
        body.config = copy.deepcopy(self.body.config)
        body.config.num_hidden_layers = len(kept)
        body.layers = torch.nn.ModuleList(copy.deepcopy(self.body.layers[i]) for i in kept)
        for number, layer in enumerate(body.layers):
            layer.self_attn.layer_idx = number
        body.norm = copy.deepcopy(self.body.norm)
        return Llama(body, self.embeddings, self.output)

    def with_body_of(self, other: Llama) -> Llama:
        """The layers and the last norm of another one between these ends."""
        other.body.embed_tokens = self.body.embed_tokens
        return Llama(other.body, self.embeddings, self.output)

    def trained(self) -> dict[str, Tensor]:
        """What a training changes, by name: the layers and the last norm."""
        for parameter in self.body.parameters():
            parameter.requires_grad_(False)
        chosen = [("norm", self.body.norm), *((f"layers.{i}", layer) for i, layer in enumerate(self.body.layers))]
        found = {f"{prefix}.{name}": p for prefix, module in chosen for name, p in module.named_parameters()}
        for parameter in found.values():
            parameter.requires_grad_(True)
        return found

    def to(self, device: Tensor) -> Llama:
        self.body.to(device)
        self.embeddings, self.output = self.embeddings.to(device), self.output.to(device)
        return self


def read_llama(path: Path) -> Llama:
    """In f32. Raises UsageError if Transformers can't read the file."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        # Its bars would come in the midst of headway's, and one of them can't be turned off.
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            whole = AutoModelForCausalLM.from_pretrained(
                str(path.absolute().parent), gguf_file=path.name, dtype=torch.float32, attn_implementation="sdpa"
            )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, NotImplementedError) as error:
        raise UsageError(f"{path} can't be read for training: {(str(error).splitlines() or ['unknown'])[0]}") from None
    whole.eval()
    return Llama(whole.model, whole.get_input_embeddings().weight.detach(), whole.get_output_embeddings().weight.detach())
