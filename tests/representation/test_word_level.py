"""Labels of words: texts, states and accuracies against their definitions written out."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cli.errors import UserError
from representation import word_level
from representation.word_labels import LabelledText, code_examples, drawn, labelled_code, read_conll
from representation.word_level import BEFORE, OWN, Words, by_rule, word_states

CODE = 'if x.real:\n    y = f(a=1, b="é") @ z\n'
LABELS = "keyword name operator attribute operator name operator call operator argument operator number operator"
CONLL = "-DOCSTART- -X- O\n\nThe DT O\nUN NNP B-ORG\n\nsits VBZ O\nin IN O\n"
TEXTS = ["the sum of two arrays", "type", "a new array is returned with the shape and unbelievableness of it"]


def labelled(text):
    ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
    words = [(int(end) - len(word), int(end)) for end, word in zip(ends, text.split(), strict=True)]
    return LabelledText(text, words, ["x"] * len(words))


def test_pythons_grammar_labels_code():
    found = labelled_code(CODE)
    assert found.labels == [*LABELS.split(), "argument", "operator", "string", "operator", "operator", "name"]
    assert " ".join(found.forms) == 'if x . real : y = f ( a = 1 , b = "é" ) @ z'
    assert len(drawn([found, found, labelled("too few words")], 9, 0)) == 1


def test_examples_of_an_installed_package():
    found = list(code_examples(["colorsys", "hydra"]))
    assert len(found) > 1
    assert all(set(text.labels) <= set(LABELS.split()) | {"string"} for text in found)
    with pytest.raises(UserError, match="'no_such_package' is not installed"):
        list(code_examples(["no_such_package"]))


@pytest.mark.parametrize("mark", list("\x0b\x0c\x1c\x85\xa0\u2028\u2029"))
def test_no_mark_but_a_line_feed_ends_a_line(tmp_path, mark):
    """Neither of code, where `tokenize` counts the lines, nor of a file of columns."""
    code = f'x = "a{mark}b"\n' + CODE
    assert labelled_code(code).forms[:3] == ["x", "=", f'"a{mark}b"']
    assert labelled_code(code).forms[3:] == labelled_code(CODE).forms
    path = tmp_path / "words.txt"
    path.write_text(f"10{mark}000 CD O\r\nUN NNP B-ORG\n", encoding="utf-8", newline="")
    (one,) = read_conll(path, 1)
    assert (one.forms, one.labels) == ([f"10{mark}000", "UN"], ["CD", "NNP"])


def test_sentences_of_columns(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(CONLL)
    one, other = read_conll(path, -1)
    assert (one.text, one.forms, one.labels) == ("The UN", ["The", "UN"], ["O", "B-ORG"])
    assert read_conll(path, 1)[1].labels == ["VBZ", "IN"]
    assert (other.words, other.labels) == ([(0, 4), (5, 7)], ["O", "O"])


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a X\nb\n", -1, "words.txt, line 2 has 1 columns, and none is word_level.column=-1"),
        ("a X\nb Y\n", 2, "line 1 has 2 columns, and none is word_level.column=2"),
    ],
)
def test_files_that_are_none_of_columns_are_refused(tmp_path, text, column, message):
    path = tmp_path / "words.txt"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_conll(path, column)


def test_a_words_states_are_means_over_its_tokens_or_those_before(two_encoders):
    encoder, texts = two_encoders[1].encoder(), [labelled(text) for text in TEXTS]
    found, word = word_states(encoder, texts), 0
    for text in texts:
        row = encoder.tokenizer([text.text])[0]
        with torch.inference_mode():
            states = encoder.encoder.run_backbone(encoder.tokenizer.batch([row]))[0].float().numpy()
        offsets = encoder.tokenizer.tokenizer(text.text, add_special_tokens=False, return_offsets_mapping=True)
        first = 0 if encoder.tokenizer.bos is None else 1  # position of the text's first token
        for start, end in text.words:
            spans = enumerate(offsets["offset_mapping"], start=first)
            at = [k for k, (low, high) in spans if set(range(low, high)) & set(range(start, end))]
            if at[0] == 0:
                assert np.isnan(found[OWN][word]).all()
            else:
                np.testing.assert_allclose(found[OWN][word], states[at].mean(axis=0), atol=1e-5)
                np.testing.assert_allclose(found[BEFORE][word], states[[k - 1 for k in at]].mean(axis=0), atol=1e-5)
            word += 1
    assert word == len(found[OWN]) == len(found[BEFORE])


def test_the_state_before_a_word_knows_nothing_of_it_without_reading_ahead(two_encoders):
    """Texts that part at their last word, of one token each, under causal and under bidirectional attention."""
    ids_of = two_encoders[0].encoder().tokenizer.plain_ids
    words = ("the", "of", "and", "to", "is", "in", "for", "a")
    single = [word for word in words if len(ids_of([f"two {word}"])[0]) == len(ids_of(["two"])[0]) + 1]
    pair = [labelled(f"the sum of two {word}") for word in single[:2]]
    for studied, alike in zip(two_encoders, (True, False), strict=True):
        states = word_states(studied.encoder(), pair)
        one, other = states[BEFORE][4], states[BEFORE][9]
        assert np.allclose(one, other, atol=1e-5) == alike
        assert not np.allclose(states[OWN][4], states[OWN][9], atol=1e-3)


def texts_of(labels_of_texts):
    """A text per list of labels; the form of a word is its label, of every third word `w`."""
    made = []
    for labels in labels_of_texts:
        forms = ["w" if k % 3 == 0 else label for k, label in enumerate(labels)]
        made.append(replace(labelled(" ".join(forms)), labels=list(labels)))
    return made


def test_the_probe_and_its_baselines():
    rng = np.random.default_rng(0)
    words = Words(texts_of([rng.choice(["a", "b"], 9, p=[0.7, 0.3]) for _ in range(40)]))
    states = np.column_stack([words.labels == "b", rng.normal(size=(360, 3))]).T.T.astype(np.float32)
    states[5] = states[190] = np.nan
    right = words.probed(states)
    assert np.isnan(right[:180]).all()
    assert np.isnan(right[190])
    assert np.nanmean(right) == 1
    most = (words.labels[180:] == "a").mean()
    assert words.majority[words.tested].mean() == most
    every_third = np.tile([True, False, False], 120)
    np.testing.assert_array_equal(words.of_forms[~every_third], 1)
    np.testing.assert_array_equal(words.of_forms[every_third], words.majority[every_third])


def test_the_answer_over_a_file(two_encoders, settings, tmp_path):
    rng, path = np.random.default_rng(2), tmp_path / "words.txt"
    rows = [rng.choice(["array A", "sum B", "shape C"], 8) for _ in range(40)]
    path.write_text("\n\n".join("\n".join(row) for row in rows))
    own = {**settings["word_level"], "conll": str(path)}
    causal, bi = two_encoders
    after_mntp = replace(bi, candidate=replace(bi.candidate, manifest={**bi.candidate.manifest, "merged": [
        {"objective": "mntp", "adapter_sha256": "0"}]}))  # fmt: skip
    assert [by_rule(causal), by_rule(bi), by_rule(after_mntp)] == [OWN, OWN, BEFORE]
    answer = word_level.section(two_encoders, None, {**settings, "word_level": own})
    accuracy = answer.frames["word_level"].set_index(["encoder", "states"])["accuracy"]
    assert accuracy["untrained, causal", OWN] > 0.9  # the form is the label
    assert accuracy["untrained, causal", BEFORE] < 0.7
    first, second = answer.tables[0].frame.head(2).to_dict("records")
    assert [first[name] for name in ("states", "read by LLM2Vec", "difference")] == [OWN, "yes", 0]
    apart = accuracy["untrained, causal", BEFORE] - accuracy["untrained, causal", OWN]
    assert second["difference"] == pytest.approx(apart, abs=0.001)  # as many words in each text
    assert second["low"] < apart < second["high"] < 0
