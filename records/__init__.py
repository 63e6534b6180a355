"""What a run leaves behind: its folder, its manifest, files that are never half-written, errors of one line.

The lowest package of the tree: everything may import it, it imports nothing of ours and no torch.
"""
