"""From the words of a command line to a checked configuration; errors of one line. Imports nothing of ours."""
