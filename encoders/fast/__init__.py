"""Faster layers with the same numbers: LoRA, dropout, and passes over memory."""
