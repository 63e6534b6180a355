"""Nothing that is read is executed: no source can do so, planted code stays where it is, names become no markup."""

import ast
import json
from pathlib import Path

import pytest

from analysis.tables.claims import read_claims
from cli.errors import UserError
from encoders.backbone import load_backbone
from evaluation.candidates import candidates
from records.files import read_object
from tests.analysis.manifests import manifest
from tests.encoders.test_checkpoint import model_of, saved
from tests.test_imports import MAY_IMPORT, ROOT
from tests.wrong_input.damages import Planted

SOURCES = [p for package in MAY_IMPORT for p in (ROOT / package).rglob("*.py")] + sorted(ROOT.glob("*.py"))
EXECUTES = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "tarfile", "zipfile", "runpy"}
BY_NAME = {"eval", "exec", "compile", "__import__"}
CALLED = {("tempfile", "mktemp"), ("os", "system"), ("yaml", "unsafe_load"), ("yaml", "full_load")}
OURS = {("studies/workers.py", "runpy")}  # this program itself


def executing(path: Path) -> set[tuple[str, str]]:
    """What a source file could execute or unpack foreign bytes with: (file, name)."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & EXECUTES
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module).split(".")[0]} & EXECUTES
        elif isinstance(node, ast.Call):
            call = node.func
            if isinstance(call, ast.Name) and call.id in BY_NAME:
                found.add(call.id)
            if isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name):
                found |= {call.attr} if (call.value.id, call.attr) in CALLED else set()
                safe = {word.arg for word in node.keywords if getattr(word.value, "value", None) is True}
                if (call.value.id, call.attr) == ("torch", "load") and "weights_only" not in safe:
                    found.add("torch.load")
            for word in node.keywords:
                literal = isinstance(word.value, ast.Constant) and word.value.value
                if (word.arg in ("allow_pickle", "trust_remote_code", "shell") and literal is True) or (
                    word.arg == "weights_only" and literal is not True
                ):
                    found.add(f"{word.arg}={literal}")
    return {(str(path.relative_to(ROOT)), name) for name in found}


def test_no_source_can_execute_what_it_reads():
    assert set().union(*map(executing, SOURCES)) == OURS


def test_a_planted_object_of_yaml_is_not_made(tmp_path):
    mark = tmp_path / "executed"
    file = tmp_path / "planted.yaml"
    file.write_text(f"- !!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ['{mark}']]\n")
    with pytest.raises(UserError):
        read_claims(file)
    assert not mark.exists()


def test_pickled_weights_are_refused(tmp_path):
    import torch

    folder = saved(tmp_path / "model", "llama")
    (folder / "model.safetensors").unlink()
    torch.save(Planted(str(tmp_path / "executed")), folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"pickled weights .* are not loaded"):
        load_backbone(model_of(folder), torch.float32)
    assert not (tmp_path / "executed").exists()


def test_a_manifest_alone_executes_no_code(tmp_path, compose_cell, small_model):
    """A run from elsewhere that says trust_remote_code=true: the command must say so too."""
    from cli.compose import composed, plain
    from tests.analysis.manifests import seal

    cfg = compose_cell("mean", "bi")
    cfg["model"]["trust_remote_code"] = True
    folder = tmp_path / "s" / "mean-bi" / "seed0"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(seal(manifest("mean", "bi", _config=cfg))))
    assert read_object(folder / "manifest.json", "")["config"]["model"]["trust_remote_code"] is True
    asked = plain(composed("evaluate"))
    asked["run"] = str(folder)
    with pytest.raises(UserError, match=r"brings code of its own.*model.trust_remote_code=true"):
        candidates(asked)
    asked["model"]["trust_remote_code"] = True
    assert len(candidates(asked)) == 1
