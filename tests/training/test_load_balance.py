"""The balance of a mixture of experts: its loss against transformers' own and its limits, their use counted."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.olmoe.modeling_olmoe import load_balancing_loss_func

from tests.families import EXPERTS, SIZES
from training.pretrain.load_balance import active_parameters, balance_loss, expert_shares
from training.pretrain.model_card import balance_table


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model("olmoe", **SIZES | EXPERTS)).eval()


def test_the_loss_is_transformers_own_for_one_layer():
    """Theirs counts choices over all layers together, without the division by k; a layer at a time it is ours."""
    torch.manual_seed(1)
    logits = [torch.randn(50, 8) * 3 for _ in range(3)]
    theirs = [load_balancing_loss_func((x,), 8, 2) / 2 for x in logits]
    assert balance_loss(logits, 2) == pytest.approx(float(torch.stack(theirs).mean()), rel=1e-5)


def test_its_limits():
    everything_to_one = torch.tensor([[100.0, 0, 0, 0]]).repeat(9, 1)
    assert balance_loss([everything_to_one], 1) == pytest.approx(4)
    in_turn = 100 * torch.eye(4).repeat(3, 1)
    assert balance_loss([in_turn], 1) == pytest.approx(1)


def test_active_parameters_are_those_that_one_token_meets(model):
    per_expert = 3 * 32 * 48
    total = sum(p.numel() for p in model.parameters())
    assert active_parameters(model) == total - 3 * (4 - 2) * per_expert
    dense = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **SIZES))
    assert active_parameters(dense) == sum(p.numel() for p in dense.parameters())


def test_shares_are_the_top_choices_counted(model):
    documents = [[5, 9, 40], list(range(3, 30))]
    counts = torch.zeros(3, 4)
    for document in documents:
        with torch.no_grad():
            logits = model.model(input_ids=torch.tensor([document[:20]]), output_router_logits=True).router_logits
        for layer, x in enumerate(logits):
            for row in x:
                for expert in sorted(range(4), key=lambda e: -row[e])[:2]:
                    counts[layer, expert] += 1
    wanted = counts / counts.sum(dim=1, keepdim=True)
    assert torch.allclose(torch.tensor(expert_shares(model, documents, 20)), wanted)


def test_the_cards_table():
    lines = balance_table([[0.5, 0.5], [1.0, 0.0]]).strip().splitlines()
    assert lines[-2:] == ["| 0 | 0.500 | 0.500 | 1.000 |", "| 1 | 0.000 | 1.000 | 0.000 |"]
