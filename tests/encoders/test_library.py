"""The example of docs/library.md, run as it stands there on a small decoder."""

import re
from pathlib import Path

import torch

from encoders.attention.probe import sight

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"


def test_the_loop_of_the_page_trains_decoder_and_head(small_model):
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    made, losses = {}, []

    def pairs():
        for _ in range(12):
            yield ["the sum", "a new array", "type of its first"], ["sum of two arrays", "returned as", "the argument"]
            losses.append(float(made["loss"].detach()))
            if len(losses) == 1:
                made["first"] = {name: x.detach().clone() for name, x in made["encoder"].named_parameters()}

    made["pairs"] = pairs()
    exec(code.replace("assets/tiny", str(small_model)), made)
    assert losses[-1] < losses[0] / 2
    assert sight(made["decoder"].eval()).all(), "bidirectional"
    still = [name for name, x in made["encoder"].named_parameters() if torch.equal(x, made["first"][name])]
    assert not still
