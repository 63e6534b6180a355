"""The examples of docs/library.md and README, run as they stand there on a small decoder."""

import re
from pathlib import Path

import torch

from encoders.attention.probe import sight

ROOT = Path(__file__).resolve().parents[2]


def examples(page):
    """The Python code of a page of docs/ or of README, block by block."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_loops_of_the_page_train_decoder_and_head(small_model, tmp_path, monkeypatch):
    """In the caller's own loop first; then in the trainer of sentence-transformers, which goes on from there."""
    code, in_their_trainer = examples("docs/library.md")
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
    monkeypatch.chdir(tmp_path)
    batch, losses = made["tokens"].batch(made["tokens"](made["queries"])), []
    torch.testing.assert_close(theirs(in_their_trainer, made, losses), made["encoder"](batch).detach())
    assert len(losses) == 6
    assert losses[-1] < losses[0]


def theirs(code, made, losses):
    """Run the second example; fill in the loss of each step, and return their vectors of the queries."""
    exec(code.replace("max_steps=6", 'max_steps=6, logging_steps=1, report_to="none", use_cpu=True'), made)
    losses += [entry["loss"] for entry in made["trainer"].state.log_history if "loss" in entry]
    return made["model"].encode(made["queries"], convert_to_tensor=True)


def test_the_lines_of_the_readme_make_vectors_with_gradients(small_model):
    _, lines = examples("README.md")
    imports = [line for line in examples("docs/library.md")[0].splitlines() if line.startswith(("import", "from"))]
    made = {}
    exec("\n".join([*imports, lines.replace("assets/tiny", str(small_model))]), made)
    assert made["vectors"].shape == (2, made["decoder"].config.hidden_size)
    made["vectors"][0].dot(made["vectors"][1]).backward()
    assert all(x.grad is not None for x in made["pooler"].parameters())
    assert sight(made["decoder"].eval()).all(), "bidirectional"
