"""Which starts share a backbone, and how they are called."""

from types import SimpleNamespace

from cli.compose import composed, plain
from representation.encoders_studied import Studied, by_design, decoders, distinct_backbones, over_seeds, start_of


def studied(design, attn="bi", trained=False, seed=0, stages=(), **further):
    manifest = {
        "seed": seed,
        "config": {"model": {"path": "tiny"}, "attn": {"name": attn}, "max_length": 64, **further},
        "lineage": [
            {"objective": objective, "adapter_sha256": f"{objective}{seed}{kind}"} for objective, kind in stages
        ],
    }
    return Studied(SimpleNamespace(manifest=manifest, trained=trained), f"{design} seed={seed}", design)


RUNS = [studied("mean-bi", trained=True, seed=0), studied("mean-bi", trained=True, seed=1)]


def labels(encoders, with_attention):
    return [s.label for s in distinct_backbones(encoders, with_attention)]


def test_starts_that_differ_in_head_and_seed_are_one():
    starts = [
        studied("eos-bi untrained"),
        studied("mean-bi untrained", seed=1),
        studied("eos-causal untrained", "causal"),
    ]
    assert labels([*starts, *RUNS], True) == ["untrained, bi", "untrained, causal", "mean-bi seed=0", "mean-bi seed=1"]
    assert labels([*starts, *RUNS], False) == ["untrained", "mean-bi seed=0", "mean-bi seed=1"]


def test_starts_after_stages_are_called_by_them_and_are_a_design_over_seeds():
    made = [studied("x untrained", seed=seed, stages=[("mntp", ""), ("simcse", "")]) for seed in (0, 1)]
    own = distinct_backbones([studied("x untrained"), *made, *RUNS], True)
    assert list(by_design(own)) == ["untrained, bi", "mntp + simcse, bi", "mean-bi"]
    assert [len(seeds) for seeds in by_design(own).values()] == [1, 2, 2]
    (note,) = over_seeds(own)
    assert "mntp + simcse, bi 0, 1; mean-bi 0, 1" in note
    assert over_seeds(own[:1]) == []


def test_two_kinds_of_a_stage_are_numbered():
    made = [studied("x untrained", stages=[("mntp", kind)]) for kind in ("masked", "80")]
    assert labels(made, True) == ["mntp, bi (1)", "mntp, bi (2)"]


def templated(name):
    return plain(composed("train", [f"template={name}"]))["template"]


def test_starts_of_two_templates_are_two_and_runs_find_their_own():
    """A template writes the text's tokens out, so its states are others: two rows, never one."""
    plain_start, echo_start = studied("a", template=templated("instruct")), studied("b", template=templated("echo"))
    older = studied("c")  # a run made before there was a choice
    for with_attention, names in (
        (False, ["untrained", "untrained, echo"]),
        (True, ["untrained, bi", "untrained, echo, bi"]),
    ):
        assert labels([plain_start, echo_start, older], with_attention) == names
    run = studied("mean-bi", trained=True, template=templated("echo"))
    assert start_of(run, [older, plain_start, echo_start]) is echo_start
    assert [d.label for d in decoders([plain_start, echo_start, older])] == ["untrained, bi", "untrained, echo, bi"]


def test_starts_that_a_gpu_computes_in_other_formats_are_two():
    exact, coarse, older = studied("a", tf32=False), studied("b", tf32=True), studied("c")
    assert labels([exact, coarse, older], True) == ["untrained, bi (1)", "untrained, bi (2)"]
    assert [d.label for d in decoders([exact, coarse, older])] == ["untrained, bi (1)", "untrained, bi (2)"]
