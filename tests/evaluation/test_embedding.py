"""The way from mteb to the encoder: each text once, the right instruction, no NaN."""

import numpy as np
import pytest

from cli.errors import UserError
from evaluation.embeddings.cache import EmbeddingCache
from evaluation.embeddings.store import EmbeddingMemory
from evaluation.instructions import read_instructions
from evaluation.scoring import Options, score
from evaluation.tasks.folder import folder_tasks
from evaluation.tasks.mteb_task import mteb_task


def test_rows_come_in_the_order_of_the_texts_and_each_text_is_encoded_once(bag) -> None:
    encoder = bag()
    cache = EmbeddingCache(encoder)
    first = cache.embed(["apple", "pear", "apple"])
    second = cache.embed(["plum", "pear"])
    np.testing.assert_array_equal(first, bag().encode(["apple", "pear", "apple"]))
    np.testing.assert_array_equal(second, bag().encode(["plum", "pear"]))
    assert encoder.seen == [("", "apple"), ("", "pear"), ("", "plum")]


def test_an_instruction_makes_another_embedding(bag) -> None:
    encoder = bag()
    cache = EmbeddingCache(encoder)
    cache.embed(["apple"])
    cache.embed(["apple"], "Find fruit")
    assert encoder.seen == [("", "apple"), ("Find fruit", "apple")]


def test_the_oldest_embeddings_are_let_go_first(bag) -> None:
    encoder = bag(embedding_dim=256)
    cache = EmbeddingCache(encoder, EmbeddingMemory(max_bytes=2 * 256 * 4))
    for text in ("apple", "pear", "plum"):
        cache.embed([text])
    np.testing.assert_array_equal(
        cache.embed(["plum", "pear", "apple"]), bag(embedding_dim=256).encode(["plum", "pear", "apple"])
    )
    assert [text for _, text in encoder.seen] == ["apple", "pear", "plum", "apple"]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_names_the_text(bag, bad: float) -> None:
    class Broken(bag):
        def encode(self, texts, instruction="", progress=None):
            rows = super().encode(texts)
            rows[[text == "pear" for text in texts]] = bad
            return rows

    with pytest.raises(UserError, match=r"for 1 of 2 texts, the first is 'pear'"):
        EmbeddingCache(Broken()).stream([["apple", "apple"], ["apple", "pear"]])


def test_one_evaluation_encodes_each_text_once_over_all_tasks(folder, candidate, bag) -> None:
    encoder = bag()
    score(candidate(encoder=encoder), [mteb_task(d) for d in folder_tasks(folder)], Options())
    assert len(encoder.seen) == len(set(encoder.seen)) > 50


def test_queries_get_the_instruction_and_documents_do_not(folder, candidate, bag) -> None:
    encoder = bag()
    tasks = [mteb_task(d) for d in folder_tasks(folder, ["Asked"])]
    outcome = score(candidate(encoder=encoder), tasks, Options(read_instructions("table")))
    said = read_instructions("table").of(tasks[0].metadata, "query")
    assert "documents" in said
    assert {instruction for instruction, _ in encoder.seen} == {"", said}
    assert sum(instruction == said for instruction, _ in encoder.seen) == 9
    assert "-table" in outcome.folder.name  # scores with instructions never mix with scores without
