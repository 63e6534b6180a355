"""Routes of a run of adapter=mixse against the equation and plain loops over single texts and their tokens."""

from math import log

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

from representation.moee.routing import section
from representation.moee.token_routes import routes
from representation.token_classes import CLASSES, TokenClasses
from tests.representation.moee.moee_settings import asked
from tests.routing import literal

OWN = ("content word", "function word", "punctuation")


@pytest.fixture(scope="module")
def run(mixse_run, small_model, tmp_path_factory):
    """(encoders, texts, settings) of a mixture and its start, and of each text its [R, T, E] weights and classes."""
    words = [f"run='{mixse_run[0]}'"]
    encoders, texts, settings = asked(small_model, tmp_path_factory.mktemp("routing"), *words)
    (studied,) = (s for s in encoders if s.trained)
    encoder = studied.encoder()
    tokenizer, classes, tokens = encoder.tokenizer, TokenClasses(encoder.tokenizer.tokenizer), []
    for text in texts.every:
        batch = tokenizer.batch(tokenizer([text.text], texts.instruction(studied, text.task, text.side)))
        kinds = [CLASSES[k] for k in classes(batch)[0].tolist()]
        tokens.append((literal(encoder.encoder, batch).numpy(), kinds))
    return encoders, texts, settings, tokens


@pytest.fixture(scope="module")
def found(run):
    return section(*run[:3])


def choices(tokens, sublayer=None):
    """[(number of the text, class, expert, entropy)] of every token and sublayer."""
    rows = []
    for i, (weights, kinds) in enumerate(tokens):
        for r in range(len(weights)) if sublayer is None else [sublayer]:
            for kind, w in zip(kinds, weights[r].tolist(), strict=True):
                rows.append((i, kind, w.index(max(w)), -sum(p * log(p) for p in w) / log(3)))
    return rows


def test_counts_and_weights_are_those_of_each_text_alone(run):
    encoders, texts, _, tokens = run
    (studied,) = (s for s in encoders if s.trained)
    measured = routes(studied, texts, texts.every)
    for i, (weights, kinds) in enumerate(tokens):
        own = [k in OWN for k in kinds]
        np.testing.assert_allclose(measured["weights"][i], weights[:, own].mean(axis=1), atol=1e-5)
        for r, _of_sublayer in enumerate(weights):
            for c, name in enumerate(CLASSES[:-1]):
                members = [e for _, kind, e, _ in choices(tokens[i : i + 1], r) if kind == name]
                assert measured["counts"][i, r, c].tolist() == [members.count(e) for e in range(3)]


@pytest.mark.parametrize("sublayer", [None, 3])
def test_the_measures_of_routers_are_those_of_lists_of_choices(run, found, sublayer):
    _, texts, _, tokens = run
    name = "all" if sublayer is None else "1 mlp"
    row = found.frames["routing_sublayers"].set_index("sublayer").loc[name]
    kinds = [text.type for text in texts.every]
    own = [c for c in choices(tokens, sublayer) if c[1] in OWN]
    experts = [c[2] for c in own]
    assert row["entropy"] == pytest.approx(np.mean([c[3] for c in own]), abs=1e-5)
    assert row["largest"] == pytest.approx(max(experts.count(e) for e in range(3)) / len(own))
    assert row["token_nmi"] == pytest.approx(normalized_mutual_info_score([kinds[c[0]] for c in own], experts))
    every = choices(tokens, sublayer)
    assert row["class_nmi"] == pytest.approx(normalized_mutual_info_score(*zip(*[c[1:3] for c in every], strict=True)))
    means = [w[:, [k in OWN for k in of]].mean(axis=1) for w, of in tokens]
    of_texts = [(m.mean(axis=0) if sublayer is None else m[sublayer]).argmax() for m in means]
    assert row["text_nmi"] == pytest.approx(normalized_mutual_info_score(kinds, of_texts), abs=1e-9)
    assert row["text_mutual"] == pytest.approx(adjusted_mutual_info_score(kinds, of_texts), abs=1e-9)


def test_shares_are_drawn_by_type_and_class_and_add_up(run, found):
    _, texts, _, tokens = run
    frame = found.frames["routing_shares"]
    sums = frame.groupby(["of", "group", "sublayer"])["share"].sum()
    assert sums.to_numpy() == pytest.approx(1)
    kind = next(iter(texts.of_type))
    members = [c[2] for c in choices(tokens, 0) if c[1] in OWN and texts.every[c[0]].type == kind]
    row = frame.query("group == @kind and sublayer == '0 self_attn' and expert == '1'").iloc[0]
    assert (row["tokens"], row["share"]) == (len(members), pytest.approx(members.count(1) / len(members)))
    assert {"EOS", "content word"} <= set(frame.query("of == 'class'")["group"])
    assert [drawing.name for drawing in found.draw()] == ["routing_type", "routing_class"]
    assert [len(table.frame) for table in found.tables[:2]] == [1 + 6, frame.groupby(["of", "group"]).ngroups]


def test_it_does_not_apply_without_a_router(run):
    encoders, texts, settings, _ = run
    starts = [studied for studied in encoders if not studied.trained]
    assert len(starts) == 1
    assert section(starts, texts, settings) is None
