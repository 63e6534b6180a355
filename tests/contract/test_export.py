"""Every cell leaves the program: sentence-transformers makes the run's vectors of the folder, without our packages."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from peft import AutoPeftModel
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

from encoders.attention.probe import visible
from encoders.export.__main__ import main
from encoders.export.exported import Exported, load_exported
from encoders.export.folder import least_cosine, write_folder
from encoders.tokens import Tokens
from poolers.shared import base
from tests.cells import CONTRACT
from tests.contract.conftest import TEXTS

LEAST = 0.999999  # measured: 1 - 5e-13 in float64


def cosines(ours, theirs):
    return np.einsum("ne,ne->n", ours, theirs) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)


def loaded(run, folder, merged=True):
    """The program's own encoder of a run, and sentence-transformers' of what is exported of it."""
    exported = load_exported(run, merged)
    write_folder(exported, folder)
    ours = exported.text_encoder
    return exported, ours, SentenceTransformer(str(folder), device="cpu", trust_remote_code=exported.mode is None)


@pytest.mark.parametrize(("pooler", "attn"), CONTRACT)
def test_vectors_are_those_of_the_run(awake_run, tmp_path, pooler, attn):
    """On either padding side, with batch mates and alone, and under a text that is cut."""
    _, text_encoder, model = loaded(awake_run(pooler, attn), tmp_path / "model")
    texts = [*TEXTS, "the sum of two arrays " * 40]
    ours = text_encoder.encode(texts)
    for side in ("right", "left"):
        model.tokenizer.padding_side = side
        assert cosines(ours, model.encode(texts)).min() > LEAST
    assert cosines(ours, model.encode(texts, batch_size=1)).min() > LEAST
    assert torch.equal(visible(model[0].model), visible(text_encoder.encoder.backbone))


PREFIXED = {"query": {"bare": "query: {text}", "instructed": "{instruction}: {text}"}}
PREFIXED |= {"name": "prefixed", "document": PREFIXED["query"] | {"bare": "passage: {text}"}, "eos": True}
TWICE = {"bare": "{text} again: {text}", "instructed": "{instruction} {text} {text}"}
ECHO = {"name": "echo", "eos": False, "query": TWICE, "document": TWICE}
BOS = {"model.path": "made"}
MODES = [  # pooler, changes -> mode of sentence-transformers' Pooling, or None
    ("eos", BOS, "lasttoken"),
    ("mean", BOS, None),  # theirs pools BOS
    ("mean", {**BOS, "pooler.pool_bos": True}, "mean_tokens"),
    ("weightedmean", {**BOS, "pooler.pool_bos": True}, "weightedmean_tokens"),
    ("mean", {"pooler.pool_eos": False}, None),
    ("eos", {"template": PREFIXED}, "lasttoken"),
    ("cls", {"template": PREFIXED}, "cls_token"),
    ("mean", {"template": PREFIXED}, None),
    ("mean", {"template": PREFIXED, "pooler.pool_instruction": True}, "mean_tokens"),
    ("weightedmean", {"template": PREFIXED, "pooler.pool_instruction": True}, "weightedmean_tokens"),
    ("mean", {"template": ECHO}, None),
    ("eos", {"normalize": False}, "lasttoken"),
]


@pytest.mark.parametrize("case", MODES, ids=lambda case: f"{case[0]}-{'-'.join(case[1])}")
def test_their_pooling_stands_where_it_is_the_design(awake_run, model_folder, tmp_path, case):
    pooler, changes, mode = case
    if "model.path" in changes:
        changes = {**changes, "model.path": str(model_folder("made"))}
    exported, ours, model = loaded(awake_run(pooler, "bi", changes), tmp_path / "model")
    assert exported.mode == mode
    asked = ours.tokenizer.template.asked("", "document")
    assert cosines(ours.encode(TEXTS), model.encode(TEXTS)).min() > LEAST
    assert cosines(ours.encode(TEXTS), model.encode_query(TEXTS)).min() > LEAST
    assert cosines(ours.encode(TEXTS, asked), model.encode_document(TEXTS)).min() > LEAST
    np.testing.assert_allclose(ours.encode(TEXTS), model.encode(TEXTS), atol=2e-6 * np.abs(ours.encode(TEXTS)).max())


INSTRUCTED = {"records": ({}, {"instructed": 8}), "key": ({"data.instruction": "find it"}, {"instructed": 0})}


@pytest.mark.parametrize("by", INSTRUCTED)
@pytest.mark.parametrize("pooler", ["eos", "mean", "lastlayer"])
def test_a_prompt_is_an_instruction(awake_run, tmp_path, pooler, by):
    """Of a design that was trained with instructions; the prompt's last space and the text begin one token."""
    changes, data = INSTRUCTED[by]
    exported, ours, model = loaded(awake_run(pooler, "bi", changes, {"data": data}), tmp_path / "model")
    assert exported.mode == ("lasttoken" if pooler == "eos" else None)
    for wording in ("find the sum", exported.instruction):
        theirs = model.encode(TEXTS, prompt=f"Instruct: {wording}\nQuery: ")
        assert cosines(ours.encode(TEXTS, wording), theirs).min() > LEAST
        assert cosines(ours.encode(TEXTS), theirs).max() < 0.999
    assert least_cosine(exported, tmp_path / "model") > LEAST
    assert repr(exported.prompt) in (tmp_path / "model" / "README.md").read_text()


def test_other_vectors_under_the_prompt_of_training_are_found(awake_run, tmp_path, monkeypatch):
    """sentence-transformers' mean leaves out the first token of a text with the prompt."""
    run = awake_run("mean", "bi", {"data.instruction": "find it"})
    monkeypatch.setattr(Exported, "mode", "mean_tokens")
    exported, _, _ = loaded(run, tmp_path / "model")
    assert least_cosine(exported, tmp_path / "model") < 0.999


BARE = ECHO | {"query": {"bare": "{text}", "instructed": "{text}"}}
EMPTY = [("eos", {}), ("cls", {}), ("mean", {}), ("mean", {"pooler.pool_eos": False}), ("multilayer", {})]
EMPTY += [("moee_trained", {}), ("eos", BOS), ("mean", BOS), ("lastlayer", {**BOS, "template": ECHO})]
EMPTY += [("mean", {"template": ECHO}), ("mean", {"template": BARE}), ("eos", {"template": BARE})]


@pytest.mark.parametrize("case", EMPTY, ids=str)
def test_an_empty_text_has_the_vector_of_the_tokens_around_it(awake_run, model_folder, tmp_path, case):
    """The last of these has the role of the text; by hand, and the same under every pooler and with batch mates."""
    pooler, changes = case
    if "model.path" in changes:
        changes = {**changes, "model.path": str(model_folder("made"))}
    _, ours, model = loaded(awake_run(pooler, "bi", changes), tmp_path / "model")
    rules, template = ours.tokenizer, ours.tokenizer.template
    (words,) = rules.plain_ids([template.query.bare.replace("{text}", "")])
    start = [] if rules.bos is None else [rules.bos]
    ids = [*start, *words, *[rules.eos] * template.eos]
    roles = [*[base.BOS] * len(start), *[base.INSTRUCTION] * len(words), *[base.EOS] * template.eos][:-1]
    row = Tokens(ids or [rules.eos], [*roles, base.TEXT])
    with torch.no_grad():
        wanted = ours.encoder(rules.batch([row])).numpy()
    assert cosines(wanted, model.encode([""])).min() > LEAST
    assert cosines(wanted, model.encode(["", *TEXTS])[:1]).min() > LEAST


def test_a_head_stays_in_float32(awake_run, tmp_path):
    """Also where the decoder is loaded in bf16, with its eight bits."""
    _, ours, model = loaded(awake_run("multilayer", "bi"), tmp_path / "model")
    head = {name: weights.clone() for name, weights in model[1].state_dict().items()}
    model.to(torch.bfloat16)
    assert model[0].model.dtype == torch.bfloat16
    assert all(torch.equal(weights, head[name]) for name, weights in model[1].state_dict().items())
    assert cosines(ours.encode(TEXTS), model.encode(TEXTS)).min() > 0.999


@pytest.mark.parametrize(("pooler", "attn"), [("eos", "causal"), ("mean", "bi"), ("moee_trained", "bi_last")])
def test_the_adapter_beside_its_base(awake_run, tmp_path, pooler, attn):
    exported, ours, model = loaded(awake_run(pooler, attn), tmp_path / "model", merged=False)
    assert (exported.mode is None) == (attn != "causal"), "the base's configuration is causal"
    assert not (tmp_path / "model" / "model.safetensors").exists()
    assert cosines(ours.encode(TEXTS), model.encode(TEXTS)).min() > LEAST


def test_the_adapter_beside_a_base_of_fewer_bits(awake_run, small_model, tmp_path):
    shutil.copytree(small_model, tmp_path / "base")
    AutoModel.from_pretrained(small_model, dtype=torch.bfloat16).save_pretrained(tmp_path / "base")
    run = awake_run("eos", "causal", {"model.path": str(tmp_path / "base")})
    _, ours, model = loaded(run, tmp_path / "model", merged=False)
    assert cosines(ours.encode(TEXTS), model.encode(TEXTS)).min() > LEAST


def test_the_adapter_of_a_run_loads_by_itself(awake_run):
    """PEFT finds base and architecture in the adapter's own configuration."""
    run = awake_run("eos", "causal")
    ours = load_exported(run).text_encoder
    model = AutoPeftModel.from_pretrained(run / "adapter").eval()
    with torch.inference_mode():
        states = [model(torch.tensor([row.ids])).last_hidden_state[0, -1] for row in ours.tokenizer(TEXTS)]
    assert cosines(ours.encode(TEXTS), torch.stack(states).numpy()).min() > LEAST


PACKAGES = {"cli", "records", "corpora", "poolers", "encoders", "training", "evaluation"}
OUTSIDE = """
import sys
from importlib.abc import MetaPathFinder

class Refused(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        assert name.split(".")[0] not in {packages}, name

sys.meta_path.insert(0, Refused())
import numpy as np
from sentence_transformers import SentenceTransformer

try:
    SentenceTransformer("model")
except ValueError as error:
    assert "trust_remote_code" in str(error)
model = SentenceTransformer("model", trust_remote_code=True)
model.save_pretrained("again")
again = SentenceTransformer("again", trust_remote_code=True)
np.save("vectors.npy", [model.encode({texts}), again.encode({texts})])
"""


@pytest.mark.slow
def test_a_folder_needs_nothing_of_this_program(awake_run, tmp_path, capsys):
    """It is loaded in a process that may not import it, saved again by sentence-transformers and loaded once more."""
    run = awake_run("multilayer", "bi")
    main([f"run={run}", f"to={tmp_path / 'model'}"])
    assert "trust_remote_code=True" in capsys.readouterr().out
    assert "SentenceTransformer" in (tmp_path / "model" / "README.md").read_text()
    program = OUTSIDE.format(packages=PACKAGES, texts=TEXTS)
    environment = {**os.environ, "HF_HOME": str(tmp_path / "hub")}
    subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, env=environment, check=True)
    ours = load_exported(run).text_encoder.encode(TEXTS)
    for theirs in np.load(tmp_path / "vectors.npy"):
        assert cosines(ours, theirs).min() > LEAST
