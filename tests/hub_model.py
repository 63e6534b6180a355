"""A small decoder in the format of the hub's Llamas: BOS and a space before every text, no token for padding."""

import json
from pathlib import Path

STORIES = Path(__file__).resolve().parents[2] / "shared" / "data" / "models" / "stories260K"
HUB_MODELS = ["made", *(["stories260K"] if STORIES.is_dir() else [])]
SPECIAL = ["<unk>", "<s>", "</s>"]
LEARNT_FROM = """One day, a little girl named Lily went out to play. She saw a big dog and a small cat by the sun.
The dog and the cat were friends and played all day. The sum of two arrays is returned as a new array with the shape
and the type of the first argument. Find the words that were written, and write them again: "a sentence", "a word".
Instruct: find the sum of two arrays
Query: the sum of two arrays"""


def write_hub_model(folder: Path) -> Path:
    """Write a Llama of five layers (random weights, tied to its head) with its tokenizer to `folder` and return it."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    write_tokenizer(folder)
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=172,
        num_hidden_layers=5,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=512,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=None,
        tie_word_embeddings=True,
        initializer_range=0.1,
    )
    LlamaForCausalLM(shape).save_pretrained(folder)
    return folder


def write_tokenizer(folder: Path) -> None:
    """Write a BPE of words that begin with a low line, and of bytes for what it has not seen."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    written = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    scratch = Tokenizer(models.BPE())
    scratch.normalizer = written
    scratch.train_from_iterator(LEARNT_FROM.split("\n"), trainers.BpeTrainer(vocab_size=250, show_progress=False))
    learnt = json.loads(scratch.to_str())["model"]
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *learnt["vocab"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    merges = [tuple(merge) for merge in learnt["merges"]]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = written
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", 1)])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **names).save_pretrained(folder)
