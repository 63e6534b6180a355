"""The model folder: weights, tokenizer and modules; sentence-transformers' own modules where they are the design."""

import json
import shutil
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import save_file
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig

from encoders.backbone import model_path
from encoders.encoder import experts_of
from encoders.export.bundle import bundled
from encoders.export.exported import OF_ONE_TOKEN, Config, Exported
from poolers.shared.registry import OUTSIDE
from poolers.shared.vector_geometry import unit
from records.files import write_json, write_text

OURS = "modeling_embedder"  # the module file of designs that sentence-transformers has none for
OF_WINDOWS = ("sliding_window", "use_sliding_window", "layer_types", "attention_chunk_size")


def write_folder(exported: Exported, folder: Path) -> None:
    """Write the model to `folder`, which is made."""
    encoder, mode = exported.text_encoder.encoder, exported.mode
    folder.mkdir()
    first: Config = {"max_seq_length": exported.text_encoder.max_length, "do_lower_case": False}
    first["config_kwargs"] = _write_decoder(exported, folder)
    if not exported.merged:
        first["model_kwargs"] = {"dtype": "float32"}  # also where the base is saved in fewer bits
    _write_tokenizer(exported, folder)
    if mode:
        names = ["sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling"]
        pooling = {"word_embedding_dimension": encoder.pooler.hidden_size, f"pooling_mode_{mode}": True}
        pooling["include_prompt"] = mode in OF_ONE_TOKEN or exported.pooler.pool_instruction
        write_json(folder / "1_Pooling" / "config.json", pooling)
    else:
        names = [f"{OURS}.Decoder", f"{OURS}.DesignPooling"]
        first["pattern"] = [type(exported.pattern).__name__, asdict(exported.pattern)]
        template, keys = vars(exported.text_encoder.tokenizer.template), ("eos", "landmarks", "prepended")
        first |= {"template": {key: template[key] for key in keys}, "consumes": encoder.pooler.consumes}
        _write_pooler(exported, folder)
    parts = [*zip(("", "1_Pooling"), names, strict=True)]
    if encoder.normalize:
        parts.append(("2_Normalize", "sentence_transformers.models.Normalize"))
        write_json(folder / "2_Normalize" / "config.json", {})
    modules = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(parts)]
    prompts = exported.prompts
    whole = {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine", "prompts": prompts}
    write_json(folder / "modules.json", modules)
    write_json(folder / "sentence_bert_config.json", first)
    write_json(
        folder / "config_sentence_transformers.json",
        {**whole, "default_prompt_name": "query" if prompts["query"] else None},
    )


def _write_decoder(exported: Exported, folder: Path) -> Config:
    """Write the merged weights; or the adapter, and return what is not in the configuration of the base it names."""
    backbone: Any = exported.text_encoder.encoder.backbone
    if exported.merged:
        backbone.save_pretrained(folder)  # with config.is_causal, which transformers obeys since 5.2
        return {}
    base = model_path(exported.config["model"]["path"])
    base = str(Path(base).resolve()) if Path(base).is_dir() else base
    adapter = exported.run / "adapter"
    settings = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
    shutil.copy(adapter / "adapter_model.safetensors", folder)
    revision = exported.manifest.get("base_revision")
    write_json(folder / "adapter_config.json", {**settings, "base_model_name_or_path": base, "revision": revision})
    ours, theirs = backbone.config.to_dict(), AutoConfig.from_pretrained(base, revision=revision).to_dict()
    return {key: ours[key] for key in OF_WINDOWS if key in theirs and ours[key] != theirs[key]}


def _write_tokenizer(exported: Exported, folder: Path) -> None:
    """Write the tokenizer as it is; for modules of theirs one that does by itself what `TextTokenizer` does."""
    rules = exported.text_encoder.tokenizer
    tokenizer: Any = deepcopy(rules.tokenizer)
    if not exported.mode:
        tokenizer.save_pretrained(folder)
        return
    before, after = [rules.bos] if rules.bos is not None else [], [rules.eos] if rules.template.eos else []
    *words, tokenizer.pad_token = tokenizer.convert_ids_to_tokens([*before, *after, rules.pad])
    form = [*words[: len(before)], "$A", *words[len(before) :]]
    special = [*zip(words, [*before, *after], strict=True)]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(form, [*form, "$B"], special)
    tokenizer.padding_side = "right"  # families with learned positions count padding on the left
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    template_anew = ("add_bos_token", "add_eos_token")
    settings = {key: value for key, value in settings.items() if key not in template_anew}
    settings |= {"tokenizer_class": "PreTrainedTokenizerFast", "split_special_tokens": True}
    write_json(path, {**settings, "model_max_length": rules.max_length})


def _write_pooler(exported: Exported, folder: Path) -> None:
    """Write the module file with this pooler and attention, and the pooler's settings and weights."""
    from encoders.export.modules import Decoder, DesignPooling

    pooler, place = exported.pooler, folder / "1_Pooling"
    settings = {key: x for key, x in exported.config["pooler"].items() if key not in {*OUTSIDE, "statistics"}}
    if pooler.consumes == "routers":
        settings["experts"] = experts_of(exported.text_encoder.encoder.backbone)
    sizes = {"hidden_size": pooler.hidden_size, "num_layers": pooler.num_layers}
    write_json(place / "config.json", {"design": type(pooler).__name__, **sizes, "settings": settings})
    save_file(
        {f"pooler.{name}": x.contiguous() for name, x in pooler.state_dict().items()}, place / "model.safetensors"
    )
    roots: list[type] = [Decoder, DesignPooling, type(pooler), type(exported.pattern)]
    title = "Tokens, attention and pooling of this model, for sentence-transformers >= 6."
    write_text(folder / f"{OURS}.py", bundled(roots, title))


def least_cosine(exported: Exported, folder: Path) -> float:
    """Return the smallest cosine of a text's vector by the program and by sentence-transformers from `folder`.

    Texts stand in one batch and alone, as queries and as documents, and under the prompt that the run was trained with.
    The model that is loaded also writes its card.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.model_card import generate_model_card

    ours, template = exported.text_encoder, exported.text_encoder.tokenizer.template
    eos = ours.tokenizer.tokenizer.eos_token or "</s>"
    texts = ["sum", "The sum of two arrays.", f"{eos} is text here", "one two three " * ours.max_length]
    queries, documents = ours.encode(texts), ours.encode(texts, template.asked("", "document"))
    asked = ours.encode(texts, template.asked(exported.instruction, "query"))
    model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=not exported.mode)
    theirs = [model.encode(texts), model.encode(texts, batch_size=1), model.encode_document(texts)]
    theirs.append(model.encode(texts, prompt=exported.prompt))
    trained = f"`model.encode(queries, prompt={exported.prompt!r})`" if exported.instruction else "bare texts"
    write_text(folder / "README.md", f"{generate_model_card(model)}\nTrained on {trained}.\n")
    one, other = unit(np.concatenate([queries, queries, documents, asked])), unit(np.concatenate(theirs))
    return float((one * other).sum(axis=1).min())
