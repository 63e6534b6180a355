"""A run that leaves the program: loaded in float32, with what sentence-transformers' own modules can be of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.errors import UserError
from encoders.adapter import is_mixture, mixing_of
from encoders.attention.pattern import Pattern, earlier, whole_text
from encoders.attention.switch import attention_of
from encoders.loading import load_run
from encoders.precision import refuse_quantised
from encoders.templates import TEXT_FIELD, ends_in_text
from encoders.text_encoder import TextEncoder
from poolers.shared.base import Pooler
from poolers.shared.standardise import Standardise
from records.manifest import read_manifest

Config = dict[str, Any]
# pooler -> mode of their Pooling
MODES = {"eos": "lasttoken", "cls": "cls_token", "mean": "mean_tokens", "weightedmean": "weightedmean_tokens"}
OF_ONE_TOKEN = ("lasttoken", "cls_token")


@dataclass(frozen=True)
class Exported:
    """A finished run. config: its manifest's, in float32 on the CPU. merged: whether LoRA goes into the weights."""

    run: Path
    manifest: Mapping[str, Any]
    config: Config
    text_encoder: TextEncoder
    merged: bool

    @property
    def pooler(self) -> Pooler:
        """Its trained pooler."""
        return self.text_encoder.encoder.pooler

    @property
    def pattern(self) -> Pattern:
        """Its attention."""
        return attention_of(self.text_encoder.encoder.backbone)

    @property
    def prompts(self) -> dict[str, str]:
        """Side -> the words before a bare text; the whole form, {text} in it, where the text is not the end of it."""
        template = self.text_encoder.tokenizer.template
        return {"query": _words(template.query.bare), "document": _words(template.document.bare)}

    @property
    def instruction(self) -> str:
        """The instruction that it was trained with, or one like those of its records; empty: it knows none."""
        of_records = "Find the answer." if self.manifest["data"]["instructed"] else ""
        return self.config["data"].get("instruction") or of_records

    @property
    def prompt(self) -> str:
        """The words before a query under `instruction`, as `prompt=` of sentence-transformers."""
        return _words(self.text_encoder.tokenizer.template.query.filled(self.instruction))

    @property
    def mode(self) -> str | None:
        """Return the mode of sentence-transformers' Pooling that gives this design's vectors; None where none does.

        Theirs pools all real tokens. It counts a prompt's tokens on the prompt alone, whose last space is then a token
        of its own, so prompts that are not pooled take our module, as BOS, EOS and layers of unlike attention do.
        """
        template, pooler = self.text_encoder.tokenizer.template, self.pooler
        mode = None if template.landmarks or template.prepended else MODES.get(self.config["pooler"]["name"])
        seen = set(self.pattern.of_layers(pooler.num_layers))
        forms = [form for side in (template.query, template.document) for form in vars(side).values()]
        uniform = seen == {earlier} or (seen == {whole_text} and self.merged)  # config.json of the base says causal
        framed = template.eos or self.text_encoder.tokenizer.bos is not None  # theirs knows no text without tokens
        if not (mode and uniform and framed and all(map(ends_in_text, forms))):
            return None
        prompted = self.instruction or any(self.prompts.values())
        all_pooled = (pooler.pool_instruction or not prompted) and (pooler.pool_eos or not template.eos)
        all_pooled &= pooler.pool_bos or self.text_encoder.tokenizer.bos is None
        return mode if mode in OF_ONE_TOKEN or all_pooled else None


def _words(form: str) -> str:
    return form.removesuffix(TEXT_FIELD) if ends_in_text(form) else form


def load_exported(run: Path, merged: bool = True) -> Exported:
    """Load the run in the folder `run`. Raises `UserError` for one that is not finished, or that cannot be exported."""
    manifest = read_manifest(run)
    if manifest["status"] != "finished":
        raise UserError(f"{run} is not finished (status {manifest['status']}). Give its train.py command again first.")
    config = manifest["config"]
    evaluation = {**config["evaluation"], "autocast": None, "dims": None}
    config = {**config, "precision": "fp32", "accelerator": "cpu", "evaluation": evaluation}
    refuse_quantised(config, "python -m encoders.export")
    if config["model"]["trust_remote_code"]:
        raise UserError(f"{run} cannot be exported: its base has code of its own (model.trust_remote_code=true).")
    if is_mixture(config) and not (merged and mixing_of(config["adapter"]).constant):
        raise UserError(
            f"{run} cannot be exported: its experts are weighed for each token. Of adapter=mixse only "
            "adapter.router=uniform can be, with adapter=merged."
        )
    if not merged and (config["init"]["merge"] or not (run / "adapter").is_dir()):
        why = "earlier stages are merged into its base" if config["init"]["merge"] else "it trained no adapter"
        raise UserError(f"adapter=beside does not fit {run}: {why}. Give adapter=merged.")
    text_encoder = load_run(run, config)
    pooler = text_encoder.encoder.pooler
    by_batch = any(isinstance(part, Standardise) and part.kind == "batch" for part in pooler.modules())
    if by_batch or pooler.reads_padding:
        keys = "standardise=batch" if by_batch else "last_real=false or mask_padding=false"
        raise UserError(f"{run} cannot be exported: with {keys} a text has no vector of its own, but one per batch.")
    return Exported(run, manifest, config, text_encoder, merged)
