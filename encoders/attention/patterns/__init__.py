"""Attention patterns beside the built-in ones, a file each (docs/extend.md)."""
