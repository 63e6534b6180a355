"""Attention of trained heads, and their loss without a layer."""
