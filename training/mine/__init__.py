"""`python -m training.mine`: hard negatives for pairs, ranked by an encoder, without those that may be positives."""
