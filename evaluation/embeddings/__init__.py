"""Vectors by encoder, instruction and text: in memory or on disk."""
