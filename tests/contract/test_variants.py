"""Variants of trained runs, and beside trained heads: one forward pass gives what each encoder gives alone."""

import numpy as np
import pytest
import torch

from encoders.loading import untrained
from encoders.variants import Variants, load_variants
from tests.contract.conftest import TEXTS


@pytest.mark.slow
def test_variants_of_a_trained_run_use_its_adapter(run_of, cell):
    """The variant with the run's own pooler is the run; another pooler on the same run is another encoder."""
    run = run_of("mean", "bi")
    poolers = {"mean": run.cfg["pooler"], "eos": cell("eos", "bi")["pooler"]}
    variants = load_variants(run.cfg, run.folder, poolers)
    assert variants.fingerprints["mean"] == run.loaded.fingerprint
    assert len({*variants.fingerprints.values(), untrained(cell("eos", "bi")).fingerprint}) == 3
    (part,) = variants.parts(TEXTS)
    ((_, own),) = run.loaded.parts(TEXTS)
    np.testing.assert_array_equal(part[1]["mean"], own)
    base = {name: v for _, vectors in load_variants(run.cfg, None, poolers).parts(TEXTS) for name, v in vectors.items()}
    assert np.abs(part[1]["eos"] - base["eos"]).max() > 1e-3


def test_trained_poolers_can_share_a_pass_too(encoder_of, cell):
    """`Variants` asks for `consumes` alone: heads that read layers or the last states stand beside plain poolers."""
    encoder, tokenizer = encoder_of("multilayer", "bi")
    others = {name: encoder_of(name, "bi")[0] for name in ("lastlayer", "multilayer", "mean")}
    batch = tokenizer.batch(tokenizer(TEXTS))
    with torch.no_grad():
        found = Variants(encoder, {n: e.pooler for n, e in others.items()}, encoder.normalize)(batch)
        for name, alone in others.items():
            assert torch.equal(found[name], alone(batch))
