"""The read-ahead probe on real small decoders: a causal one cannot tell s+ from s-, not even by rounding."""

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial.distance import cosine
from transformers import AutoModel

from cli.compose import composed, plain
from cli.errors import UserError
from corpora.docstrings import Docstring
from encoders.loading import untrained
from representation import read_ahead
from representation.read_ahead import gains, gains_of, pooled_openings
from representation.read_ahead_texts import ALIKE, Quadruple, batches, quadruples, shared_words, trios

MADE = [
    Quadruple(*made.split(" | "))
    for made in (
        "the sum of two arrays is | a new array with the same shape | an array of that shape is new | "
        "its type of two and the first",
        "its first argument | returned as the sum of its first type | as a sum of its own type | "
        "of the shape and the array",
        "the type of the new array and | two arrays is returned with it | with the shape of its sum | "
        "as its first argument is the",
    )
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
    assert np.array_equal(found["causal"], np.zeros((3, len(MADE))))
    assert (np.abs(found["bi"]) > 1e-6).all()


def test_only_the_last_layers_of_bi_last_read_ahead(small_model):
    values = read_ahead.measured(encoder(small_model, "bi_last", "attn.layers=1"), MADE)
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


def test_gains_are_differences_of_cosines():
    q, plus, minus = torch.randn(3, 2, 4, 7)
    values = gains(q, plus, minus)
    for i, j in np.ndindex(2, 4):
        near, far = cosine(q[i, j], plus[i, j]), cosine(q[i, j], minus[i, j])
        assert values[i, j] == pytest.approx(far - near, abs=1e-6)
    assert not gains(q, plus, plus).any()


def test_triples_are_averaged_over_seeds_before_the_interval():
    seeds = [np.array([[0.3, -0.1, 0.2]]), np.array([[0.1, 0.3, 0.0]])]
    (gain,) = gains_of(seeds).itertuples()
    wanted = stats.ttest_1samp([0.2, 0.1, 0.1], 0).confidence_interval(0.95)
    assert (gain.mean, gain.low, gain.high) == pytest.approx((0.4 / 3, wanted.low, wanted.high))
    assert gain.share == (4 + 0.5) / 6  # of what is 0 a half counts
    assert gains_of(seeds)["count"].tolist() == [3]


def test_the_answer_has_a_line_for_each_backbone(two_encoders, texts, settings, monkeypatch):
    monkeypatch.setattr(read_ahead, "held_out", lambda _: MADE)
    answer = read_ahead.section(two_encoders, texts, {**settings, "read_ahead": {"triples": 3}})
    assert list(answer.tables[0].frame["encoder"]) == ["untrained, causal", "untrained, bi"]
    frame = answer.frames["read_ahead"]
    assert list(frame["layer"]) == [1, 2, 3] * 2
    assert (frame.loc[frame["encoder"] == "untrained, causal", ["mean", "low", "high"]] == 0).all(axis=None)
    assert len(answer.draw()[0].figure.axes[0].lines) == 2 + 1


TOPICS = {
    "fruit": "apple pear plum cherry grape melon fig lime quince mango",
    "tools": "hammer saw drill plane chisel file clamp vice wrench pliers",
    "birds": "robin wren heron crane swift finch eagle raven stork owl",
    "rocks": "granite basalt marble slate flint chalk gneiss shale quartz opal",
}


def docstrings():
    found = []
    for package, words in TOPICS.items():
        listed = words.split()
        for i in range(len(listed)):
            turned = listed[i:] + listed[:i]
            summary = " ".join(turned[:7]).capitalize() + "."
            body = " ".join(["Longer", *turned, *turned]) + ".\nParameters\nx : int\nAnother word."
            found.append(Docstring(package, f"{package}.m", f"f{i}", "function", summary, body))
    return found


def package_of(text):
    word = text.lower().replace(".", "").split()[-1]
    return next(package for package, words in TOPICS.items() if word in words.split())


def test_three_packages_and_one_length():
    made = quadruples(docstrings(), 20)
    assert len(made) == 20
    for t in made:
        assert package_of(t.b) == package_of(t.c)
        assert len({package_of(x) for x in (t.a, t.b, t.d)}) == 3
        assert len({len(x.split()) for x in (t.b, t.c, t.d)}) == 1
        assert t.a in {d.summary for d in docstrings()}
        assert max(shared_words(t.d, t.b), shared_words(t.d, t.c)) <= ALIKE < shared_words(t.b, t.c)


def test_the_seed_alone_decides():
    given = docstrings()
    assert quadruples(given, 20, seed=1) == quadruples(given[::-1], 20, seed=1) != quadruples(given, 20, seed=2)
    assert quadruples(given, 20, seed=1)[:5] == quadruples(given, 5, seed=1)
