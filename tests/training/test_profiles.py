"""The profile of the published code is the sum of its divergences, and both sides train."""

from pathlib import Path

import pytest

from cli.compose import CONF, composed, flat, plain

NAMES = sorted(p.stem for p in (CONF / "divergence").glob("*.yaml"))
NOT_OF_THE_CODE = {"none", "isolated_attention", "one_source", "all"}  # two are turned round


def config(cell, *words):
    return flat(plain(composed("train", [f"cell={cell}", *words])))


def changes(cell, *words):
    usual, now = config(cell), config(cell, *words)
    return {k: now.get(k) for k in now.keys() | usual.keys() if now.get(k) != usual.get(k)}


@pytest.mark.parametrize("cell", ["m2", "m4", "m5"])  # each head under the attention that the code treats apart
def test_the_profile_is_the_sum_of_the_divergences(cell):
    summed = {}
    for name in set(NAMES) - NOT_OF_THE_CODE:
        summed |= changes(cell, f"divergence={name}")
    summed.pop("trainer.devices", None)  # `unsynchronised` needs two processes to show
    if cell in ("m4", "m5"):  # the code's lastlayer head reads all tokens where attention is bidirectional
        summed = {
            k: v for k, v in summed.items() if k != "reading.lastlayer_tokens" and (cell, k) != ("m4", "pooler.tokens")
        }
    assert changes(cell, "profile=reference_code") == summed == changes(cell, "divergence=all")


def test_paper_is_the_default():
    assert config("m4") == config("m4", "profile=paper")


def test_an_experiments_head_gives_way_to_the_profiles():
    cfg = config("m2", "experiment=paper/mistral_7b", "profile=reference_code")
    assert (cfg["pooler.head_dim"], cfg["pooler.start"], cfg["pooler.tokens"]) == (2048, "torch", "last")


def test_each_divergence_is_described_and_swept():
    swept = composed("train", ["sweep=divergences"])
    page = (CONF.parent / "docs" / "reference_divergences.md").read_text()
    listed = Path(CONF / "sweep" / "divergences.yaml").read_text()
    assert swept is not None
    for name in set(NAMES) - {"none"}:
        assert f"`{name}`" in page, f"{name} is not in the page"
        assert name in listed, f"{name} is not in the sweep"
