"""The encoders that a command scores."""
