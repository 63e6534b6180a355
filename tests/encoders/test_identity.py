"""What vectors and states depend on is in every name under which they are kept: two encoders never share by mistake."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import encoders.identity
from cli.errors import UserError
from encoders.frozen import identity
from encoders.identity import sources
from encoders.loading import base_fingerprints, build_encoder, untrained
from encoders.precision import PRECISIONS
from evaluation.embeddings import open_store
from records.manifest import check_base

CPU = torch.device("cpu")
TEXTS = ["the sum of two arrays is returned as a new array with the same shape and type of its first argument"]


@pytest.fixture
def edited(small_model, tmp_path):
    """The small decoder, and a copy of it whose config.json has another rotary base: the same weights, other states."""
    copy = tmp_path / "edited"
    shutil.copytree(small_model, copy)
    config = json.loads((copy / "config.json").read_text())
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": 100.0}
    config["rope_theta"] = 100.0
    (copy / "config.json").write_text(json.dumps(config))
    return small_model, copy


def encoders_of(compose_cell, *each):
    """The untrained encoder of each tuple of words, in float32 on a CPU."""
    return [untrained(compose_cell("mean", "causal", *words)) for words in each]


def stores(found, folder):
    return [open_store(encoder, folder).folder for encoder in found]


def test_an_edited_configuration_is_another_encoder_and_another_base(compose_cell, edited, tmp_path):
    one, other = encoders_of(compose_cell, *[(f"model.path={path}",) for path in edited])
    assert np.abs(one.encode(TEXTS) - other.encode(TEXTS)).max() > 1e-3
    assert one.fingerprint != other.fingerprint
    assert len(set(stores([one, other], tmp_path))) == 2
    before, after = (base_fingerprints({"path": str(path)}) for path in edited)
    assert {key for key in before if before[key] != after[key]} == {"base_config_sha256"}
    (edited[1] / "added_tokens.json").write_text('{"val": 7}')
    (edited[1] / "modeling.py").write_text("# its own code")
    later = base_fingerprints({"path": str(edited[1]), "trust_remote_code": True})
    assert {key for key in after if after[key] != later[key]} == {"tokenizer_sha256", "base_config_sha256"}


def test_a_stage_of_an_edited_configuration_is_refused(edited):
    before, after = (base_fingerprints({"path": str(path)}) for path in edited)
    runs = {Path("runs/s,mntp/mean-bi/seed0"): {**before, "config": {"model": {"path": "base"}}}}
    check_base(runs, before)
    with pytest.raises(UserError, match=r"trained on another configuration of the base model \(base_config_sha256\)"):
        check_base(runs, after)


def states_of(compose_cell, *words):
    cfg = compose_cell("multilayer", "bi", *words)
    precision = PRECISIONS[cfg["precision"]]
    return identity(build_encoder(cfg, precision, CPU), cfg, precision)


def test_vectors_and_states_of_other_instruction_sets_have_a_cache_of_their_own(compose_cell, monkeypatch, tmp_path):
    """The limit is read where an encoder is made; torch reads its own once per process."""
    before, states = encoders_of(compose_cell, ()), states_of(compose_cell)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert len(set(stores([*before, *encoders_of(compose_cell, ())], tmp_path))) == 2
    assert states != states_of(compose_cell)


@pytest.mark.parametrize(
    ("name", "counts"),
    [("encoders/attention/pattern.py", True), ("poolers/mean.py", True), ("encoders/export/folder.py", False)],
)
def test_an_edit_of_the_code_is_another_cache(compose_cell, monkeypatch, tmp_path, name, counts):
    """Of embeddings and of states; export/ makes no state."""
    for package in ("encoders", "poolers"):
        shutil.copytree(encoders.identity.ROOT / package, tmp_path / package)
    monkeypatch.setattr("encoders.identity.ROOT", tmp_path)
    before = sources(), states_of(compose_cell)
    (tmp_path / name).write_text((tmp_path / name).read_text() + "# another line\n")
    assert (sources() != before[0]) == counts
    assert (states_of(compose_cell) != before[1]) == counts
