"""Text -> tokens with roles -> hidden states -> vector. Shared by training and evaluation, so both embed alike."""
