"""A mix: its shares, what a manifest says of it, and the order of its batches."""

from itertools import chain

import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from corpora.mix import by_source, facts, shares
from corpora.triples import Triple, fingerprint, read_triples
from training.batches import order_of
from training.checks import check_sizes
from training.held_out import split

EXAMPLES = [
    Triple(f"{s}{i}", f"{s}{i}'", source=f"{s}/{i % 2}") for s, n in (("p", 50), ("c", 30), ("g", 20)) for i in range(n)
]


def order(mix, seed=0, one_source=True, inner=False, size=4):
    own = {name: {"one_source": inner, "validation": 0} for name in "pcg"}
    data = {"mix": dict(zip("pcg", mix, strict=True)), "sources": own, "one_source": one_source}
    return order_of({"data": data, "seed": seed, "trainer": {"global_batch_size": size}}, EXAMPLES)


def origins(batch):
    return [EXAMPLES[i].source[0] for i in batch]


@pytest.mark.parametrize("mix", [(0.7, 0.3, 0), (0.5, 0.3, 0.2), (None, 0.1, 0), (0, None, 0), (0.34, 0.33, 0.33)])
@pytest.mark.parametrize("one_source", [True, False])
def test_every_prefix_of_a_run_has_the_shares(mix, one_source):
    """Within one turn, whether a turn is a batch or an example; each batch is of one source, or of all."""
    made, batches = order(mix, one_source=one_source), 60
    wanted = shares({"mix": dict(zip("pcg", mix, strict=True))})
    drawn = [origins(made.batch(step)) for step in range(batches)]
    assert all(len(batch) == 4 for batch in drawn)
    assert not one_source or all(len(set(batch)) == 1 for batch in drawn)
    for end in range(1, batches + 1):
        seen = list(chain.from_iterable(drawn[:end]))
        for name, share in wanted.items():
            assert abs(seen.count(name) - share * len(seen)) <= (4 if one_source else 1) + 1e-6


@pytest.mark.parametrize("one_source", [True, False])
def test_any_step_can_be_asked_for_first_and_the_seed_moves_examples_alone(one_source):
    whole, other = (order((0.5, 0.3, 0.2), seed, one_source) for seed in (0, 1))
    batches = [whole.batch(step) for step in range(40)]
    assert order((0.5, 0.3, 0.2), 0, one_source).batch(39) == batches[39], "resuming needs no replay"
    assert [origins(b) for b in batches] == [origins(other.batch(step)) for step in range(40)]
    assert batches[:5] != [other.batch(step) for step in range(5)]


@pytest.mark.parametrize("one_source", [True, False])
def test_shares_change_how_much_is_seen_of_a_source_not_what_comes_first(one_source):
    few, many = ([i for step in range(30) for i in order((None, c, 0), 0, one_source).batch(step)] for c in (0.1, 0.5))
    for name in "pc":
        one, two = ([i for i in seen if EXAMPLES[i].source[0] == name] for seen in (few, many))
        assert one[: len(two)] == two[: len(one)]


def test_a_source_may_keep_its_own_sources_apart_and_epochs_hold_each_example_once():
    made = order((1, 0, 0), inner=True)
    assert all(len({EXAMPLES[i].source for i in made.batch(step)}) == 1 for step in range(12))
    assert made.steps_per_epoch == 12
    assert len(set(chain.from_iterable(made.batch(step) for step in range(12)))) == 48
    assert order((0.8, 0.2, 0)).steps_per_epoch == 15, "the pairs: 12 batches, four of five steps"
    with pytest.raises(UserError, match=r"global_batch_size=21 is more than data.sources.g holds \(20\)"):
        order((0, 0, 1), size=21)


@pytest.fixture
def words(tmp_path):
    (tmp_path / "p.jsonl").write_text("".join(f'{{"query": "q{k}", "positive": "a{k}"}}\n' for k in range(20)))
    (tmp_path / "c.jsonl").write_text("".join(f'{{"text": "t{k}", "label": {k % 3}}}\n' for k in range(15)))
    found = ["data=mix", "data@data.sources.pairs=jsonl", "data@data.sources.classes=classes"]
    found += [f"data.sources.{name}.path='{tmp_path}/{name[0]}.jsonl'" for name in ("pairs", "classes")]
    return [*found, "data.sources.pairs.validation=4", "data.sources.classes.instruction=Say the label"]


def composed_mix(words, *more):
    return plain(composed("train", [*words, *more]))


def test_a_manifest_names_shares_fingerprints_and_counts(words):
    config = composed_mix(words, "data.mix={pairs: .7, classes: .3}", "data.sources.classes.validation=2")
    examples = read_triples(config["data"], "")
    assert examples == read_triples({**config["data"], "mix": {"pairs": 1, "classes": 0}}, ""), "whatever the shares"
    trained, held_out = split(examples, config["data"])
    assert [t.source for t in held_out] == ["classes/c"] * 2 + ["pairs/p"] * 4
    assert set(trained) == {t for t in examples if texts_of([t]).isdisjoint(texts_of(held_out))}
    alone = split(examples, {**config["data"], "mix": {"pairs": 1, "classes": 0}})
    assert alone == ([t for t in trained if not t.labels], held_out), "what has no share is not trained on"
    assert {t.instruction for t in examples} == {None, "Say the label"}
    said = facts(config["data"], examples, trained)
    mine = [t for t in examples if t.labels]
    assert said["classes"] == {
        "share": 0.3, "kind": "classes", "sha256": fingerprint(mine), "examples": 15, "trained_on": 9, "labels": 3,
    }  # fmt: skip
    assert (said["pairs"]["share"], said["pairs"]["examples"], said["pairs"]["trained_on"]) == (0.7, 20, 16)
    assert by_source(examples)["classes"] == [i for i, t in enumerate(examples) if t.labels]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("data.mix={pairs: .7, classes: .2}", r"data.mix=.* must sum to 1"),
        ("data.mix.graded=.2", r"Give data@data.sources.graded=<option of data=>, or data.mix.graded=0"),
        ("data.sources.pairs.validation=0", r"Give data.sources.<name>.validation=128"),
        ("data.sources.pairs.validation=10", None),
    ],
)
def test_what_is_no_mix_is_refused_in_one_line(words, word, message):
    config = composed_mix(words, word)
    if message is None:
        with pytest.raises(UserError, match=r"data.sources.pairs.validation=10 does not fit 20 examples"):
            split(read_triples(config["data"], ""), config["data"])
        return
    with pytest.raises(UserError, match=message) as error:
        check_sizes(config)
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match=message):
        read_triples(config["data"], "")


def texts_of(triples):
    return {text for t in triples for text in (t.query, t.positive)}


def test_repeated_records_and_answers_are_not_trained_on_where_one_is_held_out(capsys):
    records = [Triple(f"q{i % 60}", f"a{i % 30}") for i in range(300)]
    trained, held_out = split(records, {"validation": 7})
    assert len(held_out) == 7
    assert texts_of(trained).isdisjoint(texts_of(held_out))
    assert set(trained) == {t for t in records if texts_of([t]).isdisjoint(texts_of(held_out))}, "and all others"
    assert f"{293 - len(trained)} examples share a text with held-out ones" in capsys.readouterr().err
    blanks = [Triple("a b", "c"), Triple("A  b\n", "d"), *(Triple(f"q{i}", f"a{i}") for i in range(8))]
    assert split(blanks, {"validation": 1}) == (blanks[2:], blanks[:1]), "case and blanks do not count"
    of_labels = [Triple(f"q{i}", f"name of label {i % 3}") for i in range(60)]
    assert [len(part) for part in split(of_labels, {"validation": 7})] == [53, 7], "all share a positive"
    assert "0 examples share a text with held-out ones: not trained on; 3 positives of 10" in capsys.readouterr().err
    with pytest.raises(UserError, match="All examples of data share a text with a held-out one"):
        split([Triple("q", f"a{i}") for i in range(9)], {"validation": 3})


def test_texts_that_sources_of_a_mix_share_are_held_out_of_all():
    pairs = [Triple(f"q{i}", f"the answer to {i} in six words", source="p/x") for i in range(40)]
    whole = [f"About {i}: the answer to {i} in six words, and more." for i in range(40)]
    texts = [Triple(whole[i], whole[(i + 10) % 40], source="c/x", labels=(("l",), ("l",))) for i in range(40)]
    own = {"p": {"validation": 4}, "c": {"validation": 0}}
    data = {"mix": {"p": 0.5, "c": 0.5}, "sources": own}
    trained, held_out = split([*pairs, *texts], data)
    answers = [t.positive for t in held_out]
    assert (len(answers), len(trained)) == (4, 36 + 40 - 4), "each text is a query once and a positive once"
    assert not [text for text in texts_of(trained) if any(answer in text for answer in answers)]


@pytest.mark.parametrize(("there", "count"), [(10, 5), (11, 0), (2, 1)])
def test_a_validation_share_that_does_not_fit_is_refused(there, count):
    message = rf"data\.validation={count} does not fit {there} examples: .* at most {(there - 1) // 2}, or"
    with pytest.raises(UserError, match=message):
        split(EXAMPLES[:there], {"validation": count})
    trained, held_out = split(EXAMPLES[:10], {"validation": 4})
    assert (len(held_out), len(trained)) == (4, 6)
