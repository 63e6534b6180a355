"""What mteb's tasks have to embed, against sums written out and against tasks whose texts are at hand."""

from types import SimpleNamespace

import mteb
import pytest

from evaluation.instructions import Instructions, read_instructions
from evaluation.plan.text_volume import Volume, text_volumes, tokens_of
from evaluation.plan.work import Column, columns_of


@pytest.fixture(scope="module")
def tasks():
    return mteb.get_benchmark("MTEB(eng, v1)").tasks


def by_side(volumes):
    return {v.side: v for v in volumes}


def test_a_corpus_and_its_queries(tasks):
    (task,) = [t for t in tasks if t.metadata.name == "SciFact"]
    found = by_side(text_volumes([task]))
    assert (found["document"].texts, found["query"].texts) == (5183, 300)
    assert found["document"].characters == pytest.approx(1499.41, abs=0.01)
    lengths = {"characters_a_token": 4.0, "max_length": 512}
    assert found["document"].tokens(**lengths) == pytest.approx(5183 * (1 + 1499.4117 / 4), rel=1e-6)
    assert tokens_of(list(found.values()), [task], Instructions(), **lengths) == pytest.approx(
        5183 * (1 + 1499.4117 / 4) + 300 * (1 + 90.34667 / 4), rel=1e-6
    )


def test_repeated_texts_count_once(tasks):
    (task,) = [t for t in tasks if t.metadata.name == "MindSmallReranking"]
    assert by_side(text_volumes([task]))["query"].texts == 37_162  # of 2,362,514 rows


def test_english_alone_of_a_task_of_many_languages(tasks):
    (task,) = [t for t in tasks if t.metadata.name == "STS22"]
    assert sorted(v.texts for v in text_volumes([task])) == [195, 197]


def test_a_classification_encodes_its_test_split_and_what_it_draws(tasks):
    (task,) = [t for t in tasks if t.metadata.name == "AmazonPolarityClassification"]
    test, drawn = text_volumes([task])
    assert drawn.texts == 10 * 8 * 2  # experiments, texts of a label, labels: not the 3.6 million of the split
    assert test.texts > 100_000


def test_a_summarization_encodes_summaries_alone(tasks):
    (task,) = [t for t in tasks if t.metadata.name == "SummEval"]
    assert sum(v.texts for v in text_volumes([task])) == 1100 + 1548


def test_every_task_and_every_forum_is_counted(tasks):
    found = text_volumes(tasks)
    names = {v.task for v in found}
    assert len(names) == 67  # 56 tasks, one of them twelve forums
    assert len([n for n in names if n.startswith("CQADupstack")]) == 12
    assert all(v.texts > 0 and v.characters > 0 for v in found)


def test_instructions_and_cutting_count():
    volume = Volume("t", "STS", "query", 10, 40.0)
    assert volume.tokens(4.0, 512) == 10 * 11
    assert volume.tokens(4.0, 512, "x" * 22) == 10 * 21  # the template has 18 characters
    assert volume.tokens(4.0, 8, "x" * 22) == 10 * 8
    metadata = SimpleNamespace(name="STS12", type="STS")
    task = SimpleNamespace(metadata=metadata)
    table = read_instructions("table")
    plain = tokens_of(
        [Volume("STS12", "STS", "query", 1, 40.0)], [task], Instructions(), characters_a_token=4.0, max_length=512
    )
    told = tokens_of([Volume("STS12", "STS", "query", 1, 40.0)], [task], table, characters_a_token=4.0, max_length=512)
    assert told == plain + (18 + len(table.of(metadata, "query"))) / 4


def test_a_language_that_mteb_did_not_count_is_not_passed_over():
    """The names of EPBench's subsets are others in mteb's statistics: without the check it would cost nothing."""
    task = mteb.get_task("EPBench")
    with pytest.raises(LookupError, match="default_claude_long__Entities"):
        text_volumes([task])
    assert columns_of(task) is None


def test_statistics_that_do_not_add_up_each_column_count_as_one():
    columns = columns_of(mteb.get_task("SynPerTextToneClassification"))
    assert columns == [Column(2928, 648_514), Column(16_587, 3_664_508)]  # the test split, the training split


def test_a_task_without_statistics_is_named():
    task = SimpleNamespace(metadata=SimpleNamespace(name="Unknown", descriptive_stats=None))
    with pytest.raises(LookupError, match="no statistics of Unknown"):
        text_volumes([task])
