"""Sentences with [@key] citations -> plain text, HTML, LaTeX."""

import re
from collections.abc import Iterable

from markupsafe import Markup, escape

from analysis.report.references import REFERENCES
from analysis.tables.render_latex import escape as latex_escape

CITED = re.compile(r"\s*\[(@\w+(?:; ?@\w+)*)\]")


def keys_of(sentences: Iterable[str]) -> list[str]:
    """Return the keys cited, each once, in the order of their first use."""
    found = [key for text in sentences for group in CITED.findall(text) for key in _keys(group)]
    return list(dict.fromkeys(found))


def plain(sentence: str) -> str:
    """Cite as "(Holm, 1979)"."""
    return CITED.sub(lambda m: f" ({'; '.join(REFERENCES[key].short for key in _keys(m[1]))})", sentence)


def html(sentence: str) -> Markup:
    """The same, each citation a link to its entry in the list of references."""
    parts = CITED.split(sentence)  # text, keys, text, keys, ...
    joined = Markup("")
    for k, part in enumerate(parts):
        joined += Markup(" ({})").format(Markup("; ").join(map(_link, _keys(part)))) if k % 2 else escape(part)
    return joined


def latex(sentence: str) -> str:
    r"""Cite as \cite{holm1979}; the rest is escaped."""
    parts = CITED.split(sentence)
    return "".join(rf"~\cite{{{','.join(_keys(p))}}}" if k % 2 else latex_escape(p) for k, p in enumerate(parts))


def _keys(group: str) -> list[str]:
    return [key.strip().removeprefix("@") for key in group.split(";")]


def _link(key: str) -> Markup:
    return Markup('<a href="#ref-{}">{}</a>').format(key, REFERENCES[key].short)
