"""How the tests run: in a folder of their own, on one thread, the longest first; composed configurations."""

import gc
import os
from pathlib import Path

import pytest

from tests.started import ROOT, fork_server

# Fixtures import torch, transformers and hydra, files do not: the process that hands out the tests reads them too.
pytest_plugins = ["tests.once", "tests.small_models"]
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


LONGEST = ("test_tour.py", "test_whole_study.py", "test_leak.py", "test_extend.py")


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest: at the end all other cores would wait for one of them."""
    items.sort(key=lambda item: not item.location[0].endswith(LONGEST))


def pytest_collection_finish():
    """Spare the garbage collector the imported packages: it would go through their million objects again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def compose_cell(small_model, small_moe):
    """Compose the configuration of a cell on the small model: compose_cell("eos", "bi", "seed=1").

    A pooler that reads routers gets the small mixture of experts.
    """
    from cli.compose import composed, plain
    from tests.cells import reads_routers

    def compose(pooler: str, attn: str, *overrides: str) -> dict:
        words = [*f"pooler={pooler}".split(), f"attn={attn}", "precision=fp32", "max_length=48"]
        words += [f"model.path={small_moe if reads_routers(pooler) else small_model}"]
        words += ["lora.targets=[q_proj,k_proj,v_proj,o_proj]"] if reads_routers(pooler) else []
        return plain(composed("train", [*words, "accelerator=cpu", *overrides]))

    return compose


@pytest.fixture(scope="session")
def mixse_run(compose_cell, tmp_path_factory) -> tuple[Path, dict]:
    """The folder and configuration of a run of two steps: three drawn LoRA experts, their router trained with them."""
    from tests.triples import quick_run, write_triples
    from training.run import train_run

    folder = tmp_path_factory.mktemp("mixse")
    words = [
        *quick_run(write_triples(folder / "triples.jsonl")),
        "adapter=mixse",
        "adapter.experts=3",
        "adapter.trains=experts",
        "adapter.lr=1e-1",
        "objective.lr=2e-2",
    ]
    cfg, run = compose_cell("mean", "bi", *words), folder / "joint" / "mean-bi" / "seed0"
    train_run(cfg, run)
    return run, cfg
