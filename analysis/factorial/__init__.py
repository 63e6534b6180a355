"""Main effects and interactions of the factors that designs cross."""
