"""The methods paragraph: the tests that were really used, with the settings of this run, citing references.bib."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from analysis.analyse import Result
from analysis.grids.latex import escape as latex_escape
from analysis.names import listed
from analysis.questions.pair_texts import seed_notes
from analysis.questions.question import Material
from analysis.result_json import versions
from analysis.scores.task_types import known_types

FILE = Path(__file__).with_name("references.bib")
# what BibTeX of 8-bit age cannot sort or print
ACCENTS = {r"{\v{s}}": "š", r"{\"i}": "ï", r"\&": "&"}
CITED = re.compile(r"\s*\[(@\w+(?:; ?@\w+)*)\]")


def methods(result: Result) -> list[str]:
    """Return the sentences, citations as [@key]."""
    return [
        *_compared(result.material),
        *_control(result.material),
        *(sentence for answer in result.answers for sentence in answer.methods),
        _software(result),
    ]


def _compared(material: Material) -> Iterator[str]:
    kinds = [f"{kind}: {len(tasks)}" for kind, tasks in material.types.items()]
    types = f"{len(kinds)} types ({', '.join(kinds)})" if len(kinds) > 1 else f"the type {next(iter(material.types))}"
    designs, tasks = len(material.designs), len(material.matrix)
    yield f"We compared {designs} designs on {tasks} tasks of {types}{_benchmark(material)}."
    if any(design.pooler for design in material.designs.values()):
        yield "The designs are cells of the grid pooling x attention [@tang2024]."
    yield from seed_notes(material.frame, list(material.designs))


def _benchmark(material: Material) -> str:
    """mteb's own tasks, or others that its program scored."""
    if all(task in known_types() for task in material.matrix.index):
        return " of MTEB [@muennighoff2023]"
    folders = all(path.is_dir() for path in material.settings.scores)
    return ", scored with the program of MTEB [@muennighoff2023]" if folders else ""


def _control(material: Material) -> Iterator[str]:
    """Sentences that manifests prove; of foreign scores nothing is claimed."""
    if not any(design.runs for design in material.designs.values()):
        return
    but = listed([key for note in material.footnotes for key in note.keys])
    allowed = f", except in {but}, which we let through" if but else ""
    yield (
        "The manifests of all runs agree in everything but the factors"
        f" ({listed(material.settings.factors)}) and what follows from them{allowed}."
    )


def _software(result: Result) -> str:
    """Name what ran, no package that is merely installed."""
    python, *used = (f"{name} {number}" for name, number in versions(result.material.settings.figures).items())
    return f"Computed with {python.capitalize()} ({', '.join(used)})."


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
        numbers = ":".join(filter(None, [volume, given.get("pages", "").replace("--", "\N{EN DASH}")]))
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
    if unknown := [key for key in wanted if key not in REFERENCES]:
        raise KeyError(f"{FILE} has no {', '.join(unknown)}")
    return "\n".join(reference.bibtex for key, reference in REFERENCES.items() if key in wanted)


def keys_of(sentences: Iterable[str]) -> list[str]:
    """Return the keys cited, each once, in the order of their first use."""
    return list(dict.fromkeys(key for text in sentences for group in CITED.findall(text) for key in _keys(group)))


def html(sentence: str) -> Markup:
    """Cite as "(Holm, 1979)", each a link to its entry in the list of references."""
    parts = enumerate(CITED.split(sentence))  # text, keys, text, keys, ...
    cited = Markup(" ({})")
    return Markup("").join(cited.format(Markup("; ").join(map(_link, _keys(p)))) if k % 2 else p for k, p in parts)


def latex(sentence: str) -> str:
    r"""Cite as \cite{holm1979}; the rest is escaped."""
    parts = CITED.split(sentence)
    return "".join(rf"~\cite{{{','.join(_keys(p))}}}" if k % 2 else latex_escape(p) for k, p in enumerate(parts))


def _keys(group: str) -> list[str]:
    return [key.strip().removeprefix("@") for key in group.split(";")]


def _link(key: str) -> Markup:
    return Markup('<a href="#ref-{}">{}</a>').format(key, REFERENCES[key].short)
