"""deterministic=true: torch's own switch is on while anything is computed, and what has no such form is refused."""

import os

import pytest
import torch

from encoders.loading import build_encoder
from encoders.precision import PRECISIONS, WORKSPACES, be_deterministic


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":0:0")
    yield
    be_deterministic(False)


def test_the_switch_goes_on_and_off_with_the_configuration(compose_cell):
    """Jobs of a sweep share a process."""
    for wanted in (True, False):
        cfg = compose_cell("mean", "bi", f"deterministic={str(wanted).lower()}")
        build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu"))
        assert torch.are_deterministic_algorithms_enabled() is torch.backends.cudnn.deterministic is wanted
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == WORKSPACES[0], "set by the first, and harmless to the other"
