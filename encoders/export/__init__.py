"""A run as a model folder of sentence-transformers, for those who have not this program: python -m encoders.export."""
