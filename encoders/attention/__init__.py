"""Which tokens see which, how it is set and proved, and attention without padding."""
