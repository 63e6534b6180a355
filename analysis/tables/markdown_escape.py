r"""Text -> Markdown that reads as the text: what CommonMark or GitHub would take for markup gets a backslash.

Only what would be markup is escaped, so that the source stays legible: an underscore within a word (`docs_tasks`) and
the `<` of `<.0001` are none.
"""

import re

MARKUP = re.compile(
    r"""
    [*|`~$]                             # emphasis, cells, code, struck out, GitHub's mathematics
    | \\(?=[!-/:-@\[-`{-~])             # a backslash that would escape what follows
    | <(?=[A-Za-z/!?])                  # HTML and autolinks
    | &(?=\#?\w+;)                      # entities
    | (?<=\])[(\[]                      # links: [a](b), [a][b]
    | (?<!_)(?<![^\W_])_+ | _+(?![\w])  # underscores at an end of a word; those within it are letters
    """,
    re.VERBOSE,
)


def escape(text: str) -> str:
    r"""Return the text with backslashes before what would be markup: a|b -> a\|b, _x_ -> \_x\_; one line."""
    return MARKUP.sub(lambda found: "".join(rf"\{c}" for c in found[0]), " ".join(text.splitlines()))
