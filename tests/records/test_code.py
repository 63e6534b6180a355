"""The modules of a run, read from sources, against what Python itself loads in a fresh process."""

import hashlib

import pytest

from records.code import PACKAGES, ROOT, modules_of
from tests.started import start

ROOTS = ("training.run", "poolers.shared.base")


def loaded(*modules):
    """The modules of ours that a process which had none has after importing `modules`."""
    code = f"import {', '.join(modules)}, sys; print(*[m for m in sys.modules if m.split('.')[0] in {PACKAGES}])"
    done = start("-c", code)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("pooler", ["poolers.eos", "poolers.multilayer"])
def test_they_are_those_that_python_loads(pooler):
    found = modules_of(ROOTS, {"pooler": [pooler]})
    wanted = loaded(*ROOTS, pooler)
    assert wanted <= found["modules"].keys(), "what is imported within functions comes on top"
    assert set(found["chosen"]["pooler"]) == wanted - loaded(*ROOTS)


def test_digests_are_of_the_sources_and_choices_do_not_share():
    found = modules_of(
        ROOTS, {"pooler": ["poolers.lastlayer"], "data": ["corpora.files"], "objective": ["training.objectives.mntp"]}
    )
    for name in ("poolers.lastlayer", "encoders.attention.pattern"):
        path = ROOT / f"{name.replace('.', '/')}.py"
        assert found["modules"][name] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert "poolers.lastlayer" in found["chosen"]["pooler"]
    assert "training.objectives.masking" in found["chosen"]["objective"]
    assert "corpora.files" not in found["chosen"]["objective"], "the data would lead to it too"
    everywhere = set(modules_of(ROOTS, {})["modules"])
    assert not everywhere & {name for names in found["chosen"].values() for name in names}
    with pytest.raises(LookupError, match=r"poolers\.nothing is no module"):
        modules_of(ROOTS, {"pooler": ["poolers.nothing"]})
