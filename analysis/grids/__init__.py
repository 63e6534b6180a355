"""Tables and their formats: Markdown, LaTeX, HTML, CSV."""
