"""variants=: names, manifests that compare, and scores that are those of each pooler alone."""

import json
from pathlib import Path

import pytest
from safetensors.torch import save_file

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.identity import base_fingerprints
from encoders.text_encoder import TextEncoder
from evaluation.candidates import candidates, configured, pooler_word
from evaluation.command import run
from evaluation.embeddings import _shared
from evaluation.variants import check_variants, read_by, share_states
from records.manifest import MANIFEST_VERSION, sealed

TASKS = "tasks=[Asked,Graded,Pairs]"


@pytest.fixture
def words(small_model, folder, tmp_path) -> list[str]:
    setting = ["attn=bi", f"model.path={small_model}", "precision=fp32", "text_length=24", "accelerator=cpu"]
    return ["run=null", *setting, f"tasks_dir={folder}", "tasks=[Asked,Graded,Pairs,Clusters]", "progress=false"]


def scores(root: Path) -> dict[str, dict]:
    """design -> task -> scores."""
    found: dict[str, dict] = {}
    for path in root.rglob("seed*/*.json"):
        if path.stem in ("Asked", "Graded", "Pairs", "Clusters"):
            found.setdefault(path.parts[-3], {})[path.stem] = json.loads(path.read_text())["scores"]
    return found


def test_names_are_checked_before_anything_is_loaded() -> None:
    assert check_variants(None) == []
    assert check_variants("mean") == ["mean"]
    assert check_variants(["layer:*/eos", "mean", "mean"]) == ["layer:*/eos", "mean"]
    choices = "eos, mean, weightedmean, cls, layer:<number or"
    of_routers = "moee", "moee:HS", "moee:hidden@2", "moee:routing/last/all", "moee:sum@-1", "moee:hidden/all"
    for wrong in ("maen", "layer:x/mean", "layer:1/max", "layer:1", "lastlayer", 3, *of_routers):
        with pytest.raises(UserError, match=rf"no variant '{wrong}'. Choices: {choices}"):
            check_variants([wrong])


def test_a_star_is_every_layer(small_model, tmp_path) -> None:
    cfg = plain(composed("evaluate", [f"model.path='{small_model}'", f"runs_dir='{tmp_path}'", "attn=bi"]))
    found = read_by(candidates(cfg), ["layer:*/mean", "mean", "layer:1/mean"])
    layers = [f"layer{i}_mean-bi-untrained" for i in range(3)]
    assert [c.name.partition("/")[2] for c in found] == [*layers, "mean-bi-untrained"]
    assert [c.manifest["config"]["pooler"]["name"] for c in found] == ["layer"] * 3 + ["mean"]


@pytest.mark.parametrize("kept", [True, False])
def test_what_was_embedded_before_is_not_again(words, tmp_path, monkeypatch, kept) -> None:
    words, ran, real = [*words, f"cache_dir={tmp_path / 'cache'}", f"embeddings={kept}"], [], TextEncoder.run
    run(configured([*words, "variants=[eos,mean]", f"results={tmp_path / 'a'}"]))
    monkeypatch.setattr(TextEncoder, "run", lambda *given: ran.append(len(given[1])) or real(*given))
    run(configured([*words, "variants=[mean,eos]", f"results={tmp_path / 'b'}"]))
    assert (ran == []) == (tmp_path / "cache" / "embeddings").exists() == kept
    assert scores(tmp_path / "a") == scores(tmp_path / "b")


def test_variants_compare_under_the_control_rule(words, tmp_path, capsys) -> None:
    from analysis.control.__main__ import find_runs
    from analysis.control.audit import audit

    shared = [*words, f"runs_dir={tmp_path}", f"cache_dir={tmp_path / 'cache'}"]
    run(configured([*shared, "variants=[mean,layer:0/mean,layer:1/mean]"]))
    run(configured([*shared, "pooler=eos"]))  # scored alone, compared with variants
    factors = ("pooler", "attn")
    text, control, cells = audit(*find_runs([str(tmp_path)], factors), factors, ())
    assert control.refused == {}
    assert len(cells) == 4, text


def make_run(root: Path, config: dict, **facts: str) -> Path:
    folder = root / "bundled" / "mean-bi" / "seed0"
    folder.mkdir(parents=True)
    manifest = {"study": "bundled", "pooler": "mean", "attn": "bi", "seed": 0, "status": "finished", "config": config}
    manifest |= {"manifest_version": MANIFEST_VERSION, "parameters": {"adapter": 5, "head": 7}, "loss": 1.0, **facts}
    (folder / "manifest.json").write_text(json.dumps(sealed(manifest)))
    return folder


def test_a_run_read_by_another_pooler_is_named_after_both(tmp_path, compose_cell) -> None:
    config = compose_cell("mean", "bi") | {"evaluation": plain(composed("evaluate"))["evaluation"]}
    folder = make_run(tmp_path, config)
    cfg = plain(composed("evaluate")) | {"run": str(folder), "untrained": "also"}
    found = read_by(candidates(cfg), ["mean", "eos", "layer:1/eos"])
    names = ["mean-bi-untrained", "eos-bi-untrained", "layer1_eos-bi-untrained"]
    names += ["mean-bi", "eos_of_mean-bi", "layer1_eos_of_mean-bi"]
    assert [c.name for c in found] == [f"bundled/{name}" for name in names]
    itself, other = found[3].manifest, found[4].manifest
    assert itself == candidates(cfg)[1].manifest
    assert other["config"]["pooler"]["name"] == "eos"
    assert other["trained_with"] == config["pooler"]
    assert other["parameters"] == {"adapter": 5, "head": 0}
    assert "loss" not in found[1].manifest


def test_one_checkpoint_is_held_at_a_time(words, small_model, tmp_path) -> None:
    cfg = plain(composed("evaluate", [f"model.path='{small_model}'", f"runs_dir='{tmp_path}'", "precision=fp32"]))
    one, two = (read_by(candidates(cfg | {"max_length": n}), ["eos", "mean"]) for n in (24, 32))
    first = one[0].embeddings(None)
    assert one[1].embeddings(None).encoder is first.encoder
    second = two[0].embeddings(None)
    assert [whole.encoder for whole in _shared.values()] == [second.encoder]
    candidates(cfg)[0].embeddings(None)
    assert not _shared, "an encoder that shares with no one is loaded into their place"


def test_what_has_the_same_states_is_read_from_the_same_forward_passes(words, tmp_path) -> None:
    """Designs and seeds of one attention differ in heads alone before training, and after it on a frozen base."""
    cells = [("eos", "bi", 0), ("lastlayer", "bi", 0), ("mean", "causal", 0), ("lastlayer", "bi", 1)]
    cells += [("multilayer", "causal", 2), ("latent", "bi_last", 0), ("lastlayer", "bi", 3), ("mean", "bi", 4)]
    usual = [w for w in words if not w.startswith(("tasks", "attn", "model.path"))]
    usual += [w.replace("=", "='") + "'" for w in (*(w for w in words if "model.path" in w), f"runs_dir={tmp_path}")]
    each = []
    for pooler, attn, seed in cells:
        further = ["attn.layers=1"] if attn == "bi_last" else []
        further += ["reference_fault.mask_padding=false"] * (seed == 3)  # which takes another kernel
        further += ["normalize=false"] * (seed == 4)
        cfg = composed("evaluate", [*usual, f"pooler={pooler}", f"attn={attn}", f"seed={seed}", *further])
        each += candidates(plain(cfg))
    for seed in (5, 6):  # two heads as trained on a frozen base
        cfg = plain(composed("evaluate", [*usual, "pooler=lastlayer", "attn=bi"]))
        head = each[1].load().encoder.pooler.state_dict()  # type: ignore[attr-defined]
        config = cfg | {"backbone": {"frozen": True}}
        folder = make_run(tmp_path / f"frozen{seed}", config, **base_fingerprints(cfg["model"]))
        save_file({name: tensor / seed for name, tensor in head.items()}, folder / "head.safetensors")
        each += candidates(cfg | {"run": str(folder)})
    found = share_states(each)
    assert [(c.title, c.manifest) for c in found] == [(c.title, c.manifest) for c in each]
    texts = [f"a text {'of words ' * n}{n}" for n in range(12)]
    groups: dict[str, list] = {}
    for one, together in zip([alone.embeddings(None) for alone in each], found, strict=True):
        two = together.embeddings(None)
        assert one.fingerprint == two.fingerprint
        assert one.embed(texts).tobytes() == two.embed(texts).tobytes()
        groups.setdefault(together.checkpoint, []).append(together.title)
    assert [len(titles) for titles in groups.values()] == [3, 2, 1, 1, 1, 2]
    assert len({c.embeddings(None).fingerprint for c in found}) == len(found)


MEANT = {
    "moee:sum": ("moee", {}),
    "moee:sum@1": ("moee", {}),
    "moee:hidden": ("moee_hidden", {"variant": "hidden"}),
    "moee:hidden/last/all": ("moee_hidden_last_all", {"variant": "hidden", "hidden_layers": "all"}),
    "moee:hidden/mean": ("moee_hidden_mean", {"variant": "hidden", "hidden_tokens": "mean", "routing_tokens": "mean"}),
    "moee:routing": ("moee_routing", {"variant": "routing"}),
    "moee:routing/mean": (
        "moee_routing_mean",
        {"variant": "routing", "hidden_tokens": "mean", "routing_tokens": "mean"},
    ),
    "moee:concat/last/mean": ("moee_concat_last_mean", {"variant": "concat", "hidden_layers": "mean"}),
    "moee:sum@0.5/mean": ("moee_sum_0.5_mean", {"alpha": 0.5, "hidden_tokens": "mean", "routing_tokens": "mean"}),
    "moee:sum@2": ("moee_sum_2", {"alpha": 2.0}),
}


@pytest.fixture
def moe_words(small_moe, words) -> list[str]:
    return [*(word for word in words if not word.startswith(("model", "tasks="))), f"model.path={small_moe}", TASKS]


def test_what_the_words_mean(small_moe, tmp_path):
    """Each is pooler=moee with these keys, and has a name of its own."""
    cfg = plain(composed("evaluate", [f"model.path='{small_moe}'", f"runs_dir='{tmp_path}'"]))
    usual = plain(composed("evaluate", ["pooler=moee"]))["pooler"]
    for name, (word, changed) in MEANT.items():
        (found,) = read_by(candidates(cfg), check_variants(name))
        assert found.manifest["pooler"] == word
        assert found.manifest["config"]["pooler"] == {**usual, **changed}
    assert len(read_by(candidates(cfg), list(MEANT))) == len(MEANT) - 1, "moee:sum@1 is moee:sum"


def test_names_tell_poolers_apart():
    usual = plain(composed("evaluate", ["pooler=moee"]))["pooler"]
    assert pooler_word({**usual, "hidden_tokens": "mean"}) == "moee_sum_hmean_rlast"
    assert pooler_word({**usual, "routing_tokens": "mean"}) == "moee_sum_hlast_rmean"


def test_variants_of_routers_are_scored_in_every_number_format(moe_words, tmp_path, capsys):
    """Weights are stored in the format of the products, states are float32 next to them."""
    for precision in ("mixed", "bf16"):
        place = [f"results={tmp_path / precision}", f"cache_dir={tmp_path / precision}", f"precision={precision}"]
        run(configured([*moe_words, *place, "variants=[mean,moee:routing]", "tasks=[Graded]"]))
        assert capsys.readouterr().out.count("1 new scores") == 2
