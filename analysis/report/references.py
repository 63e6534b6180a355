"""The works of references.bib, which a methods paragraph cites as [@key], in plain text, HTML and LaTeX."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from analysis.grids.latex import escape as latex_escape

FILE = Path(__file__).with_name("references.bib")
# what BibTeX of 8-bit age cannot sort or print
ACCENTS = {r"{\v{s}}": "š", r"{\"i}": "ï", r"\&": "&"}
CITED = re.compile(r"\s*\[(@\w+(?:; ?@\w+)*)\]")


@dataclass(frozen=True)
class Reference:
    """One entry. `bibtex`: as it stands in the file; `fields`: name -> plain text."""

    bibtex: str
    fields: dict[str, str]

    @property
    def short(self) -> str:
        """Authors and year as a text cites them: Holm, 1979; Muennighoff et al., 2023."""
        names = [author.partition(",")[0] for author in self.fields["author"].split(" and ")]
        who = " and ".join(names) if len(names) <= 2 else f"{names[0]} et al."
        return f"{who}, {self.fields['year']}"

    @property
    def full(self) -> str:
        """The entry of a list of references."""
        given = self.fields
        place = next((given[key] for key in ("journal", "booktitle", "publisher", "school") if key in given), "")
        volume = given.get("volume", "") + (f"({given['number']})" if "number" in given else "")
        pages = given.get("pages", "").replace("--", "\N{EN DASH}")
        numbers = ":".join(filter(None, [volume, pages]))
        where = " ".join(filter(None, [place, numbers])) or f"arXiv:{given.get('eprint', '')}"
        end = "" if given["title"].endswith("?") else "."
        return f"{given['author'].replace(' and ', '; ')} ({given['year']}). {given['title']}{end} {where}."


def _read() -> dict[str, Reference]:
    entries = {}
    for entry in FILE.read_text(encoding="utf-8").split("\n\n"):
        key = entry[entry.index("{") + 1 : entry.index(",")]
        fields = dict(re.findall(r"^  (\w+) = \{(.*)\},$", entry, re.MULTILINE))
        entries[key] = Reference(entry.rstrip("\n") + "\n", {name: _plain(text) for name, text in fields.items()})
    return entries


def _plain(text: str) -> str:
    for tex, letter in ACCENTS.items():
        text = text.replace(tex, letter)
    return text.removeprefix("{").removesuffix("}")


REFERENCES = _read()


def bibtex(keys: Iterable[str]) -> str:
    """Return the entries of these keys, in the order of the file. Raises KeyError for an unknown key."""
    wanted = list(keys)
    unknown = [key for key in wanted if key not in REFERENCES]
    if unknown:
        raise KeyError(f"{FILE} has no {', '.join(unknown)}")
    return "\n".join(reference.bibtex for key, reference in REFERENCES.items() if key in wanted)


def keys_of(sentences: Iterable[str]) -> list[str]:
    """Return the keys cited, each once, in the order of their first use."""
    return list(dict.fromkeys(key for text in sentences for group in CITED.findall(text) for key in _keys(group)))


def html(sentence: str) -> Markup:
    """Cite as "(Holm, 1979)", each a link to its entry in the list of references."""
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
