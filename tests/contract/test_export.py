"""Every cell leaves the program: sentence-transformers makes the run's vectors of the folder, without our packages."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
import torch
from huggingface_hub import ModelCard
from mteb import TaskMetadata, TaskResult, get_task
from peft import AutoPeftModel
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer

from cli.errors import UserError
from encoders.attention.probe import sight
from encoders.backbone import load_config
from encoders.export import figures
from encoders.export.__main__ import main
from encoders.export.card import KINDS
from encoders.export.exported import load_exported
from encoders.export.figures import write_figures
from encoders.export.folder import write_folder
from evaluation.results import describe_tasks
from poolers.shared.registry import build_pooler
from records.atomic import write_json
from records.code import PACKAGES
from records.manifest import sealed
from records.run_folder import RunFolder
from tests.cells import CELLS, reads_routers
from tests.contract.conftest import NOTHING, TEXTS, adapted
from training.set_up import save_trained

LEAST = 0.999999  # measured: 1 - 5e-13 in float64
FACTS = {"study": "tests", "status": "finished", "data": {"instructed": 0}, "base_weights_sha256": "", "code": {}}


@pytest.fixture(scope="session")
def awake_run(cell, tmp_path_factory):
    """Return the folder of a run whose LoRA and head are no longer at their start: awake_run("eos", "bi", changes).

    Runs on one base share one LoRA.
    """
    adapters = {}

    def made(pooler, attn, changes=NOTHING, facts=NOTHING):
        cfg = cell(pooler, attn, changes)
        base = cfg["model"]["path"]
        if base not in adapters:
            adapters[base] = tmp_path_factory.mktemp("lora")
            save_trained(*adapted(cfg), adapters[base])
        shape = load_config(cfg["model"])
        experts = [4] * 3 * reads_routers(pooler)
        head = build_pooler(cfg["pooler"], shape.hidden_size, shape.num_hidden_layers, 0, experts)
        for name, weights in head.named_parameters():
            weights.data += 0.05 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(len(name)))
        folder = tmp_path_factory.mktemp(f"{pooler}-{attn}")
        save_file(head.state_dict(), folder / "head.safetensors")
        (folder / "adapter").symlink_to(adapters[base] / "adapter")
        of_the_cell = {"pooler": pooler, "attn": attn, "seed": cfg["seed"], "config": cfg}
        RunFolder(folder).write({**FACTS, **of_the_cell, **facts})
        return folder

    return made


def cosines(ours, theirs):
    return np.einsum("ne,ne->n", ours, theirs) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)


def loaded(run, folder, merged=True):
    """The program's own encoder of a run, and sentence-transformers' of what is exported of it."""
    exported = load_exported(run, merged)
    write_folder(exported, folder)
    ours = exported.text_encoder
    return exported, ours, SentenceTransformer(str(folder), device="cpu", trust_remote_code=exported.mode is None)


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
def test_vectors_are_those_of_the_run(awake_run, tmp_path, pooler, attn):
    """On either padding side, with batch mates and alone, and under a text that is cut."""
    _, text_encoder, model = loaded(awake_run(pooler, attn), tmp_path / "model")
    texts = [*TEXTS, "the sum of two arrays " * 40]
    ours = text_encoder.encode(texts)
    for side in ("right", "left"):
        model.tokenizer.padding_side = side
        assert cosines(ours, model.encode(texts)).min() > LEAST
    assert cosines(ours, model.encode(texts, batch_size=1)).min() > LEAST
    assert torch.equal(sight(model[0].model), sight(text_encoder.encoder.backbone))


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
    ("eos", {"pooler.normalize": False}, "lasttoken"),
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


@pytest.mark.parametrize("pooler", ["eos", "mean", "lastlayer"])
def test_a_prompt_is_an_instruction(awake_run, tmp_path, pooler):
    """Of a design that was trained with instructions; the prompt's last space and the text begin one token."""
    run = awake_run(pooler, "bi", {}, {"data": {"instructed": 8}})
    exported, ours, model = loaded(run, tmp_path / "model")
    assert exported.mode == ("lasttoken" if pooler == "eos" else None)
    theirs = model.encode(TEXTS, prompt="Instruct: find the sum\nQuery: ")
    assert cosines(ours.encode(TEXTS, "find the sum"), theirs).min() > LEAST
    assert cosines(ours.encode(TEXTS), theirs).max() < 0.999


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


@pytest.mark.slow
@pytest.mark.parametrize(("pooler", "attn"), [("eos", "causal"), ("weightedmean", "bi")])
def test_a_graph_runs_without_torch(awake_run, tmp_path, pooler, attn):
    """Of the folder's tokenizer and onnxruntime alone, padded, alone and cut."""
    run, folder = awake_run(pooler, attn), tmp_path / "model"
    main([f"run={run}", f"to={folder}", "onnx=true"])
    ours = load_exported(run).text_encoder
    tokenizer = AutoTokenizer.from_pretrained(folder)
    session = onnxruntime.InferenceSession(folder / "onnx" / "model.onnx")
    texts = [*TEXTS, "the sum of two arrays " * 40]
    for batch in (texts, *([text] for text in texts)):
        inputs = tokenizer(batch, padding=True, truncation=True, return_tensors="np", return_token_type_ids=False)
        states, vectors = session.run(["last_hidden_state", "sentence_embedding"], dict(inputs))
        assert states.shape[:2] == inputs["input_ids"].shape
        assert cosines(ours.encode(batch), vectors).min() > LEAST
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_the_adapter_of_a_run_loads_by_itself(awake_run):
    """PEFT finds base and architecture in the adapter's own configuration."""
    run = awake_run("eos", "causal")
    ours = load_exported(run).text_encoder
    model = AutoPeftModel.from_pretrained(run / "adapter").eval()
    with torch.inference_mode():
        states = [model(torch.tensor([row.ids])).last_hidden_state[0, -1] for row in ours.tokenizer(TEXTS)]
    assert cosines(ours.encode(TEXTS), torch.stack(states).numpy()).min() > LEAST


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
    program = OUTSIDE.format(packages=set(PACKAGES), texts=TEXTS)
    environment = {**os.environ, "HF_HOME": str(tmp_path / "hub")}
    subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, env=environment, check=True)
    ours = load_exported(run).text_encoder.encode(TEXTS)
    for theirs in np.load(tmp_path / "vectors.npy"):
        assert cosines(ours, theirs).min() > LEAST


def test_scores_stand_in_the_card_as_mteb_writes_them(awake_run, tmp_path):
    run, scores, results = awake_run("eos", "bi"), tmp_path / "scores", []
    place = scores / "results" / "tests__eos-bi" / "seed=0@1"
    for name, main_score in (("STS12", 0.25), ("NFCorpus", 0.5), ("Banking77Classification", 0.75)):
        entry = {"hf_subset": "default", "languages": ["eng-Latn"], "main_score": main_score}
        kept = {"dataset_revision": get_task(name).metadata.revision, "task_name": name, "mteb_version": "2"}
        results.append(TaskResult.from_dict({**kept, "scores": {"test": [entry]}, "evaluation_time": 1.0}))
        (place / "run").mkdir(parents=True, exist_ok=True)
        results[-1].to_disk(place / f"{name}.json")
    describe_tasks(scores, [result.task for result in results])
    write_json(place / "run" / "manifest.json", sealed({**RunFolder(run).manifest(), "evaluation": {}}))
    main([f"run={run}", f"to={tmp_path / 'model'}", f"scores={scores}"])
    card = ModelCard.load(tmp_path / "model" / "README.md")
    wanted = [entry for result in results for entry in result.get_hf_eval_results()]
    in_order = sorted(wanted, key=lambda result: result.dataset_name)
    assert sorted(card.data.eval_results, key=lambda result: result.dataset_name) == in_order
    assert card.data.model_name == "model"
    assert RunFolder(run).manifest()["manifest_sha256"] in card.text
    assert _figures(card, tmp_path / "model") == ["figures/scores.png"]
    assert "Means by type: Classification 0.7500, Retrieval 0.5000, STS 0.2500." in card.text
    assert "No curve of the loss: the run's folder holds no log of it." in card.text
    for kind, of_the_hub in KINDS.items():
        assert TaskMetadata._hf_task_type(SimpleNamespace(type=kind)) == [of_the_hub]


def _figures(card, folder):
    """The figures that a card shows, all of which must stand in the folder, and no others."""
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", card.text)
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.png")) == sorted(shown)
    assert all((folder / path).read_bytes().startswith(b"\x89PNG") for path in shown)
    return shown


def test_the_loss_of_a_run_stands_in_the_card(awake_run, tmp_path):
    """Drawn as logged: each step, and the running mean, against the literal one."""
    log, losses = awake_run("eos", "bi") / "logs" / "attempt=0" / "metrics.csv", [4.0, 3.0, 2.5, 2.0, 1.5, 1.0]
    log.parent.mkdir(parents=True)
    log.write_text("".join(["loss,step\n", *(f"{loss},{step}\n" for step, loss in enumerate(losses))]))
    said = write_figures(log.parents[2], {}, tmp_path)
    assert _figures(SimpleNamespace(text=said), tmp_path) == ["figures/loss.png"]
    assert "Loss over 6 steps, 4.000 at first and 2.000 at the end." in said
    assert "No figure of scores: none were given for this card." in said
    steps, means = figures._loss(losses).figure.axes[0].lines
    assert steps.get_ydata().tolist() == losses
    assert means.get_ydata().tolist() == pytest.approx([4.0, 3.5, 9.5 / 3, 11.5 / 4, 13 / 5, 10 / 5])


@pytest.mark.parametrize(("token", "why"), [(None, "Token is required"), ("hf_dummy", "Connection refused")])
def test_what_is_written_is_pushed_with_a_token_and_a_network(awake_run, tmp_path, monkeypatch, token, why):
    """The hub is not at hand here: nothing is sent, and the folder stands. HF_ENDPOINT is read at import."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.utils._headers.get_token", lambda: token)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=rf"written, but not on the hub: .*{why}.*\. Mend that, then hf upload lab/x"):
        main([f"run={awake_run('mean', 'bi')}", f"to={tmp_path / 'model'}", "push=lab/x"])
    assert (tmp_path / "model" / "model.safetensors").is_file()


REFUSED = {  # words, changes of the run -> what the error says
    "to={there}": "not empty",
    "to={new} adapter=apart": "merged or beside",
    "to={new} onnx=true adapter=beside": "takes adapter=merged",
    "to={new} onnx=yes": "false or true",
    "to={new} scores={there}": "no scores of",
    "to={new} score={there}": "Nearest: scores=",
    "adapter=merged": "to=<folder> is missing",
}


@pytest.mark.parametrize("words", REFUSED)
def test_wrong_words_are_one_line(awake_run, tmp_path, words):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    places = {"there": tmp_path / "there", "new": tmp_path / "new"}
    with pytest.raises(UserError, match=REFUSED[words]):
        main([f"run={awake_run('eos', 'causal')}", *words.format_map(places).split()])
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_graph_of_code_or_without_its_packages_is_refused(awake_run, tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"onnx=true does not fit .* is code of the folder"):
        main([f"run={awake_run('lastlayer', 'bi')}", f"to={tmp_path / 'model'}", "onnx=true"])
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(UserError, match=r"takes onnxscript, which is not installed: pip install '\.\[onnx\]'"):
        main([f"run={awake_run('mean', 'bi')}", f"to={tmp_path / 'model'}", "onnx=true"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("pooler", "changes", "facts", "said"),
    [
        ("eos", {}, {"status": "running"}, "not finished"),
        ("eos", {"pooler.last_real": False}, {}, "last_real=false"),
        ("lastlayer", {"pooler.mask_padding": False}, {}, "mask_padding=false"),
        ("moee", {"pooler.standardise": "batch"}, {}, "standardise=batch"),
        ("eos", {"model.trust_remote_code": True}, {}, "trust_remote_code"),
        ("eos", {"lineage": ["runs/a"]}, {}, "earlier stages"),
    ],
)
def test_what_cannot_be_exported_is_named(awake_run, pooler, changes, facts, said):
    with pytest.raises(UserError, match=said):
        load_exported(awake_run(pooler, "bi", changes, facts), merged="lineage" not in changes)
