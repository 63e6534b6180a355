"""From the words of a command line to a checked configuration, and errors of one line.

The lowest package of the tree: everything may import it, it imports nothing of ours and no torch."""
