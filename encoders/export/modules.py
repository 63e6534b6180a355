"""Modules of sentence-transformers that run any cell: tokens with roles, attention, pooler.

Never imported as it stands by the program: `bundle.py` writes it out together with all that it needs of ours.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from sentence_transformers.base.modules import Module, Transformer
from torch import Tensor

from encoders.attention.prepending import PLACES, placeholders, prepend
from encoders.attention.switch import parts, set_attention
from encoders.encoder import LOGITS, watched
from encoders.templates import DEFAULT, TEXT_FIELD, Template
from encoders.tokens import TextTokenizer
from poolers.shared.base import Pooler, RoutedStates, States, TokenView

Features = dict[str, Any]


class Decoder(Transformer):
    """A decoder under an attention pattern, and the tokens that it was trained on.

    pattern: class of the pattern in this file and its settings. template: see `Template`. consumes: what of the states
    the pooler takes, see `Pooler`.
    """

    config_keys = [*Transformer.config_keys, "pattern", "template", "consumes"]  # noqa: RUF012

    def __init__(self, *args: Any, pattern: tuple[str, Features], template: Features, consumes: str, **settings: Any):
        super().__init__(*args, **settings)
        self.pattern, self.template, self.consumes = pattern, template, consumes
        set_attention(self.model, globals()[pattern[0]](**pattern[1]))
        prepend(self.model, parts(self.model)[0], template["prepended"])

    def preprocess(
        self, inputs: Any, prompt: str | None = None, processing_kwargs: Any = None, **settings: Any
    ) -> Features:
        """Return ids, roles, positions and mask, each [B, T], of texts. prompt: stands before them, or holds {text}."""
        form = prompt if prompt and TEXT_FIELD in prompt else f"{prompt or ''}{TEXT_FIELD}"
        template = Template("exported", DEFAULT.query, DEFAULT.document, **self.template)
        words: Any = self.tokenizer
        tokenizer = TextTokenizer(words, words.model_max_length, words.padding_side, template)
        batch = tokenizer.batch(tokenizer(inputs, form, empty=True))
        ids = {"input_ids": batch.input_ids, "position_ids": batch.position_ids}
        return {**ids, "attention_mask": batch.attention_mask, "roles": batch.roles, "modality": "text"}

    def forward(self, features: Features, **settings: Any) -> Features:
        """Add the last layer's states, and all layers' and the routers' logits [B, T, experts] where they are read."""
        inputs = {name: features[name] for name in ("input_ids", "position_ids", "attention_mask")}
        if self.template["prepended"]:
            inputs[PLACES] = placeholders(TokenView(features["roles"]), packed=False)
        logits: list[Tensor] = []
        watch: AbstractContextManager[None] = nullcontext()
        if self.consumes == "routers":
            shape = inputs["input_ids"].shape
            watch = watched(self.model, lambda _, out: logits.append(out[LOGITS].float().unflatten(0, shape)))
        with watch:
            output = self.model(**inputs, use_cache=False, output_hidden_states=self.consumes != "last")
        features |= {"token_embeddings": output.last_hidden_state, "router_logits": logits}
        return features | {"all_layer_embeddings": output.hidden_states}


class DesignPooling(Module):
    """A pooler of this file. design: its class, settings: the arguments."""

    config_keys = ["design", "hidden_size", "num_layers", "settings"]  # noqa: RUF012

    def __init__(self, design: str, hidden_size: int, num_layers: int, settings: dict[str, Any]) -> None:
        super().__init__()
        self.design, self.hidden_size, self.num_layers, self.settings = design, hidden_size, num_layers, settings
        self.pooler: Pooler = globals()[design](hidden_size, num_layers, **settings)

    def forward(self, features: Features, **settings: Any) -> Features:
        """Add `sentence_embedding` [B, E] float32."""
        tokens, pooler = TokenView(features["roles"]), self.pooler
        states: States = features["token_embeddings"]
        with torch.autocast(features["roles"].device.type, enabled=False):
            if pooler.consumes != "last":
                hidden = features["all_layer_embeddings"]  # from the embeddings on
                states = reduced = [pooler.reduce(layer, hidden[layer + 1], tokens) for layer in pooler.layers]
            if pooler.consumes == "routers":
                routing = enumerate(features["router_logits"])
                states = RoutedStates(reduced, [pooler.reduce_routing(i, x, tokens) for i, x in routing])
            return features | {"sentence_embedding": pooler(states, tokens)}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "DesignPooling":
        """Move the pooler to other devices alone: it computes in float32, whatever format the decoder is loaded in."""
        return super()._apply(lambda tensor: tensor.to(fn(tensor).device), recurse)

    def get_embedding_dimension(self) -> int:
        """E."""
        return self.pooler.embedding_dim

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **settings: Any) -> None:
        """Write configuration and weights."""
        self.save_config(output_path)
        self.save_torch_weights(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, *args: Any, **settings: Any) -> "DesignPooling":
        """Read what `save` wrote."""
        places = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
        where = {key: settings[key] for key in places if key in settings}
        module = cls(**cls.load_config(model_name_or_path, **where))
        return cls.load_torch_weights(model_name_or_path, model=module, **where)
