"""MoEE against expressions of its paper, text by text."""

import pytest
import torch
from scipy.spatial.distance import cosine
from scipy.stats import zscore
from torch.nn import functional as F

from cli.errors import UserError
from poolers.moee import MoEE
from poolers.shared.base import RoutedStates, TokenView
from tests.poolers.test_poolers import EXPERTS, ROLES, D, L, pooler_of, real, run, states


def literal(hidden, b, which):
    """HS and RW of text b in float64: which is "last" or "mean", over the real tokens."""
    logits = [hidden[i, b, real(b), :n].double() for i, n in zip(range(L), EXPERTS, strict=True)]
    weights = [torch.exp(x) / torch.exp(x).sum(dim=-1, keepdim=True) for x in logits]
    own = [hidden[i, b, real(b)].double() for i in range(L)]
    take = (lambda x: x[-1]) if which == "last" else (lambda x: x.mean(dim=0))
    return torch.stack([take(x) for x in own]), torch.cat([take(w) for w in weights])


def of(*words):
    return pooler_of("moee", "bi", *words)


@pytest.mark.parametrize("which", ["last", "mean"])
@pytest.mark.parametrize("layers", ["last", "all", "mean"])
def test_variants(which, layers):
    words = [f"pooler.hidden_tokens={which}", f"pooler.routing_tokens={which}", f"pooler.hidden_layers={layers}"]
    hidden = states()
    found = {
        r: run(of(*words, f"pooler.variant={r}"), hidden, TokenView(ROLES)) for r in ("hidden", "routing", "concat")
    }
    for b in range(len(ROLES)):
        hs, rw = literal(hidden, b, which)
        wanted = {"all": hs.flatten(), "last": hs[-1], "mean": hs.mean(dim=0)}[layers]
        assert torch.allclose(found["hidden"][b].double(), wanted, atol=1e-6)
        assert torch.allclose(found["routing"][b].double(), rw, atol=1e-6)
        assert torch.allclose(found["concat"][b].double(), torch.cat([wanted, rw]), atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0, 4.0])
def test_the_sum_is_one_vector(alpha):
    """Its cosine is cos(HS) + alpha cos(RW), over 1 + alpha, for every pair of texts."""
    hidden = states()
    out = run(of("pooler.variant=sum", f"pooler.alpha={alpha}"), hidden, TokenView(ROLES))
    parts = [literal(hidden, b, "last") for b in range(len(ROLES))]
    for i in range(len(ROLES)):
        for j in range(len(ROLES)):
            hs = 1 - cosine(parts[i][0][-1], parts[j][0][-1])
            rw = 1 - cosine(parts[i][1], parts[j][1])
            assert 1 - cosine(out[i].double(), out[j].double()) == pytest.approx(
                (hs + alpha * rw) / (1 + alpha), abs=1e-6
            )
    assert torch.allclose(out.norm(dim=1), torch.full((len(ROLES),), (1 + alpha) ** 0.5))


def random_states(count):
    generator = torch.Generator().manual_seed(3)
    hidden = [torch.randn(count, D, generator=generator) * 5 + 2]
    return RoutedStates(hidden, [torch.rand(count, n, generator=generator) for n in EXPERTS])


def test_corpus_statistics_are_stored_and_independent_of_the_batch(tmp_path):
    """Fitted on the whole, applied to a part: the z-score of scipy; and the same after saving and loading."""
    from safetensors.torch import save_file

    whole = random_states(40)
    pooler = of("pooler.variant=concat", "reference_fault.standardise=corpus")
    assert pooler.lacks_statistics
    half = [
        RoutedStates([x[s] for x in whole.hidden], [x[s] for x in whole.routing]) for s in (slice(25), slice(25, 40))
    ]
    pooler.fit([pooler.parts(part) for part in half])
    assert not pooler.lacks_statistics
    wanted = zscore(torch.cat([*whole.hidden, *whole.routing], dim=1).double().numpy(), ddof=1)
    assert abs(pooler(half[1], TokenView(ROLES)).numpy() - wanted[25:]).max() < 1e-5
    save_file(pooler.state_dict(), tmp_path / "head.safetensors")
    again = of(
        "pooler.variant=concat",
        "reference_fault.standardise=corpus",
        f"pooler.statistics='{tmp_path}/head.safetensors'",
    )
    assert torch.equal(again(half[1], TokenView(ROLES)), pooler(half[1], TokenView(ROLES)))
    with pytest.raises(UserError, match="was made for another variant"):
        of(
            "pooler.variant=sum",
            "pooler.hidden_layers=all",
            "reference_fault.standardise=corpus",
            f"pooler.statistics='{tmp_path}/head.safetensors'",
        )


def test_an_entry_that_does_not_vary_stays_finite():
    whole = random_states(10)
    whole.routing[0][:, 0] = 0.25
    pooler = of("reference_fault.standardise=corpus")
    pooler.fit([pooler.parts(whole)])
    assert torch.isfinite(pooler(whole, TokenView(ROLES))).all()


def test_the_published_z_score_depends_on_the_batch():
    whole = random_states(12)
    pooler = of("pooler.variant=concat", "reference_fault=all")
    together = pooler(whole, TokenView(ROLES))
    joined = torch.cat([*whole.hidden, *whole.routing], dim=1).double().numpy()
    assert abs(together.numpy() - zscore(joined, ddof=1)).max() < 1e-5
    first = RoutedStates([x[:6] for x in whole.hidden], [x[:6] for x in whole.routing])
    assert (pooler(first, TokenView(ROLES)) - together[:6]).abs().max() > 0.1
    alone = RoutedStates([x[:1] for x in whole.hidden], [x[:1] for x in whole.routing])
    assert not pooler(alone, TokenView(ROLES)).any(), "nothing is left of a text alone"


def test_raw_logits_are_the_published_codes():
    hidden = states()
    out = run(of("pooler.variant=routing", "reference_fault=raw_routing"), hidden, TokenView(ROLES))
    assert torch.equal(out[1], torch.cat([hidden[i, 1, 3, :n] for i, n in zip(range(L), EXPERTS, strict=True)]))


def test_what_is_misspelt_is_refused():
    for word in ("variant=HS", "hidden_tokens=all", "hidden_layers=3", "routing_weights=top_k", "standardise=whole"):
        with pytest.raises(UserError, match=r"must be (one of|a text)"):
            of(f"pooler.{word}")


def test_the_trained_head_reads_both(monkeypatch):
    """Its keys are the layers' vectors, then the mapped routing weights; an even use of the experts adds nothing."""
    pooler = pooler_of("moee_trained", "causal")
    keys = []
    monkeypatch.setattr(pooler.head, "forward", lambda x: keys.append(x) or x.mean(dim=1))
    hidden = states()
    run(pooler, hidden, TokenView(ROLES))
    even = RoutedStates([torch.zeros(2, D)] * L, [torch.full((2, n), 1 / n) for n in EXPERTS])
    pooler(even, TokenView(ROLES))
    assert torch.allclose(keys[1], pooler.offsets.expand(2, -1, -1), atol=1e-6)
    for b in range(len(ROLES)):
        hs, rw = literal(hidden, b, "last")
        mapped = [
            m.weight.double() @ (n * w - 1) for m, n, w in zip(pooler.enter, EXPERTS, rw.split(EXPERTS), strict=True)
        ]
        wanted = torch.cat([hs, torch.stack(mapped)]) + pooler.offsets.double()
        assert torch.allclose(keys[0][b].double(), wanted, atol=1e-5)
    alone = pooler_of("moee_trained", "causal", "pooler.variant=routing")
    assert alone.offsets.shape == (len(EXPERTS), D)
    assert isinstance(of(), MoEE)
    assert F.normalize(run(alone, hidden, TokenView(ROLES)), dim=1).isfinite().all()
