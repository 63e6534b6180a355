"""The contract of a pooler, the registry, and the layers that several designs share."""
