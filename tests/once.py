"""What each test would else read or compose again: configurations, model folders and the versions of packages."""

import os
import pickle
from copy import copy, deepcopy
from dataclasses import replace
from functools import cache

import pytest


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
