"""The read-ahead probe on real small decoders: a causal one cannot tell s+ from s-, not even by rounding."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial.distance import cosine, pdist
from transformers import AutoModel

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.loading import untrained
from representation.encoders_studied import Studied
from representation.probes import read_ahead
from representation.probes.read_ahead import gains, gains_of, learnt, moved, pooled_openings
from representation.probes.read_ahead_texts import Quadruple, batches, trios

MADE = [
    Quadruple(
        "the sum of two arrays is",
        "a new array with the same shape",
        "an array of that shape is new",
        "its type of two and the first",
    ),
    Quadruple(
        "its first argument",
        "returned as the sum of its first type",
        "as a sum of its own type",
        "of the shape and the array",
    ),
    Quadruple(
        "the type of the new array and",
        "two arrays is returned with it",
        "with the shape of its sum",
        "as its first argument is the",
    ),
]


def encoder(small_model, attn, *words):
    usual = [f"attn={attn}", "pooler=mean", "precision=fp32", f"model.path={small_model}", "max_length=48"]
    return untrained(plain(composed("evaluate", [*usual, "accelerator=cpu", *words])))


def test_the_three_texts_are_of_one_length_and_begin_alike(small_model):
    own = encoder(small_model, "bi")
    for made, trio in zip(MADE, trios(MADE, own.tokenizer), strict=True):
        rows = trio.q, trio.plus, trio.minus
        assert len({tuple(row.roles) for row in rows}) == 1
        end = rows[0].roles.count(1)  # the tokens of A
        assert len({tuple(row.ids[:end]) for row in rows}) == 1
        decode = own.tokenizer.tokenizer.decode
        assert decode(rows[0].ids[:end]).strip() == made.a
        for row, rest in zip(rows, (made.b, made.c, made.d), strict=True):
            assert f"{made.a} {rest}".startswith(decode(row.ids[:-1]).strip())
            assert row.ids[-1] == own.tokenizer.eos


def test_what_does_not_fit_is_left_out(small_model):
    long = Quadruple("the sum of two arrays is " * 12, *(MADE[0].b, MADE[0].c, MADE[0].d))
    assert trios([long], encoder(small_model, "bi").tokenizer) == []
    with pytest.raises(UserError, match="leaves room for 0 of 1 texts of read_ahead"):
        read_ahead.measured(encoder(small_model, "bi"), [long])


@pytest.mark.parametrize("kernel", ["unpadded", "sdpa", "eager"])
@pytest.mark.parametrize("precision", ["fp32", "mixed"])
def test_a_causal_model_is_at_exactly_zero_and_a_bidirectional_one_is_not(small_model, kernel, precision):
    words = [f"model.attn_implementation={kernel}", f"precision={precision}", "token_budget=40"]
    found = {attn: read_ahead.measured(encoder(small_model, attn, *words), MADE) for attn in ("causal", "bi")}
    assert np.array_equal(found["causal"].gains, np.zeros((3, len(MADE))))
    assert (np.abs(found["causal"].moved) < 1e-12).all()
    assert (np.abs(found["bi"].gains) > 1e-6).all()
    assert (found["bi"].moved > 1e-6).all()


def test_only_the_last_layers_of_bi_last_read_ahead(small_model):
    values = read_ahead.measured(encoder(small_model, "bi_last", "attn.layers=1"), MADE).gains
    assert np.array_equal(values[:2], np.zeros((2, len(MADE))))
    assert (np.abs(values[2]) > 1e-6).all()


def test_pooled_openings_are_those_of_transformers(small_model):
    own, model = encoder(small_model, "causal"), AutoModel.from_pretrained(small_model).eval()
    found = trios(MADE, own.tokenizer)
    for chunk, (_, plus, _) in batches(found, own.tokenizer, 4096):
        ours = pooled_openings(own.encoder, plus)
        for row, i in enumerate(chunk):
            text = found[i].plus
            with torch.no_grad():
                states = model(torch.tensor([text.ids]), output_hidden_states=True).hidden_states[1:]
            wanted = torch.stack([s[0, : text.roles.count(1)].mean(dim=0) for s in states])
            assert torch.allclose(ours[:, row], wanted, atol=1e-5)


def test_gains_are_differences_of_cosines_and_moved_is_the_mean_distance():
    q, plus, minus = torch.randn(3, 2, 4, 7)
    values, turned = gains(q, plus, minus), moved(q, plus, minus)
    for i, j in np.ndindex(2, 4):
        near, far = cosine(q[i, j], plus[i, j]), cosine(q[i, j], minus[i, j])
        assert values[i, j] == pytest.approx(far - near, abs=1e-6)
        assert turned[i, j] == pytest.approx((far + near) / 2, abs=1e-6)
    assert not gains(q, plus, plus).any()


def test_apart_is_the_mean_distance_of_different_openings(small_model):
    own = encoder(small_model, "bi")
    found = read_ahead.measured(own, MADE)
    ((chunk, (first, *_)),) = batches(trios(MADE, own.tokenizer), own.tokenizer, 4096)
    assert len(chunk) == len(MADE)
    with torch.inference_mode():
        last = pooled_openings(own.encoder, first)[-1].numpy()
    assert found.apart[-1] == pytest.approx(np.mean(pdist(last, "cosine")), abs=1e-5)


def test_the_interval_is_students():
    values = np.array([0.3, -0.1, 0.2, 0.0, 0.5, -0.4, 0.0])
    (gain,) = gains_of([values[None]]).itertuples()
    wanted = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (gain.low, gain.high) == pytest.approx((wanted.low, wanted.high))
    assert gain.share == (3 + 0.5 * 2) / 7
    assert gains_of([values[None]])["count"].tolist() == [7]


def test_triples_are_averaged_over_seeds_before_the_interval():
    seeds = [np.array([[0.3, -0.1, 0.2]]), np.array([[0.1, 0.3, 0.0]])]
    (gain,) = gains_of(seeds).itertuples()
    wanted = stats.ttest_1samp([0.2, 0.1, 0.1], 0).confidence_interval(0.95)
    assert (gain.mean, gain.low, gain.high) == pytest.approx((0.4 / 3, wanted.low, wanted.high))
    assert gain.share == (4 + 0.5) / 6
    assert gains_of(seeds)["count"].tolist() == [3]


def test_a_causal_layer_that_knows_more_is_refused():
    studied = SimpleNamespace(label="eos-causal", config={"attn": {"name": "causal"}})
    assert read_ahead._checked(studied, np.zeros((2, 3))) == (2, 0.0)
    assert read_ahead._checked(studied, np.full((2, 3), -1e-7)) == (2, 1e-7)
    with pytest.raises(UserError, match="a causal layer knows what follows"):
        read_ahead._checked(studied, np.full((2, 3), 0.1))
    partly = SimpleNamespace(label="x", config={"attn": {"name": "bi_last", "layers": 1}})
    assert read_ahead._checked(partly, np.array([[0.0], [0.1]])) == (1, 0.0)
    bi = SimpleNamespace(label="x", config={"attn": {"name": "bi"}})
    assert read_ahead._checked(bi, np.array([[0.0], [0.1]])) == (0, 0.0)
    assert read_ahead._check_notes({"x": (0, 0.0)}) == []
    assert "exactly 0" in read_ahead._check_notes({"x": (6, 0.0)})[0]
    assert "rounding" in read_ahead._check_notes({"x": (6, 0.0), "y": (5, 1e-7)})[0]


def test_what_training_brought_is_paired_by_triple():
    config = {"model": "tiny", "attn": {"name": "bi"}}
    start, run, other = (
        Studied(
            SimpleNamespace(trained=trained, manifest={"seed": seed, "config": config, "lineage": []}),
            f"{name}{seed}",
            name,
        )
        for name, trained, seed in (("untrained, bi", False, 0), ("mean-bi", True, 0), ("mean-bi", True, 1))
    )
    values = [np.array([[9, 9, 9], [0.1, 0.2, 0.3]]), np.array([[0, 0, 0], [0.2, 0.5, 0.3]]), np.array([[1.0] * 3] * 2)]
    encoders = [start, run, other]
    change = (np.array([0.1, 0.3, 0.0]) + np.array([0.9, 0.8, 0.7])) / 2
    wanted = stats.ttest_1samp(change, 0).confidence_interval(0.95)
    assert learnt("mean-bi", encoders, values) == pytest.approx((change.mean(), wanted.low, wanted.high))
    assert learnt("untrained, bi", encoders, values) is None
    assert learnt("mean-bi", [run], values[1:2]) is None


def test_the_answer_has_a_line_for_each_backbone(two_encoders, texts, settings, monkeypatch):
    monkeypatch.setattr(read_ahead, "held_out", lambda _: MADE)
    answer = read_ahead.answer(two_encoders, texts, {**settings, "read_ahead": {"triples": 3}})
    assert [row[0].text for row in answer.grids[0].rows] == ["untrained, causal", "untrained, bi"]
    assert answer.grids[0].rows[0][1].text == "+.0000"
    difference, turned, share = (float(answer.grids[0].rows[1][k].text) for k in (1, 6, 7))
    assert difference == pytest.approx(turned * share, abs=2e-4)
    frame = answer.frames["read_ahead"]
    assert list(frame["layer"]) == [1, 2, 3] * 2
    assert (frame.loc[frame["encoder"] == "untrained, causal", ["mean", "low", "high"]] == 0).all(axis=None)
    assert "held-out packages" in answer.drawings[0].caption
    assert answer.drawings[0].caption.endswith("not drawn: untrained, causal.")
