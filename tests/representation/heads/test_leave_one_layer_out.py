"""A layer left out: against a head on the other layers alone, and scores against those of the whole encoder."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from cli.compose import composed, plain
from evaluation.scoring import Options, score
from poolers.shared.base import EOS, INSTRUCTION, PAD, TEXT, TokenView
from poolers.shared.registry import build_pooler
from representation.heads import leave_one_layer_out
from representation.heads.leave_one_layer_out import LayerLeftOut, Reductions, drops, layer_drops, vectors_without

D, L, B, T = 12, 4, 3, 6
ROLES = torch.tensor([[INSTRUCTION] * 2 + [TEXT] * 3 + [EOS], [TEXT, TEXT, EOS, PAD, PAD, PAD], [TEXT] * 5 + [EOS]])


def pooler(*words):
    cfg = plain(composed("train", ["pooler=multilayer", "attn=bi", "pooler.num_heads=3", "pooler.head_dim=4", *words]))
    built = build_pooler(cfg["pooler"], D, L, seed=0).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return built


def reduced(own, hidden):
    view = TokenView(ROLES)
    return [own.reduce(i, hidden[i], view) for i in own.layers]


@torch.no_grad()
@pytest.mark.parametrize("tokens", ["last", "mean", "all"])
@pytest.mark.parametrize("left_out", [0, 1, 3])
def test_it_is_the_head_on_the_other_keys_alone(tokens, left_out):
    own, hidden = pooler(f"pooler.tokens={tokens}"), torch.randn(L, B, T, D)
    vectors = vectors_without(own, torch.stack(reduced(own, hidden), dim=1), left_out)
    others = [i for i in range(L) if i != left_out]
    for b in range(B):
        real = (ROLES[b] != PAD) & (ROLES[b] != INSTRUCTION)
        kept = hidden[others][:, b, real] + own.layer_weights[others][:, None]
        if tokens == "mean":
            kept = kept.mean(dim=1, keepdim=True)
        if tokens == "last":
            kept = kept[:, -1:]
        assert torch.allclose(vectors[b], own.head(kept.flatten(0, 1)[None])[0], atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("query", ["fixed", "instruction"])
@pytest.mark.parametrize("tokens", ["last", "mean", "all"])
def test_with_all_layers_it_is_the_pooler_and_masking_is_leaving_out(tokens, query):
    own, hidden = pooler(f"pooler.tokens={tokens}", f"pooler.query={query}"), torch.randn(L, B, T, D)
    states = reduced(own, hidden)
    stacked = torch.stack(states, dim=1)
    assert torch.equal(vectors_without(own, stacked, None), own(states, TokenView(ROLES)))
    if tokens != "all":
        mask = torch.ones(B, L, dtype=torch.bool)
        mask[:, 2] = False
        keys, asked = own.keys(stacked)
        masked = own.head(keys, mask, asked)
        assert torch.allclose(vectors_without(own, stacked, 2), masked, atol=1e-5)


@pytest.fixture(scope="module")
def multilayer(two_encoders):
    return two_encoders[1]


def test_each_text_is_encoded_once_for_all_layers(multilayer, texts):
    encoder = multilayer.encoder()
    wanted = list({text.text for text in texts.every})
    held = Reductions(encoder)
    calls = []
    handle = encoder.encoder.backbone.register_forward_hook(lambda *_: calls.append(1))
    vectors = {}
    for left_out in (None, 0, 1, 2):
        (_, vectors[left_out]), *_ = LayerLeftOut(held, left_out).parts(wanted)
        if left_out is None:
            once = len(calls)
    handle.remove()
    assert len(calls) == once
    np.testing.assert_allclose(vectors[None], encoder.encode(wanted), atol=1e-6)
    assert len({v.tobytes() for v in vectors.values()}) == 4
    np.testing.assert_allclose(np.linalg.norm(vectors[1], axis=1), 1, atol=1e-5)
    assert len({LayerLeftOut(held, k).fingerprint for k in (None, 0, 1)}) == 3


@pytest.fixture(scope="module")
def scored(multilayer, texts, settings):
    return layer_drops(multilayer, texts.task_set, settings)


def test_whole_scores_are_those_of_evaluation(multilayer, texts, scored, tmp_path):
    from dataclasses import replace

    tasks = texts.task_set.tasks
    wanted = score(replace(multilayer.candidate, results=tmp_path), tasks, Options(multilayer.instructions)).scores
    whole = scored[scored["layer"] == "none"].set_index("task")["score"]
    assert dict(whole) == pytest.approx({name: value for name, (_, value) in wanted.items()}, abs=1e-6)
    assert sorted(set(scored["layer"])) == ["0", "1", "2", "none"]
    assert scored.groupby("task")["score"].nunique().max() > 1


def test_drops_are_means_over_tasks_with_students_interval():
    rng = np.random.default_rng(0)
    rows = [
        (layer, kind, f"{kind}{i}", rng.random())
        for kind, count in (("STS", 4), ("Retrieval", 1))
        for i in range(count)
        for layer in ("none", "1", "2")
    ]
    scores = pd.DataFrame(rows, columns=["layer", "type", "task", "score"])
    found = drops(scores).set_index(["type", "layer"])
    assert list(dict.fromkeys(t for t, _ in found.index)) == ["STS", "Retrieval", "All"]
    of = {(r.layer, r.task): r.score for r in scores.itertuples()}
    for kind, tasks in (("STS", [f"STS{i}" for i in range(4)]), ("All", sorted({r[2] for r in rows}))):
        own = [of["none", t] - of["2", t] for t in tasks]
        wanted = stats.ttest_1samp(own, 0).confidence_interval(0.95)
        row = found.loc[kind, "2"]
        assert (row["drop"], row["low"], row["high"]) == pytest.approx((np.mean(own), wanted.low, wanted.high))
        assert row["tasks"] == len(tasks)
    assert np.isnan(found.loc[("Retrieval", "1"), "low"])
    twice = pd.concat([scores.assign(seed=0), scores.assign(seed=1, score=scores["score"] + 0.1)])
    of_both = drops(twice).set_index(["type", "layer"])
    np.testing.assert_allclose(of_both["drop"], found["drop"])
    np.testing.assert_allclose(of_both["whole"], found["whole"] + 0.05)


def test_the_answer_is_of_multilayer_encoders_alone(two_encoders, texts, settings, scored):
    answer = leave_one_layer_out.answer(two_encoders, texts, settings)
    assert [row[0].text for row in answer.grids[0].rows[:4]] == [two_encoders[0].label] * 4
    assert answer.grids[0].header[2:] == ["All layers", "Layer 0", "Layer 1", "Layer 2"]
    assert any("nothing is trained" in note for note in answer.notes)
    assert "nothing is trained again" in answer.drawings[0].caption
    again = answer.frames["leave_one_layer_out_scores"]
    own = again[again["encoder"] == two_encoders[1].label]
    pd.testing.assert_frame_equal(own[["layer", "type", "task", "score"]].reset_index(drop=True), scored)
    assert leave_one_layer_out.answer([], texts, settings) is None
