"""The result as tables: Markdown, LaTeX, CSV, JSON."""
