"""Runs of `objective=next_token`: their held-out documents are tasks, their domains types, under the control rule."""

import csv
import hashlib
import json

import pytest

from cli.errors import UserError
from records.files import of_file
from records.manifest import HELD_OUT
from tests.analysis.manifests import manifest, seal

BITS = {"plain": 1.2, "merged": 1.1}


@pytest.fixture
def runs(tmp_path):
    """Write two designs of two seeds that differ in init.combine, with documents of two domains."""

    def write(**changes):
        for combine, level in BITS.items():
            for seed in (0, 1):
                folder = tmp_path / f"lm+{combine}" / "eos-causal" / f"seed{seed}"
                folder.mkdir(parents=True)
                rows = [["domain", "document", "bytes", "bits_per_byte"]]
                for domain, shift in (("torch", 0.0), ("stdlib", 0.4)):
                    for k in range(8):
                        name = hashlib.sha256(f"{domain} {k}".encode()).hexdigest()[:12]
                        rows.append([domain, name, 100 + k, level + shift + (0.01 * k + 0.001 * seed) * (level + 1)])
                with (folder / HELD_OUT).open("w", newline="") as file:
                    csv.writer(file).writerows(rows)
                own = {"init__combine": combine, "objective__name": "next_token"}
                own |= {"_files": {HELD_OUT: of_file(folder / HELD_OUT)}} | (changes if combine == "merged" else {})
                (folder / "manifest.json").write_text(json.dumps(seal(manifest("eos", "causal", seed, **own))))
        return f"scores='{tmp_path}/lm*/*/seed*'", "factors=[pooler,attn,init.combine]"

    return write


def test_a_document_is_a_task_of_its_domain(runs, read_words):
    frame = read_words(*runs()).compared.frame
    assert frame.groupby("type")["task"].nunique().to_dict() == {"stdlib": 8, "torch": 8}
    assert set(frame["seed"]) == {"0", "1"}
    row = frame[(frame["design"].str.contains("plain")) & (frame["seed"] == "1") & (frame["type"] == "torch")]
    assert sorted(row["score"]) == pytest.approx(sorted(1 - (1.2 + (0.01 * k + 0.001) * 2.2) / 8 for k in range(8)))


def test_the_control_rule_holds_for_documents_too(runs, read_words):
    with pytest.raises(UserError, match="max_steps"):
        read_words(*runs(trainer__max_steps=41))


def test_a_changed_file_and_a_running_run(runs, read_words, tmp_path):
    scores = runs()
    folder = tmp_path / "lm+plain" / "eos-causal" / "seed1"
    (folder / HELD_OUT).write_text((folder / HELD_OUT).read_text().replace("torch", "numpy"))
    with pytest.raises(UserError, match="is not the file that the run wrote"):
        read_words(*scores)
    for combine in BITS:
        file = tmp_path / f"lm+{combine}" / "eos-causal" / "seed1" / "manifest.json"
        file.write_text(json.dumps(seal({**json.loads(file.read_text()), "status": "running"})))
    result = read_words(*scores)
    assert set(result.compared.frame["seed"]) == {"0"}
    assert "Left out, since the run was not finished" in " ".join(result.notes)
