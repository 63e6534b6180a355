"""The way from mteb to the encoder: each text once, the right instruction, the very bits again, no NaN."""

import hashlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.loading import untrained
from evaluation.embeddings import Embeddings, EmbeddingStore, keys_of
from evaluation.instructions import Instructions, read_instructions
from evaluation.mteb_encoder import MtebEncoder, model_meta
from evaluation.scoring import Options, score
from evaluation.tasks.chosen import mteb_task
from evaluation.tasks.folder import folder_tasks

TEXTS = [f"apple pear {i}" for i in range(50)]


@pytest.fixture
def opened(bag, tmp_path):
    """Embeddings on disk of a fresh encoder: opened(salt="other weights")."""
    return lambda **changes: Embeddings.of(bag(**changes), tmp_path)


def test_rows_come_in_the_order_of_the_texts_and_each_text_is_encoded_once(bag) -> None:
    embeddings = Embeddings.of(bag())
    first = embeddings.embed(["apple", "pear", "apple"])
    second = embeddings.embed(["plum", "pear"])
    np.testing.assert_array_equal(first, bag().encode(["apple", "pear", "apple"]))
    np.testing.assert_array_equal(second, bag().encode(["plum", "pear"]))
    assert embeddings.embed([]).shape == (0, 512)
    assert embeddings.encoder.seen == [("", "apple"), ("", "pear"), ("", "plum")]


def test_another_command_reads_the_very_bits(opened) -> None:
    first, second = opened(), opened()
    wanted = first.embed(TEXTS, "find")
    third = opened()
    np.testing.assert_array_equal(third.embed(TEXTS[::-1], "find"), wanted[::-1])
    assert third.encoder.seen == []
    np.testing.assert_array_equal(second.embed(TEXTS, "find"), wanted)  # side by side: each for itself
    np.testing.assert_array_equal(opened().embed(TEXTS, "find"), wanted)


def test_instruction_weights_and_settings_part_the_vectors(opened) -> None:
    opened().embed(["apple"])
    assert len(opened().encoder.seen) == 0
    others = [(opened(), "find"), (opened(salt="trained"), ""), (opened(settings={"device": "cuda"}), "")]
    for embeddings, instruction in others:
        embeddings.embed(["apple"], instruction)
        assert len(embeddings.encoder.seen) == 1


def test_the_code_parts_the_vectors(opened, monkeypatch) -> None:
    opened().embed(["apple"])
    monkeypatch.setattr("encoders.identity.sources", lambda: "mended")
    embeddings = opened()
    embeddings.embed(["apple"])
    assert len(embeddings.encoder.seen) == 1


def test_where_the_instruction_ends_is_part_of_the_key() -> None:
    pairs = [("", "ab"), ("a", "b"), ("ab", ""), ("1 a", "b"), ("", "1 ab")]
    assert len({keys_of(instruction, [text])[0] for instruction, text in pairs}) == len(pairs)


def test_rows_without_a_key_do_not_count(tmp_path) -> None:
    """A kill may leave vectors whose keys were not written, and half a row; both are left behind."""
    keys = keys_of("", TEXTS)
    store = EmbeddingStore(tmp_path, 8)
    store.add(keys[:20], np.arange(160, dtype=np.float32).reshape(20, 8))
    store.flush()
    (vectors,) = tmp_path.glob("*.vectors")
    with vectors.open("ab") as file:
        file.write(b"half a row")
    again = EmbeddingStore(tmp_path, 8)
    assert again.lacking(keys) == list(range(20, 50))
    np.testing.assert_array_equal(again.read([keys[3], keys[1]]), [np.arange(24, 32), np.arange(8, 16)])
    np.testing.assert_array_equal(again.read(keys[:2], slice(2, 4)), [[2, 3], [10, 11]])


@pytest.mark.parametrize("batches", [[], [[]], [["a"]], [['q"uote', "ü\n"], [], ["b", "c"]]], ids=str)
def test_the_digest_of_the_inputs_is_that_of_their_json(batches, bag, folder) -> None:
    embeddings, meta = Embeddings.of(bag()), mteb_task(folder_tasks(folder, ["Pairs"])[0]).metadata
    adapter = MtebEncoder(embeddings, model_meta("a/b", "c", embeddings, False), Instructions())
    texts = [text for batch in batches for text in batch]
    adapter.encode([{"text": batch} for batch in batches], task_metadata=meta, hf_split="test", hf_subset="default")
    wanted = hashlib.sha256(json.dumps(["query", "", texts]).encode()).hexdigest()
    assert {place: digest.hexdigest() for place, digest in adapter.asked.items()} == {"Pairs test default": wanted}


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


def test_each_side_is_written_as_the_template_of_the_run_says(folder, candidate, bag) -> None:
    encoder, config = bag(), plain(composed("train", ["template=e5"]))
    made = candidate(encoder=encoder)
    run = replace(made, manifest=made.manifest | {"config": config})
    score(run, [mteb_task(d) for d in folder_tasks(folder, ["Asked"])], Options())
    assert {written for written, _ in encoder.seen} == {"query: {text}", "passage: {text}"}


def test_what_overflows_in_float16_is_not_called_divergence(compose_cell, small_model, tmp_path) -> None:
    """An untrained base, which no learning rate mends: its gated products reach 3e6 and are scaled back."""
    model = shutil.copytree(small_model, tmp_path / "model")
    tensors = load_file(model / "model.safetensors")
    factors = {"up_proj": 1e6, "down_proj": 1e-6}
    large = {k: x * next((f for name, f in factors.items() if name in k), 1.0) for k, x in tensors.items()}
    save_file(large, model / "model.safetensors", metadata={"format": "pt"})
    words = [f"model.path={model}", "precision=fp32"]
    assert np.isfinite(Embeddings.of(untrained(compose_cell("mean", "bi", *words))).embed(["the sum"])).all()
    half = untrained(compose_cell("mean", "bi", *words, "evaluation.autocast=fp16"))
    with pytest.raises(UserError, match=r"first is 'the sum'. Its products run in float16.* evaluation.autocast=null"):
        Embeddings.of(half).embed(["the sum"])
