"""Each key of manifests that real runs wrote, planted one at a time, is named by the audit or stands on the list of
those that say nothing; honest twins differ in nothing.
"""

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from analysis.control.rule import judge
from analysis.manifests.designs import design_of, read_manifest
from records.manifest import below
from tests.analysis.manifests import evaluation, seal
from tests.triples import quick_run, write_triples
from training.run import train_run

TWINS = 50
NAMED = {"mean": 140, "lastlayer": 145}
OUTCOMES = ("loss", "tokens", "seconds", "tokens_per_second", "peak_memory_bytes", "flops")
NOT_COMPARED = {  # and why
    **dict.fromkeys((*OUTCOMES, "parameters", "validation_ndcg_at_10", "states", "files", "texts_cut"), "outcomes"),
    **dict.fromkeys(("study", "config.study", "config.runs_dir", "config.cache_dir", "config.logging"), "bookkeeping"),
    **dict.fromkeys(("config.resume", "config.check", "config.axes", "config.trainer.progress"), "bookkeeping"),
    **dict.fromkeys(("config.launcher", "config.backbone.state_limit"), "bookkeeping"),
    **dict.fromkeys(
        ("config.precision", "config.compile", "config.accelerator", "config.trainer.threads", "config.token_budget"),
        "wishes: the fact is compared",
    ),
    **dict.fromkeys(
        ("config.init.merge", "config.init.lora", "config.adapter.experts"), "wishes: the runs are compared"
    ),
    **dict.fromkeys(("code.commit", "code.dirty"), "the digest of the sources is compared"),
    **dict.fromkeys(("data.triples", "data.trained_on", "data.sources", "data.instructed"), "data.sha256 is compared"),
    **dict.fromkeys(
        ("evaluation.fingerprint", "evaluation.texts", "evaluation.tokens", "evaluation.seconds"), "outcomes"
    ),
    "evaluation.empty": "evaluation.inputs are compared",
    "evaluation.overlap": "data.sha256 and evaluation.inputs are compared, which it follows from",
    "evaluation.instructions_used": "evaluation.inputs are compared",
    "status": "a run that is not finished is left out by name",
    "manifest_version": "versions that are mixed are refused",
    "manifest_sha256": "a seal that does not fit is refused",
    "config.seed": "seed is compared, beside it",
    "config.evaluation.instructions": "evaluation.instructions is compared",
}


@pytest.fixture(scope="module")
def manifests(compose_cell, tmp_path_factory) -> dict[str, dict]:
    """Of a run of one step of two designs, as if they had been scored on two tasks."""
    folder, found = tmp_path_factory.mktemp("audited"), {}
    words = quick_run(write_triples(folder / "triples.jsonl"), steps=1)
    for pooler, attn in (("mean", "causal"), ("lastlayer", "bi")):
        run = folder / "s" / f"{pooler}-{attn}" / "seed0"
        train_run(compose_cell(pooler, attn, *words), run)
        found[pooler] = json.loads((run / "manifest.json").read_text()) | {"evaluation": evaluation(["STS0", "STS1"])}
    return found


def leaves(value: object, path: tuple[str, ...] = ()):
    """Yield the path of each value of a manifest that has no keys of its own."""
    if not isinstance(value, dict) or not value:
        yield path
        return
    for key, inner in value.items():
        yield from leaves(inner, (*path, key))


def planted(manifest: dict, path: tuple[str, ...]) -> dict:
    """The manifest with another value there."""
    changed = deepcopy(manifest)
    *parents, last = path
    place = changed
    for key in parents:
        place = place[key]
    old = place[last]
    if isinstance(old, bool):
        place[last] = not old
    elif isinstance(old, int | float):
        place[last] = old + 1
    else:
        place[last] = [*old, "planted"] if isinstance(old, list) else f"{old} planted"
    return changed


def read(file: Path, manifest: dict) -> Any:
    """The run of a manifest, read from its file."""
    file.write_text(json.dumps(seal({key: v for key, v in manifest.items() if key != "manifest_sha256"})))
    return read_manifest(file)


def named(one: Any, other: Any, *factors: str) -> set[str]:
    """The keys that the audit names between two runs; the factors that vary among them."""
    designs = {name: design_of([run], name, factors) for name, run in (("one", one), ("other", other))}
    varying = {factor for factor in factors if designs["one"].factors[factor] != designs["other"].factors[factor]}
    return {*judge(designs, factors).refused, *varying}


@pytest.mark.parametrize("design", ["mean", "lastlayer"])
def test_each_planted_key_is_named_alone(manifests, tmp_path, design):
    manifest, wrong, count = manifests[design], [], 0
    one = read(tmp_path / "one.json", manifest)
    for path in leaves(manifest):
        key = ".".join(path)
        if key in ("status", "manifest_version", "manifest_sha256"):
            continue
        other = read(tmp_path / "other.json", planted(manifest, path))
        found = named(one, other, "pooler", "attn") | named(one, other, "objective")
        taken_over = path[:2] == ("config", "head") and path[-1] in manifest["config"]["pooler"]  # as it was built
        if taken_over or below(key, tuple(NOT_COMPARED)):
            wrong += [f"{key} is on the list and named as {found}"] if found else []
            continue
        count += 1
        if key.removeprefix("config.") not in found:
            wrong.append(f"{key}: named {sorted(found) or 'nothing'}")
    assert not wrong, "\n".join(wrong)
    assert count >= NAMED[design], "keys have gone"


def test_honest_twins_differ_in_nothing(manifests, tmp_path):
    """Another folder, cost and commit, fifty times, each other among them at random."""
    for number in range(TWINS):
        draw = random.Random(number)
        manifest = manifests[draw.choice(("mean", "lastlayer"))]
        twin = deepcopy(manifest)
        twin["config"] |= {"runs_dir": f"/data/{number}", "cache_dir": f"/scratch/{number}", "study": f"s{number}"}
        twin |= {"study": f"s{number}", "seconds": draw.random(), "tokens_per_second": draw.random()}
        twin["code"] |= {"commit": f"{number:040x}", "dirty": draw.random() < 0.5}
        twin["peak_memory_bytes"] = draw.randrange(10**12)
        twin["config"]["logging"] |= {"csv": draw.random() < 0.5}
        one, other = (read(tmp_path / f"{name}.json", held) for name, held in (("one", manifest), ("other", twin)))
        assert named(one, other, "pooler", "attn") == set()
