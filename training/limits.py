"""What the numbers of a training run may be, for each objective."""

from typing import Any

from omegaconf import OmegaConf

from cli.compose import CONF
from cli.errors import UserError
from cli.limits import ENCODER, ENCODER_WORDS, SWITCH, Limit, check_limits, real
from encoders.attention.pattern import pattern_of
from poolers.shared.registry import check_pooler

Config = dict[str, Any]

CONTRASTIVE = ENCODER | {
    "trainer.max_steps": Limit(0),
    "trainer.global_batch_size": Limit(1),
    "trainer.graph_tokens": Limit(0),
    "trainer.chunk_size": Limit(1, "token_budget alone"),
    "trainer.checkpoint_every": Limit(0),
    "trainer.validate_every": Limit(0),
    "trainer.devices": Limit(1),
    "trainer.threads": Limit(1, "one for each core"),
    "trainer.gradient_clip": real(0, "none"),
    "objective.hard_negatives": Limit(0, "all that a query has"),
    "objective.loss_queries": Limit(2, "the whole batch"),
    "objective.warmup": Limit(0),
    "objective.decay_epochs": real(1e-6, "trainer.max_steps alone"),
    "objective.temperature": real(0),
    "objective.attention_dropout": real(0, below=1),
    "objective.mask_share": real(1e-6, largest=1),
    "objective.replaced_by_mask": real(0, largest=1),
    "objective.replaced_by_random": real(0, largest=1),
    "objective.lr": real(0),
    "objective.head_lr": real(0, "objective.lr"),
    "objective.weight_decay": real(0),
    "lora.r": Limit(1),
    "lora.alpha": real(0),
    "lora.dropout": real(0, below=1),
    "data.validation": Limit(1),
}
CLM = {
    "seed": Limit(0),
    "trainer.max_steps": Limit(1),
    "trainer.checkpoint_every": Limit(0),
    "trainer.devices": Limit(1, largest=1),
    "trainer.threads": Limit(1, "one for each core"),
    "objective.sequence_length": Limit(2),  # a token is predicted from those before it
    "objective.batch": Limit(1),
    "objective.lr": real(0),
    "objective.warmup": Limit(0),
    "objective.decay": real(0, largest=1),
    "objective.balance": real(0),
    "objective.weight_decay": real(0),
    "objective.held_out_percent": Limit(1, largest=99),
    "model.vocab_size": Limit(259),  # bytes and the three special tokens
    "model.architecture.hidden_size": Limit(1),
    "model.architecture.num_hidden_layers": Limit(1),
    "model.architecture.intermediate_size": Limit(1),
    "model.architecture.num_attention_heads": Limit(1),
    "model.architecture.num_key_value_heads": Limit(1),
    "model.architecture.max_position_embeddings": Limit(2),
}


def check_contrastive(config: Config) -> None:
    """Check the numbers of a run on pairs or raw text, and that its recipe is of its objective. Raises `UserError`."""
    _refuse_other_recipe(config["objective"])
    check_limits(config, CONTRASTIVE, ENCODER_WORDS | {"objective.packed": SWITCH})
    pattern_of(config["attn"])
    check_pooler(config["pooler"])


def _refuse_other_recipe(objective: Config) -> None:
    """Refuse keys that conf/objective/<name>.yaml has not: an experiment's recipe for another objective."""
    file = CONF / "objective" / f"{objective['name']}.yaml"
    known = OmegaConf.load(file) if file.is_file() else objective
    foreign = [key for key in objective if key not in known]
    if foreign:
        raise UserError(
            f"objective.{foreign[0]} is no key of objective={objective['name']}: an experiment= with the recipe of "
            f"another objective set it. Leave that experiment out, or take one for {objective['name']}, such as "
            "experiment=llm2vec/mntp or experiment=llm2vec/simcse with model= and study= of your own."
        )


def check_clm(config: Config) -> None:
    """Check what `objective=clm` needs, before text is read. Raises `UserError`."""
    model, data, o = config["model"], config["data"], config["objective"]
    if config.get("lineage"):
        raise UserError("objective=clm starts from random weights, so it has no lineage. Leave lineage and stages out.")
    if model.get("path") or not {"architecture", "vocab_size"} <= model.keys():
        raise UserError(
            f"objective=clm starts from an architecture; model={model['name']} has weights. Give model=tiny_scratch."
        )
    if "packages" not in data:
        raise UserError(f"objective=clm reads docstrings, not data={data['name']}. Give data=docstrings.")
    check_limits(config, CLM, {key: ENCODER_WORDS[key] for key in ("accelerator", "precision")})
    betas = o["betas"]
    if not isinstance(betas, list) or len(betas) != 2 or not all(real(0, below=1).allows(beta) for beta in betas):
        raise UserError(f"objective.betas={betas} must be two numbers of at least 0 and below 1, such as [0.9,0.95].")
    positions = model["architecture"]["max_position_embeddings"]
    if o["sequence_length"] > positions:
        raise UserError(
            f"objective.sequence_length={o['sequence_length']} is more than the {positions} positions of the model. "
            "Lower it, or raise model.architecture.max_position_embeddings."
        )
