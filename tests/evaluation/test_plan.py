"""What is said before anything is done: texts that mteb really asks for, tokens of the real tokenizer, time, disk."""

import json
import re

import numpy as np
import pytest
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.speed.startup import starts
from benchmarks.speed.tensor_bytes import LiveBytes
from cli.compose import composed, plain
from cli.errors import UserError
from evaluation.candidates.candidates import candidates
from evaluation.command import main
from evaluation.embeddings.cache import EmbeddingCache
from evaluation.instructions import read_instructions
from evaluation.plan import plan as embedding_place
from evaluation.plan import work
from evaluation.plan.cost import costs
from evaluation.plan.plan import make_plan
from evaluation.plan.speed import DEFAULT, rate_of, remember
from evaluation.scoring import Options, RemainingTime, score
from evaluation.tasks.chosen import TaskSet, task_set
from evaluation.tasks.folder import folder_tasks
from evaluation.tasks.mteb_task import mteb_task
from evaluation.tasks.task_data import texts_of_task

CONFIG = {"model": {"path": "m"}, "attn": {"name": "bi"}, "precision": "fp32", "max_length": 64}


@pytest.fixture
def ours(folder) -> TaskSet:
    data = folder_tasks(folder)
    return TaskSet([mteb_task(d) for d in data], {d.name: d for d in data})


@pytest.fixture
def command(tmp_path) -> dict:
    return {"cache_dir": str(tmp_path / "cache"), "embeddings": "auto", "threads": 1}


@pytest.mark.parametrize("mode", ["none", "table"])
def test_the_texts_counted_are_those_that_mteb_asks_for(ours, candidate, bag, mode) -> None:
    """Shots are drawn from the training part of a classification; here all of them."""
    for task in ours.tasks:
        encoder = bag()
        score(candidate(encoder=encoder, salt=task.metadata.name), [task], Options(read_instructions(mode)))
        said = {side: read_instructions(mode).of(task.metadata, side) for side in ("query", "document")}
        expected = {(said[side], text) for side, text in texts_of_task(ours.data[task.metadata.name])}
        assert set(encoder.seen) == expected, task.metadata.name


def test_the_benchmark_of_starts_waits_for_words_that_a_plan_has(ours, candidate, command, tmp_path) -> None:
    """Else `make bench` stops after a whole evaluation, as it did when the docs benchmark had grown."""
    (start,) = [start for start in starts(tmp_path) if start.words[0] == "evaluate.py"]
    assert start.until
    assert start.until in make_plan([candidate()], ours, command).text


def test_two_encoders_are_counted_and_finished_tasks_are_not(ours, candidate, command) -> None:
    asked = {pair for data in ours.data.values() for pair in texts_of_task(data)}
    texts = {text for _, text in asked}
    words = sum(len(text.split()) for text in texts)
    runs = [candidate(), candidate("mean")]
    whole = make_plan(runs, ours, command)
    assert whole.text.startswith("2 encoders x 7 tasks = 14 scores; 0 are there.\n")
    assert (
        f"To encode: {2 * len(texts):,} distinct texts, {2 * words:,} tokens (by the tokenizer of words" in whole.text
    )
    assert whole.tokens == [words, words]
    assert f"{embedding_place.in_bytes(2 * len(texts) * (512 * 4 + 16))} on disk" in whole.text
    score(runs[0], ours.tasks, Options())
    rest = make_plan(runs, ours, command)
    assert "14 scores; 7 are there" in rest.text
    assert rest.tokens == [0, words]
    score(runs[1], ours.tasks, Options())
    assert make_plan(runs, ours, command).text == "2 encoders x 7 tasks = 14 scores; 14 are there."


def test_tokens_are_those_that_the_encoder_runs(ours, small_model, tmp_path, command) -> None:
    """Counted before anything is loaded = run by the encoder, with instructions and truncation."""
    words = [f"model.path='{small_model}'", "pooler=mean", "max_length=96", "precision=fp32"]
    cfg = plain(composed("evaluate", [*words, f"runs_dir='{tmp_path}'"]))
    cfg["evaluation"]["instructions"] = "table"
    (found,) = candidates(cfg)
    plan = make_plan([found], ours, command)
    encoder = found.load()
    cache, said = EmbeddingCache(encoder), read_instructions("table")
    for task in ours.tasks:
        for side, text in texts_of_task(ours.data[task.metadata.name]):
            cache.embed([text], said.of(task.metadata, side))
    assert plan.tokens == [encoder.meter.tokens]
    assert f"{encoder.meter.texts} distinct texts" in plan.text
    assert "at most 96 a text" in plan.text
    assert "Time: under a minute of encoding at" in plan.text


@pytest.mark.parametrize("case", ["prompteol none", "echo table", "e5 none", "gritlm table"])
def test_tokens_are_those_of_the_template(ours, small_model, tmp_path, command, case) -> None:
    """Counted before anything is loaded = run by the encoder, under a template that writes sides or copies."""
    template, mode = case.split()
    words = [f"model.path='{small_model}'", f"template={template}", "max_length=120", "precision=fp32"]
    cfg = plain(composed("evaluate", [*words, f"runs_dir='{tmp_path}'"]))
    cfg["evaluation"]["instructions"] = mode
    (found,) = candidates(cfg)
    plan = make_plan([found], ours, command)
    (outcome,) = [score(found, ours.tasks, Options(read_instructions(mode)))]
    assert plan.tokens == [outcome.tokens]
    assert f"{outcome.texts} distinct texts" in plan.text


def test_templates_count_where_only_mtebs_metadata_are_known(small_model, tmp_path, command) -> None:
    """Of texts that max_length does not cut: the words of a prompt for each, and both copies of an echo."""
    tasks = task_set(plain(composed("evaluate", ["~benchmark", "tasks=[SICK-R]"])))
    planned = {}
    for template in ("instruct", "prompteol", "echo"):
        words = [f"model.path='{small_model}'", f"template={template}", "max_length=128", f"runs_dir='{tmp_path}'"]
        (found,) = candidates(plain(composed("evaluate", words)))
        (planned[template],) = make_plan([found], tasks, command).tokens
        lengths = found.measure().lengths
        planned[template] -= lengths([""], "")[0] * _sick_texts(tasks)
    assert planned["instruct"] == pytest.approx(planned["prompteol"], abs=1)
    assert planned["echo"] == pytest.approx(2 * planned["instruct"], abs=2)


def _sick_texts(tasks) -> int:
    from evaluation.plan.work import columns_of

    return sum(column.texts for column in columns_of(tasks.tasks[0]))


def test_many_texts_are_counted_on_a_sample(ours, candidate, command, monkeypatch) -> None:
    exact = make_plan([candidate()], ours, command)
    monkeypatch.setattr(work, "SAMPLE", 40)
    sampled = make_plan([candidate()], ours, command)
    assert "(on a sample of " in sampled.text
    assert sampled.tokens[0] == pytest.approx(exact.tokens[0], rel=0.2)


def test_of_tasks_that_are_not_here_mtebs_metadata_are_told(candidate, command) -> None:
    tasks = task_set(plain(composed("evaluate", ["~benchmark", "tasks=[SciFact]"])))
    said = make_plan([candidate()], tasks, command).text
    assert "5,483 distinct texts" in said
    assert "tokens (at most, by mteb's metadata, 4 characters a token" in said


def test_where_only_means_are_known_a_chunk_is_full_of_the_longest_texts(small_model, tmp_path, command) -> None:
    tasks = task_set(plain(composed("evaluate", ["~benchmark", "tasks=[SciFact]"])))
    settings = [f"model.path='{small_model}'", "max_length=100", "token_budget=1050", f"runs_dir='{tmp_path}'"]
    (found,) = candidates(plain(composed("evaluate", settings)))
    assert "a chunk of 10 texts and 1,000 tokens" in make_plan([found], tasks, {**command, "plan": True}).text


@pytest.mark.parametrize(
    ("words", "off"),
    [
        ("precision=fp32 model.attn_implementation=eager", 1e-9),
        ("precision=fp32 pooler=multilayer attn=bi", 0.01),
        ("precision=bf16 pooler=mean", 0.02),  # without padding, texts of like length are padded within attention
        ("precision=mixed pooler=mean", 0.02),
    ],
)
def test_flops_and_bytes_are_those_of_a_real_encoding(ours, small_model, tmp_path, words, off) -> None:
    """Counted before anything is loaded, by a polynomial and on tensors without memory; measured chunk by chunk."""
    settings = [*words.split(), f"model.path='{small_model}'", "token_budget=512", f"runs_dir='{tmp_path}'"]
    (found,) = candidates(plain(composed("evaluate", settings)))
    (cost,) = costs([(found, work.forecast(found.measure(), read_instructions("none"), ours.tasks, ours))])
    encoder, texts = found.load(), {text for data in ours.data.values() for _, text in texts_of_task(data)}
    encoder.encoder.requires_grad_(False)  # torch's counter cannot follow trained heads without gradients
    with FlopCounterMode(display=False) as counter:
        encoder.encode(list(texts))
    with LiveBytes() as live:
        encoder.encode(list(texts))
    assert cost.flops == pytest.approx(counter.get_total_flops(), rel=off)
    assert cost.weights == sum(p.nbytes for p in encoder.encoder.parameters())
    assert cost.chunk == pytest.approx(live.peak, rel=0.25)


def test_weights_of_a_run_are_those_it_is_loaded_with(mixse_run, tmp_path) -> None:
    """Experts that a router weighs are not merged into the base."""
    folder, _ = mixse_run
    of_run = candidates(plain(composed("evaluate", [])) | {"run": str(folder), "results": str(tmp_path)})[0]
    todo = work.Forecast(2, 20, "", 0, {10: 2}, 10)
    (cost,) = costs([(of_run, todo)])
    assert cost.weights == sum(p.nbytes for p in of_run.load().encoder.parameters())


def test_a_measured_rate_is_used_the_next_time(tmp_path) -> None:
    before = rate_of(tmp_path, CONFIG, 1)
    assert (before.tokens, "nothing was measured" in before.how) == (DEFAULT, True)
    remember(tmp_path, CONFIG, 1, tokens=500, seconds=9.0)  # too little to learn from
    assert rate_of(tmp_path, CONFIG, 1) == before
    remember(tmp_path, CONFIG, 1, tokens=30_000, seconds=10.0)
    remember(tmp_path, CONFIG, 4, tokens=90_000, seconds=10.0)
    assert rate_of(tmp_path, CONFIG, 1).tokens == 3000
    assert rate_of(tmp_path, CONFIG, 1, devices=8).tokens == 24_000
    remember(tmp_path, CONFIG, 1, tokens=90_000, seconds=5.0, devices=8)
    assert (rate_of(tmp_path, CONFIG, 1, devices=8).tokens, rate_of(tmp_path, CONFIG, 1).tokens) == (18_000, 3000)
    assert "measured here on 20" in rate_of(tmp_path, CONFIG, 1).how
    assert rate_of(tmp_path, {**CONFIG, "max_length": 512}, 1).tokens == DEFAULT
    (tmp_path / "rates.json").write_text("{")
    assert rate_of(tmp_path, CONFIG, 1) == before


def test_disk_is_chosen_by_what_is_free(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(embedding_place, "free_bytes", lambda _: 1000)
    place = embedding_place.embedding_place
    chosen = [place(mode, size, tmp_path)[0] for mode in ("auto", "disk", "memory") for size in (100, 101, None)]
    assert chosen == [tmp_path, None, None, tmp_path, tmp_path, tmp_path, None, None, None]
    with pytest.raises(UserError, match="Give embeddings=memory or free some"):
        place("disk", 1001, tmp_path)
    with pytest.raises(UserError, match=r"no embeddings=disc\..*Nearest: disk"):
        place("disc", 1, tmp_path)


def test_the_first_seconds_tell_what_remains(bag) -> None:
    meter, said = bag().meter, []
    remaining = RemainingTime("x", 100_000, meter, said.append)
    meter.tokens, meter.seconds = 900, 2.9
    remaining.look()
    assert said == []
    meter.tokens, meter.seconds = 1000, 4.0
    remaining.look()
    remaining.look()
    assert said == [
        "x: 250 tokens/s in the first 4 s of encoding, longest texts first; at most 7 min of encoding remain."
    ]
    RemainingTime("x", None, meter, said.append).look()
    assert len(said) == 1


def test_plan_true_does_nothing_else(small_model, folder, tmp_path, capsys) -> None:
    words = ["run=null", "pooler=mean", f"model.path={small_model}", f"tasks_dir={folder}", "plan=true"]
    main([*words, f"runs_dir={tmp_path / 'runs'}", f"cache_dir={tmp_path / 'cache'}"])
    said = capsys.readouterr().out
    assert "1 encoder x 7 tasks = 7 scores; 0 are there." in said
    assert "distinct texts" in said
    assert "Embeddings: at most" in said
    assert re.search(r"^FLOPs: \S+e\+\d\d of matrix products", said, re.MULTILINE)
    assert re.search(r"^Memory: \S+ [kM]B of tensors on a device while it encodes", said, re.MULTILINE)
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "cache").exists()


def test_embeddings_on_disk_serve_the_next_command(small_model, folder, tmp_path, capsys) -> None:
    words = ["run=null", "pooler=mean", f"model.path={small_model}", f"tasks_dir={folder}", "progress=false"]
    words += [f"cache_dir={tmp_path / 'cache'}", "precision=fp32", "max_length=48"]
    scores = []
    for results in ("one", "two"):
        main([*words, f"results={tmp_path / results}"])
        files = sorted((tmp_path / results).rglob("seed=*/*s.json")) + sorted((tmp_path / results).rglob("Asked.json"))
        scores.append([json.loads(f.read_text())["scores"] for f in files if "run_" not in f.name])
    assert scores[0] == scores[1]
    assert len(scores[0]) > 3
    first, second = [line.split() for line in capsys.readouterr().out.splitlines() if " of 7 " in line]
    assert int(first[5]) > 50
    assert second[5] == "0"
    assert np.array(second[-3:], dtype=float)[0] == 0.0
