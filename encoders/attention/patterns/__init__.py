"""Attention patterns: one file here and one YAML in conf/attn each."""
