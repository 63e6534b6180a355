"""How training went: the loss of every step, and held-out figures before and after."""
