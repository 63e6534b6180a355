"""Models of sentence-transformers and PEFT adapters beside ours: scored on the same tasks, by their own vectors."""

import json
import shutil

import mteb
import pytest
import torch
from peft import LoraConfig, get_peft_model
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, LlamaConfig

from cli.compose import composed, plain
from cli.errors import UserError
from evaluation.command import run
from evaluation.foreign import ForeignEncoder
from evaluation.tasks.chosen import mteb_task
from evaluation.tasks.folder import folder_tasks
from evaluation.words import evaluate_words

TASKS = ["Asked", "Graded", "Pairs"]


@pytest.fixture
def scored(folder, tmp_path):
    """Run evaluate.py with words; return the outcome."""

    def scored(*words):
        usual = [f"tasks_dir={folder}", f"tasks=[{','.join(TASKS)}]", f"results={tmp_path / 'scores'}"]
        return run(plain(composed("evaluate", evaluate_words([*usual, "progress=false", *words]))))[0]

    return scored


def main_scores(outcome):
    """Task -> score."""
    return {name: score for name, (_, score) in outcome.scores.items()}


def test_they_get_the_scores_of_their_vectors(scored, small_model, tmp_path):
    """sentence-transformers pools the mean of a plain folder, causal, without EOS; so can we."""
    words = ["run=null", f"model.path={small_model}", "pooler=mean", "reference_fault.pool_eos=false", "precision=fp32"]
    ours, theirs = scored(*words, "max_length=64"), scored(f"foreign={small_model}", "accelerator=cpu")
    assert theirs.computed == len(TASKS)
    assert main_scores(theirs) == pytest.approx(main_scores(ours), abs=1e-3)
    assert scored(f"foreign={small_model}", "accelerator=cpu").computed == 0, "it is finished"
    names = {model.model_name for model in mteb.ResultCache(tmp_path / "scores").load_results().model_results}
    own, other = sorted(names, key=lambda name: "untrained" not in name)
    assert own.startswith(f"finetune+max_length-64+model.path-{small_model.name}-")
    assert own.endswith("/mean-causal-untrained")
    assert other == f"{small_model.parent.name}/{small_model.name}"


def test_what_does_not_go_with_them_is_one_line(scored, tmp_path):
    with pytest.raises(UserError, match="does not go with variants="):
        scored("foreign=x", "variants=[mean]")
    for word in ("max_length=64", "attn=bi", "evaluation.dims=[64]"):
        with pytest.raises(UserError, match=r"has no effect with foreign="):
            scored("foreign=x", word)
    with pytest.raises(UserError, match=r"foreign=.* cannot be read"):
        scored(f"foreign={tmp_path}")


def saved(small_model, path, similarity="cosine", length=64, prompts=None):
    """A folder of sentence-transformers with these settings."""
    model = SentenceTransformer(str(small_model), device="cpu", prompts=prompts)
    model.max_seq_length, model.similarity_fn_name = length, similarity
    model.save(str(path))
    return str(path)


PROMPTS = {"query": "find me: ", "STS": "how alike, by topic: ", "Retrieval-document": "apple plum saw: "}


@pytest.mark.parametrize("settings", [{"similarity": "dot"}, {"prompts": PROMPTS}])
def test_texts_are_asked_and_compared_as_the_model_says_and_as_mteb_does(
    scored, small_model, folder, tmp_path, settings
):
    name = saved(small_model, tmp_path / "it", **settings)
    ours = scored(f"foreign={name}", "tasks=[Asked,Graded]", "accelerator=cpu")
    tasks = [mteb_task(data) for data in folder_tasks(folder, ["Asked", "Graded"])]
    theirs = mteb.evaluate(SentenceTransformer(name, device="cpu"), tasks, cache=None, show_progress_bar=False)
    scores = {result.task_name: result.get_score() for result in theirs.task_results}
    assert main_scores(ours) == pytest.approx(scores, abs=1e-6)


def test_length_and_comparison_are_in_the_revision(small_model, tmp_path):
    """The same weights cut at another length or compared otherwise are another model."""
    settings = [{}, {"length": 32}, {"similarity": "dot"}, {}]
    folders = [saved(small_model, tmp_path / str(k) / "it", **of) for k, of in enumerate(settings)]
    revisions = [ForeignEncoder(name, False, "cpu").mteb_model_meta.revision for name in folders]
    assert len(set(revisions)) == 3
    assert revisions[0] == revisions[3]


def test_a_model_in_few_bits_runs_in_float32_unless_asked_otherwise(scored, small_model, tmp_path):
    """In bfloat16 a vector of unit length has a norm of up to 1.004, and so cosines above 1."""
    shutil.copytree(small_model, tmp_path / "few" / "bits")
    AutoModel.from_pretrained(small_model, dtype=torch.bfloat16).save_pretrained(tmp_path / "few" / "bits")
    AutoModel.from_pretrained(tmp_path / "few" / "bits", dtype=torch.float32).save_pretrained(tmp_path / "wide")
    for file in small_model.glob("*token*"):
        shutil.copy(file, tmp_path / "wide")
    texts = ["the sum of two arrays", "shape", "a new array"]
    few, wide = (ForeignEncoder(str(tmp_path / name), False, "cpu").model for name in ("few/bits", "wide"))
    assert few.dtype == torch.float32
    assert (few.encode(texts) == wide.encode(texts)).all()
    names = [
        scored(f"foreign={tmp_path / 'few' / 'bits'}", "accelerator=cpu", f"precision={p}") for p in ("auto", "bf16")
    ]
    assert [o.title for o in names] == ["few/bits (float32, no manifest)", "few/bits (bfloat16, no manifest)"]
    assert names[0].folder != names[1].folder


@pytest.mark.parametrize(("changed", "message"), [
    ({"num_hidden_layers": 5}, "its base has other layers than its adapter"),
    ({"num_hidden_layers": 2}, "its base has other layers than its adapter"),
    ({"num_key_value_heads": 4}, "weights have other sizes than the model"),
])  # fmt: skip
def test_an_adapter_whose_base_has_other_sizes_is_one_line(scored, small_model, tmp_path, changed, message):
    base = AutoModel.from_pretrained(small_model)
    adapted = get_peft_model(base, LoraConfig(target_modules=["q_proj", "k_proj"]))
    adapted.save_pretrained(tmp_path / "adapter")
    other = AutoModel.from_config(LlamaConfig.from_pretrained(small_model, **changed))
    other.save_pretrained(tmp_path / "other")
    settings = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    settings["base_model_name_or_path"] = str(tmp_path / "other")
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(settings))
    for file in small_model.glob("*token*"):
        shutil.copy(file, tmp_path / "adapter")
    with pytest.raises(UserError, match=message):
        scored(f"foreign={tmp_path / 'adapter'}", "accelerator=cpu")
