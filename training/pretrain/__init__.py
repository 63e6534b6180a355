"""Pretraining of small decoders: objective clm, its tokenizer and its model card."""
