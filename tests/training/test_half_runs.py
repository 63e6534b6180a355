"""A run folder whose adapter or head lacks a tensor, or holds a strange one, is refused by name."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from cli.errors import UserError
from encoders.loading import load_run
from records.run_folder import RunFolder
from training.run import train_run


@pytest.mark.slow
def test_a_run_with_half_an_adapter_or_head_is_refused(compose_cell, pairs, tmp_path):
    """PEFT draws what it does not find, and says so in a warning alone."""
    words = ["data=jsonl", f"data.path='{pairs}'", "trainer.max_steps=1", "trainer.global_batch_size=4"]
    cfg = compose_cell("multilayer", "bi", *words, "data.validation=4", "trainer.progress=false", "objective.warmup=1")
    train_run(cfg, RunFolder(tmp_path))
    for name in ("adapter/adapter_model.safetensors", "head.safetensors"):
        whole = load_file(tmp_path / name)
        gone = min(whole)
        save_file({k: v for k, v in whole.items() if k != gone}, tmp_path / name)
        with pytest.raises(UserError, match=f"lacks tensors: {gone}"):
            load_run(tmp_path, cfg)
        save_file({**whole, "stranger": torch.ones(1)}, tmp_path / name)
        with pytest.raises(UserError, match="holds unknown tensors: stranger"):
            load_run(tmp_path, cfg)
        save_file(whole, tmp_path / name)
    load_run(tmp_path, cfg)
