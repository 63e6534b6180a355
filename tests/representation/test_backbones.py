"""Which starts share a backbone, and how they are called."""

from types import SimpleNamespace

from representation.backbones import by_design, distinct_backbones, over_seeds
from representation.subject import Subject


def subject(design, attn="bi", trained=False, seed=0, stages=()):
    manifest = {
        "seed": seed,
        "config": {"model": {"path": "tiny"}, "attn": {"name": attn}, "max_length": 64},
        "lineage": [
            {"objective": objective, "adapter_sha256": f"{objective}{seed}{kind}"} for objective, kind in stages
        ],
    }
    return Subject(SimpleNamespace(manifest=manifest, trained=trained), f"{design} seed={seed}", design)


RUNS = [subject("mean-bi", trained=True, seed=0), subject("mean-bi", trained=True, seed=1)]


def labels(subjects, with_attention):
    return [s.label for s in distinct_backbones(subjects, with_attention)]


def test_starts_that_differ_in_head_and_seed_are_one():
    starts = [
        subject("eos-bi untrained"),
        subject("mean-bi untrained", seed=1),
        subject("eos-causal untrained", "causal"),
    ]
    assert labels([*starts, *RUNS], True) == ["untrained, bi", "untrained, causal", "mean-bi seed=0", "mean-bi seed=1"]
    assert labels([*starts, *RUNS], False) == ["untrained", "mean-bi seed=0", "mean-bi seed=1"]


def test_starts_after_stages_are_called_by_them_and_are_a_design_over_seeds():
    made = [subject("x untrained", seed=seed, stages=[("mntp", ""), ("simcse", "")]) for seed in (0, 1)]
    own = distinct_backbones([subject("x untrained"), *made, *RUNS], True)
    assert list(by_design(own)) == ["untrained, bi", "mntp + simcse, bi", "mean-bi"]
    assert [len(seeds) for seeds in by_design(own).values()] == [1, 2, 2]
    (note,) = over_seeds(own)
    assert "mntp + simcse, bi 0, 1; mean-bi 0, 1" in note
    assert over_seeds(own[:1]) == []


def test_two_kinds_of_a_stage_are_numbered():
    made = [subject("x untrained", stages=[("mntp", kind)]) for kind in ("masked", "80")]
    assert labels(made, True) == ["mntp, bi (1)", "mntp, bi (2)"]
