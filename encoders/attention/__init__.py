"""Attention patterns, set on a decoder and proved; kernels, among them one without padding."""
