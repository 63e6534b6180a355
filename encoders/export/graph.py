"""The model as an ONNX graph, `onnx/model.onnx`: ids and mask in, states and vectors out, where no torch is at hand."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cli.errors import UserError
from encoders.export.exported import Exported
from encoders.export.folder import rowwise_cosine

INPUTS, OUTPUTS = ["input_ids", "attention_mask"], ["last_hidden_state", "sentence_embedding"]


def check_graph(exported: Exported) -> None:
    """Raise `UserError` where the packages lack, or where the pooling is code or the weights are those of a base."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UserError(f"onnx=true takes {error.name}, which is not installed: pip install '.[onnx]'.") from error
    if not exported.mode:
        raise UserError(
            f"onnx=true does not fit {exported.run}: its pooling or attention is code of the folder. It is for "
            "pooler=eos, cls, mean and weightedmean as sentence-transformers has them (docs/exporting.md)."
        )
    if not exported.merged:
        raise UserError("onnx=true takes adapter=merged: the graph holds the weights.")


class Graph(nn.Module):
    """Decoder and poolings of a loaded model of sentence-transformers as one function of tensors."""

    def __init__(self, decoder: nn.Module, poolings: list[nn.Module]) -> None:
        super().__init__()
        self.decoder, self.poolings = decoder, nn.ModuleList(poolings)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return states [B, T, D] and vectors [B, E] of ids and mask, each [B, T], padded on the right."""
        states = self.decoder(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).last_hidden_state
        features: dict[str, Any] = {"token_embeddings": states, "attention_mask": attention_mask}
        for pooling in self.poolings:
            features = pooling(features)
        return states, features["sentence_embedding"]


def write_graph(exported: Exported, folder: Path) -> float:
    """Add the graph to the model folder; return its least cosine with the run's own vectors, in a batch and alone.

    Number and length of texts stay free. Attention is written out (eager); weights of over 2 GB stand beside the file.
    """
    import onnxruntime
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(str(folder), device="cpu", model_kwargs={"attn_implementation": "eager"})
    texts = ["sum", "The sum of two arrays.", "one two three " * exported.text_encoder.max_length]
    batches = [model[0].preprocess(group) for group in (texts, *([text] for text in texts))]
    free = {0: torch.export.Dim("texts"), 1: torch.export.Dim("tokens")}
    example = model[0].preprocess(texts[:2])
    with warnings.catch_warnings(action="ignore"):  # of the exporter, about its own names
        program = torch.onnx.export(
            Graph(model[0].model, list(model)[1:]).eval(),
            tuple(example[name] for name in INPUTS),
            input_names=INPUTS,
            output_names=OUTPUTS,
            dynamic_shapes=(free, free),
            dynamo=True,
            verbose=False,
        )
    path = folder / "onnx" / "model.onnx"
    path.parent.mkdir()
    assert program is not None
    program.save(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    theirs = [session.run(OUTPUTS[1:], {name: batch[name].numpy() for name in INPUTS})[0] for batch in batches]
    ours = exported.text_encoder.encode(texts)
    return float(rowwise_cosine(np.concatenate([ours, ours]), np.concatenate(theirs)).min())
