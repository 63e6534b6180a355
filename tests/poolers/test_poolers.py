"""Each pooler against a literal expression, text by text, without padding, in float64."""

import sys
import types

import pytest
import torch

from cli.compose import composed, plain
from cli.errors import UserError
from poolers.shared import registry
from poolers.shared.base import BOS, EOS, INSTRUCTION, PAD, TEXT, RoutedStates, TokenView
from poolers.shared.cross_attention import CrossAttentionHead
from poolers.shared.registry import build_pooler, check_pooler, pooler_class
from tests.cells import CELLS

D, L, T = 8, 3, 7
EXPERTS = [4, 4, 6]  # of the three MoE layers, for poolers that read routers
ROLES = torch.tensor(
    [
        [BOS, INSTRUCTION, INSTRUCTION, TEXT, TEXT, TEXT, EOS],
        [BOS, INSTRUCTION, TEXT, EOS, PAD, PAD, PAD],
        [PAD, PAD, PAD, PAD, BOS, TEXT, EOS],
    ]
)


def states():
    torch.manual_seed(1)
    hidden = torch.randn(L, len(ROLES), T, D)
    hidden[:, ROLES == PAD] = torch.nan  # whatever stands at padding must not matter
    return hidden


def pooler_of(name, attn="bi", *overrides):
    cfg = plain(composed("train", [f"pooler={name}", f"attn={attn}", *overrides]))["pooler"]
    few = {"num_heads": 2, "num_queries": 3, "num_latents": 3}
    return build_pooler({k: few.get(k, v) for k, v in cfg.items()}, D, L, seed=0, experts=EXPERTS).eval()


def run(pooler, hidden, view):
    if pooler.consumes == "layers":
        return pooler([pooler.reduce(i, hidden[i], view) for i in range(L)], view)
    if pooler.consumes == "routers":
        logits = [hidden[i, ..., :n] for i, n in zip(range(L), EXPERTS, strict=True)]
        routing = [pooler.reduce_routing(i, x, view) for i, x in enumerate(logits)]
        return pooler(RoutedStates([pooler.reduce(i, hidden[i], view) for i in pooler.layers], routing), view)
    return pooler(hidden[-1], view)


def real(row, *also):
    """Places of the text and of EOS, and of the roles in `also`."""
    return [t for t in range(T) if ROLES[row, t] in (TEXT, EOS, *also)]


@pytest.mark.parametrize(("name", "places"), [("eos", (6, 3, 6)), ("cls", (0, 0, 4))])
def test_eos_and_cls_are_the_last_and_the_first_real_token(name, places):
    hidden = states()
    assert torch.equal(run(pooler_of(name), hidden, TokenView(ROLES)), hidden[-1, range(len(ROLES)), places])


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("instruction", [False, True])
@pytest.mark.parametrize("name", ["mean", "weightedmean"])
def test_means_count_real_tokens_only(name, instruction, bos):
    hidden = states()
    words = f"pooler.pool_instruction={instruction}", f"reference_fault.pool_bos={bos}"
    out = run(pooler_of(name, "bi", *words), hidden, TokenView(ROLES))
    for b in range(len(ROLES)):
        places = real(b, *[INSTRUCTION] * instruction, *[BOS] * bos)
        weights = range(1, len(places) + 1) if name == "weightedmean" else [1] * len(places)
        wanted = sum(w * hidden[-1, b, t].double() for w, t in zip(weights, places, strict=True)) / sum(weights)
        assert torch.allclose(out[b].double(), wanted, atol=1e-6)


@pytest.mark.parametrize(("unit", "start"), [(True, "uniform"), (True, "last"), (False, "last")])
def test_layermean_is_the_weighted_sum_of_the_layers_means(unit, start):
    pooler = pooler_of("layermean", "bi", f"pooler.unit={unit}", f"pooler.start={start}", "pooler.rate=4")
    shares = torch.exp(4 * pooler.weights.detach().double()) / torch.exp(4 * pooler.weights.detach().double()).sum()
    wanted = [0.05, 0.05, 0.9] if start == "last" else [1 / 3] * 3
    assert shares.tolist() == pytest.approx(wanted, abs=1e-6)
    hidden = states()
    out = run(pooler, hidden, TokenView(ROLES))
    for b in range(len(ROLES)):
        means = [hidden[i, b, real(b)].double().mean(dim=0) for i in range(L)]
        kept = [m / m.pow(2).sum().sqrt() if unit else m for m in means]
        assert torch.allclose(out[b].double(), sum(w * m for w, m in zip(wanted, kept, strict=True)), atol=1e-6)


def literal_head(head: CrossAttentionHead, keys: torch.Tensor, asked: torch.Tensor | None = None) -> torch.Tensor:
    """The head for one text and keys [K, D], query by query and head by head, float64. asked: u of each key [K, D]."""
    head = head.double()
    norm = torch.nn.functional.layer_norm
    x = norm(keys.double(), (D,), head.norm_keys.weight, head.norm_keys.bias)
    q = norm(head.queries, (D,), head.norm_queries.weight, head.norm_queries.bias)
    d = head.head_dim
    moved = torch.zeros_like(x) if asked is None else norm(asked.double(), (D,)) @ head.of_instruction.weight.T
    outputs = []
    for n in range(len(q)):
        parts = []
        for h in range(head.num_heads):
            rows = slice(h * d, (h + 1) * d)
            query = head.query.weight[rows]
            asks = [query @ (q[n] + m) for m in moved]
            scores = torch.stack([(head.key.weight[rows] @ k) @ a / d**0.5 for k, a in zip(x, asks, strict=True)])
            weights = torch.exp(scores - scores.max()) / torch.exp(scores - scores.max()).sum()
            parts.append(sum(w * (head.value.weight[rows] @ k) for w, k in zip(weights, x, strict=True)))
        outputs.append(head.output.weight @ torch.cat(parts))
    y = torch.stack(outputs)
    if head.mlp is None:
        return y.mean(dim=0)
    mlp = head.mlp
    a, b = (mlp.enter.weight @ norm(y, (D,), mlp.norm.weight, mlp.norm.bias).T + mlp.enter.bias[:, None]).chunk(2)
    gelu = b * 0.5 * (1 + torch.erf(b / 2**0.5))
    return (y + (mlp.leave.weight @ (a * gelu) + mlp.leave.bias[:, None]).T).mean(dim=0)


def randomise(pooler):
    torch.manual_seed(2)
    for p in pooler.parameters():
        p.data.normal_(std=0.5)
    return pooler


@pytest.mark.parametrize("mlp", [True, False])
@pytest.mark.parametrize("tokens", ["all", "last", "mean"])
def test_lastlayer_equals_the_literal_head(tokens, mlp):
    pooler = randomise(pooler_of("lastlayer", "bi", f"pooler.tokens={tokens}", f"pooler.mlp={mlp}"))
    hidden = states()
    out = run(pooler, hidden, TokenView(ROLES))
    for b in range(len(ROLES)):
        own = hidden[-1, b, real(b)]
        keys = {"all": own, "last": own[-1:], "mean": own.mean(dim=0, keepdim=True)}[tokens]
        assert torch.allclose(out[b].double(), literal_head(pooler.head, keys), atol=1e-5)
        pooler.head.float()


def instruction_mean(states, row):
    """The mean of a text's instruction tokens in states [T, D], zeros without one."""
    asked = states[ROLES[row] == INSTRUCTION]
    return asked.mean(dim=0) if len(asked) else torch.zeros(D)


def test_lastlayer_with_moved_queries_equals_the_literal_head():
    pooler, hidden = randomise(pooler_of("lastlayer", "bi", "pooler.query=instruction")), states()
    out = run(pooler, hidden, TokenView(ROLES))
    for b in range(len(ROLES)):
        keys = hidden[-1, b, real(b)]
        asked = instruction_mean(hidden[-1, b], b).expand_as(keys)
        assert torch.allclose(out[b].double(), literal_head(pooler.head, keys, asked), atol=1e-5)
        pooler.head.float()


@pytest.mark.parametrize("query", ["fixed", "instruction"])
@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("tokens", ["all", "last", "mean"])
def test_multilayer_equals_the_literal_head(tokens, weights, query):
    words = f"pooler.tokens={tokens}", f"pooler.layer_weights={weights}", f"pooler.query={query}"
    pooler = randomise(pooler_of("multilayer", "bi", *words))
    hidden = states()
    out = run(pooler, hidden, TokenView(ROLES))
    added = pooler.layer_weights.detach() if weights else torch.zeros(L, D)
    for b in range(len(ROLES)):
        layers = [hidden[i, b, real(b)] for i in range(L)]
        reduced = {"all": lambda h: h, "last": lambda h: h[-1:], "mean": lambda h: h.mean(dim=0, keepdim=True)}[tokens]
        keys = torch.cat([reduced(h) + added[i] for i, h in enumerate(layers)])
        of_layers = torch.stack([instruction_mean(hidden[i, b], b) for i in range(L)])
        asked = of_layers.repeat_interleave(len(keys) // L, dim=0) if query == "instruction" else None
        assert torch.allclose(out[b].double(), literal_head(pooler.head, keys, asked), atol=1e-5)
        pooler.head.float()


@pytest.mark.parametrize("name", ["lastlayer", "multilayer"])
def test_queries_that_instructions_move_start_as_fixed_ones_and_move_instructed_texts_alone(name):
    fixed, moved = (pooler_of(name, "bi", f"pooler.query={query}") for query in ("fixed", "instruction"))
    added = [key for key in moved.state_dict() if key not in fixed.state_dict()]
    assert added == ["head.of_instruction.weight"]
    assert all(torch.equal(value, moved.state_dict()[key]) for key, value in fixed.state_dict().items())
    hidden, view = states(), TokenView(ROLES)
    start = run(fixed, hidden, view)
    assert torch.equal(start, run(moved, hidden, view))
    moved.head.of_instruction.weight.data.normal_()
    assert (start != run(moved, hidden, view)).any(dim=1).tolist() == [True, True, False]


@pytest.mark.parametrize(
    "words", [("lastlayer", "bi", "pooler.tokens=last"), ("multilayer", "bi", "pooler.layers='last:1'")]
)
def test_queries_over_one_key_are_refused(words):
    with pytest.raises(UserError, match=r"is one key, so pooler.query=instruction can move no attention"):
        pooler_of(*words, "pooler.query=instruction")


def test_paper_defaults_of_what_a_multilayer_head_reads():
    assert pooler_of("multilayer", "causal").tokens == "last"
    assert pooler_of("multilayer", "bi").tokens == "mean"


@pytest.mark.parametrize(("name", "attn"), CELLS)
def test_contract(name, attn):
    pooler = pooler_of(name, attn)
    hidden = states().to(torch.bfloat16)
    out = run(pooler, hidden, TokenView(ROLES))
    assert out.shape == (len(ROLES), pooler.embedding_dim)
    assert out.dtype == torch.float32
    assert torch.isfinite(out).all()
    assert pooler.needs_training == any(p.requires_grad for p in pooler.parameters())
    if pooler.needs_training:
        (out * torch.linspace(-1, 1, D)).sum().backward()
        unused = [n for n, p in pooler.named_parameters() if p.grad is None]
        assert not unused, f"parameters outside the graph: {unused}"


def test_the_heads_start_is_its_own_stream():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, same, other = (
        build_pooler(plain(composed("train", ["pooler=lastlayer"]))["pooler"], 16, L, s) for s in (1, 1, 2)
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(one.head.queries, same.head.queries)
    assert not torch.equal(one.head.queries, other.head.queries)


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        ("lastlayer", "head_dim", 0, "a whole number, at least 1; null: hidden size / num_heads"),
        ("latent", "num_latents", 1.5, "a whole number, at least 1"),
        ("multilayer", "layer_weights_std", -1, "a number, at least 0"),
        ("moee", "standardise_texts", 1, "a whole number, at least 2"),
    ],
)
def test_numbers_are_held_to_the_limits_of_the_pooler_s_own_class(name, key, value, message):
    check_pooler({"name": name})
    with pytest.raises(UserError, match=f"^pooler.{key}={value} must be {message}"):
        check_pooler({"name": name, key: value})


@pytest.mark.parametrize(
    ("said", "weights", "message"),
    [
        (False, 1, r"has parameters \(map.weight, ...\), and its class says needs_training = False. Write .* = True"),
        (True, 0, r"has no parameters, and its class says needs_training = True. Write .* = False there"),
    ],
)
def test_a_class_that_says_wrongly_whether_it_is_trained_is_refused(monkeypatch, said, weights, message):
    """Undeclared, a head would train beside LoRA, but be refused as one without parameters on a frozen backbone, and
    stay untrained in silence under an objective that pools nothing."""

    class Mine(pooler_class("mean")):
        needs_training = said

        def __init__(self, *sizes, **settings):
            super().__init__(*sizes, **settings)
            self.map = torch.nn.Linear(D, D, bias=False) if weights else None

    module = types.ModuleType("poolers.mine")
    module.Mine, Mine.__module__ = Mine, "poolers.mine"
    monkeypatch.setitem(sys.modules, "poolers.mine", module)
    monkeypatch.setattr(registry, "pooler_names", lambda: ["mine"])
    with pytest.raises(UserError, match=rf"poolers/mine\.py {message}"):
        build_pooler({"name": "mine"}, D, L, 0)
    Mine.needs_training = not said
    assert len(list(build_pooler({"name": "mine"}, D, L, 0).parameters())) == weights
