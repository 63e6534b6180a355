"""What all tests share: a small real decoder made here, and composed configurations."""

import gc
import hashlib
import os
import pickle
import shutil
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.hub_model import HUB_MODELS, STORIES, write_hub_model
from tests.started import ROOT, fork_server

# The fixtures import torch, transformers and hydra: the process that hands out the tests reads this file too.
gc.disable()  # until all is imported: the collector would go through a million objects that stay


def pytest_sessionstart(session):
    """A worker of `make test` will start processes, and imports what these need for its own tests anyway."""
    if hasattr(session.config, "workerinput") and session.config.option.markexpr != "not slow":
        fork_server()


def pytest_ignore_collect(collection_path, config):
    """For `-m slow`, import no file without such a test."""
    others = config.option.markexpr == "slow" and collection_path.suffix == ".py"
    return True if others and "mark.slow" not in collection_path.read_text(encoding="utf-8") else None


@pytest.fixture(scope="session", autouse=True)
def _in_a_folder_of_their_own(tmp_path_factory):
    """The tests run where `cache` and `runs` are empty, so that none depends on what an earlier session left.

    Docstrings and tasks alone are the checkout's: they take a minute, and their names are digests of all that decides
    them. A test that writes elsewhere into the checkout's `cache` or `runs` fails: whatever writes makes its folder
    first, also where it is there.
    """
    place, mkdir = tmp_path_factory.mktemp("place"), os.mkdir
    shared = [ROOT / "cache" / name for name in ("docstrings", "tasks")]
    for folder in shared:
        folder.mkdir(parents=True, exist_ok=True)
        (place / "cache").mkdir(exist_ok=True)
        (place / "cache" / folder.name).symlink_to(folder)

    def refused_in_the_checkout(path, *args, **kwargs):
        real = Path(os.path.realpath(path))
        within = {real, *real.parents}
        outlives = within & {ROOT / "cache", ROOT / "runs"} and within.isdisjoint(shared)
        assert not outlives, f"{real} would outlive this session, and the next one would read it"
        mkdir(path, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr(os, "mkdir", refused_in_the_checkout)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """The test processes share the cores: a few texts handed to other threads to be tokenised wait for these."""
    import torch

    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


@pytest.fixture(scope="session", autouse=True)
def _no_seeds_for_devices_that_are_not_there():
    """torch keeps each seed for its first use of a device, with the stack as text: a millisecond each."""
    import torch

    with pytest.MonkeyPatch.context() as patch:
        for kind in (torch.cuda, torch.xpu, torch.mtia):
            if not kind.is_available():
                patch.setattr(kind, "manual_seed_all", lambda seed: None)
        yield


LONGEST = ("test_whole_study.py", "test_leak.py", "test_extend.py", "test_finite.py")


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest: at the end all other cores would wait for one of them."""
    items.sort(key=lambda item: not item.location[0].endswith(LONGEST))


def pytest_collection_finish():
    """Spare the garbage collector the imported packages: it would go through their million objects again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _each_choice_of_groups_once():
    """Read each file of conf/ and compose each choice of groups once: Hydra takes a sixth of a second each time.

    conf/ stays as it is during the tests. Hydra itself parses all words, and applies those that are no groups. What is
    kept is kept as bytes: reading them is six times as fast as a deep copy. Of its own places Hydra makes such a copy
    each time, all tables included, so that a search path among the words changes the copy's list alone: a list of its
    own will do. Its own settings stand first and are merged once, and the map by which it resolves a choice that names
    another one is made where there is one.
    """
    from types import SimpleNamespace

    from hydra._internal import config_loader_impl as loader
    from hydra._internal import defaults_list as chooser
    from hydra._internal.config_repository import CachingConfigRepository as Places
    from hydra._internal.config_repository import ConfigRepository as Files

    merger = loader.ConfigLoaderImpl
    choose, merge, load = loader.create_defaults_list, merger._compose_config_from_defaults_list, Files.load_config
    part, choices = merger._load_single_config, chooser._create_interpolation_map
    chosen, merged, loaded, parts = {}, {}, {}, {}

    def load_once(self, config_path):
        key = str(self.get_sources()), config_path
        if key not in loaded:
            loaded[key] = pickle.dumps(load(self, config_path))
        return pickle.loads(loaded[key])

    def with_a_list_of_its_own(self, places):
        self.delegate, self.cache = copy(places), {}

    def choose_once(repo, config_name, overrides_list, **settings):
        is_group = [repo.group_exists(o.key_or_group) and not isinstance(o.value(), dict) for o in overrides_list]
        groups = [o for o, group in zip(overrides_list, is_group, strict=True) if group]
        values = [o for o, group in zip(overrides_list, is_group, strict=True) if not group]
        key = str(repo.get_sources()), config_name, *settings.items(), *(o.input_line for o in groups)
        if key not in chosen:
            chosen[key] = choose(repo, config_name, groups, **settings)
        return replace(chosen[key], config_overrides=[o for o in values if not o.is_sweep_override()])

    def merge_once(self, defaults, repo):
        key = str(repo.get_sources()), str(defaults)
        if key not in merged:
            own = [d for d in defaults if d.config_path.startswith("hydra/")]
            if own and defaults[: len(own)] == own != defaults:
                whole = chooser.ResultDefault(config_path=str(own))
                if (key[0], str(whole)) not in parts:
                    parts[key[0], str(whole)] = pickle.dumps(SimpleNamespace(config=merge(self, own, repo)))
                defaults = [whole, *defaults[len(own) :]]
            merged[key] = pickle.dumps(merge(self, defaults, repo))
        return pickle.loads(merged[key])

    def part_once(self, default, repo):
        key = str(repo.get_sources()), str(default)
        if key not in parts:
            parts[key] = pickle.dumps(part(self, default, repo))
        return pickle.loads(parts[key])

    def choices_if_one_is_named(overrides, defaults_list, self_added):
        named = any(d.is_interpolation() for d in defaults_list)
        return choices(overrides, defaults_list, self_added) if named else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "create_defaults_list", choose_once)
        patch.setattr(merger, "_compose_config_from_defaults_list", merge_once)
        patch.setattr(merger, "_load_single_config", part_once)
        patch.setattr(chooser, "_create_interpolation_map", choices_if_one_is_named)
        patch.setattr(Files, "load_config", load_once)
        patch.setattr(Places, "__init__", with_a_list_of_its_own)
        yield


@pytest.fixture(scope="session", autouse=True)
def _each_model_folder_once():
    """Read each model and tokenizer once and hand out copies: reading a small model takes eight times as long."""
    from encoders import backbone

    real, read = backbone._loaded, {}

    def once(path, auto, **settings):
        if not os.path.isdir(path) or settings.get("device_map"):
            return real(path, auto, **settings)
        files = sorted((f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in os.scandir(path))
        words = {k: v.to_json_string(use_diff=False) if k == "config" else str(v) for k, v in settings.items()}
        key = str((path, files, auto, auto.from_pretrained, words))
        if key not in read:
            read[key] = real(path, auto, **settings)
        tokenizer = "Tokenizer" in auto.__name__  # its vocabulary, which no one changes, takes long to copy
        return (copy if tokenizer else deepcopy)(read[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbone, "_loaded", once)
        yield


@pytest.fixture(scope="session")
def versions_read_once():
    """mteb reads the versions of five packages from their metadata twice per score, ten milliseconds each time."""
    from mteb.cache import result_cache

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_cache, "_get_package_versions", cache(result_cache._get_package_versions))
        yield


@pytest.fixture(scope="session")
def small_model(tmp_path_factory) -> Path:
    """A folder with a Llama of two layers (random weights) and a BPE tokenizer, in transformers' format."""
    import torch
    from transformers import LlamaConfig, LlamaModel

    from training.pretrain.bpe import train_bpe

    folder = tmp_path_factory.mktemp("model")
    sentence = "the sum of two arrays is returned as a new array with the same shape and type of its first argument"
    words = sentence.split()
    tokenizer = train_bpe([" ".join(words[i:] + words[:i]) for i in range(len(words))], 320, 128)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=320,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        initializer_range=0.2,  # large enough that attention patterns differ from uniform
    )
    LlamaModel(shape).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def small_moe(tmp_path_factory, small_model) -> Path:
    """A folder with an OLMoE of three layers of four experts, two to a token (random), and the same tokenizer."""
    import torch
    from transformers import LlamaConfig, OlmoeConfig, OlmoeModel

    folder = tmp_path_factory.mktemp("moe")
    for file in small_model.glob("*token*"):
        shutil.copy(file, folder)
    torch.manual_seed(0)
    same = LlamaConfig.from_pretrained(small_model)
    shape = OlmoeConfig(
        vocab_size=320,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_experts=4,
        num_experts_per_tok=2,
        max_position_embeddings=128,
        **{name: getattr(same, name) for name in ("pad_token_id", "eos_token_id", "bos_token_id")},
        initializer_range=0.2,
    )
    OlmoeModel(shape).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def compose_cell(small_model, small_moe):
    """Compose the configuration of a cell on the small model: compose_cell("eos", "bi", "seed=1").

    A pooler that reads routers gets the small mixture of experts.
    """
    from cli.compose import composed, plain
    from tests.cells import reads_routers

    def compose(pooler: str, attn: str, *overrides: str) -> dict:
        words = [f"pooler={pooler}", f"attn={attn}", "precision=fp32", "max_length=48"]
        words += [f"model.path={small_moe if reads_routers(pooler) else small_model}"]
        words += ["lora.targets=[q_proj,k_proj,v_proj,o_proj]"] if reads_routers(pooler) else []
        return plain(composed("train", [*words, "accelerator=cpu", *overrides]))

    return compose


@pytest.fixture(scope="session")
def mixse_run(compose_cell, tmp_path_factory) -> tuple[Path, dict]:
    """The folder and configuration of a run of two steps: three drawn LoRA experts, their router trained with them."""
    from records.run_folder import RunFolder
    from tests.triples import write_triples
    from training.run import train_run

    folder = tmp_path_factory.mktemp("mixse")
    words = ["max_steps=2", "global_batch_size=8", "checkpoint_every=0", "progress=false"]
    words = [f"trainer.{w}" for w in words] + ["logging.tensorboard=false", "objective.warmup=1"]
    words += ["data=jsonl", f"data.path='{write_triples(folder / 'triples.jsonl')}'", "data.validation=4"]
    words += ["adapter=mixse", "adapter.experts=3", "adapter.trains=experts", "adapter.lr=1e-1", "objective.lr=2e-2"]
    cfg, run = compose_cell("mean", "bi", *words), folder / "joint" / "mean-bi" / "seed=0"
    train_run(cfg, RunFolder(run))
    return run, cfg


@pytest.fixture(scope="session")
def model_folder(small_model, tmp_path_factory) -> Callable[[str], Path]:
    """Return a function: "small", or a name of `HUB_MODELS` -> the folder of that model."""
    made = cache(lambda: write_hub_model(tmp_path_factory.mktemp("hub")))
    return lambda name: {"small": lambda: small_model, "made": made, "stories260K": lambda: STORIES}[name]()


@pytest.fixture(scope="session")
def hub_model(model_folder) -> Path:
    """A decoder in the format of the hub: the real one beside the checkout, or a made one."""
    return model_folder(HUB_MODELS[-1])


@pytest.fixture
def counted(monkeypatch):
    """The number of bytes that were hashed from files, in a list of one per file."""
    real, sizes = hashlib.file_digest, []

    def digest(file, *more):
        sizes.append(os.fstat(file.fileno()).st_size)
        return real(file, *more)

    monkeypatch.setattr(hashlib, "file_digest", digest)
    return sizes
