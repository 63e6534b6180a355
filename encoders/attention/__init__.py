"""Attention masks and kernels: the pattern of a design, padded or without padding."""
