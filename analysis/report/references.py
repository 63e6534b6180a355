"""The works that a methods paragraph may cite, by key; BibTeX and plain text come from the same fields."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape

from analysis.grids.latex import escape as latex_escape


@dataclass(frozen=True)
class Reference:
    """`kind` is BibTeX's; `fields` are its further fields, in order."""

    kind: str
    authors: tuple[str, ...]  # "Family, Given"
    title: str
    year: int
    fields: tuple[tuple[str, str], ...]

    @property
    def short(self) -> str:
        """Authors and year as a text cites them: Holm, 1979; Muennighoff et al., 2023."""
        names = [author.partition(",")[0] for author in self.authors]
        who = names[0] if len(names) == 1 else f"{names[0]} and {names[1]}" if len(names) == 2 else f"{names[0]} et al."
        return f"{who}, {self.year}"

    @property
    def full(self) -> str:
        """The entry of a list of references."""
        given = dict(self.fields)
        place = given.get("journal") or given.get("booktitle") or given.get("publisher") or given.get("school") or ""
        volume = given.get("volume", "") + (f"({given['number']})" if "number" in given else "")
        pages = given.get("pages", "").replace("--", "\N{EN DASH}")
        numbers = ":".join(filter(None, [volume, pages]))
        where = " ".join(filter(None, [place, numbers])) or f"arXiv:{given.get('eprint', '')}"
        end = "" if self.title.endswith("?") else "."
        return f"{'; '.join(self.authors)} ({self.year}). {self.title}{end} {where}."


def _of(kind: str, authors: str, title: str, year: int, **fields: str) -> Reference:
    return Reference(kind, tuple(authors.split("; ")), title, year, tuple(fields.items()))


REFERENCES: dict[str, Reference] = {
    "wilcoxon1945": _of(
        "article", "Wilcoxon, Frank", "Individual Comparisons by Ranking Methods", 1945,
        journal="Biometrics Bulletin", volume="1", number="6", pages="80--83", doi="10.2307/3001968",
    ),
    "pratt1959": _of(
        "article", "Pratt, John W.", "Remarks on Zeros and Ties in the Wilcoxon Signed Rank Procedures", 1959,
        journal="Journal of the American Statistical Association", volume="54", number="287", pages="655--667",
        doi="10.1080/01621459.1959.10501526",
    ),
    "hollander1973": _of(
        "book", "Hollander, Myles; Wolfe, Douglas A.", "Nonparametric Statistical Methods", 1973, publisher="Wiley",
    ),
    "kerby2014": _of(
        "article", "Kerby, Dave S.",
        "The Simple Difference Formula: An Approach to Teaching Nonparametric Correlation", 2014,
        journal="Comprehensive Psychology", volume="3", pages="11.IT.3.1", doi="10.2466/11.IT.3.1",
    ),
    "holm1979": _of(
        "article", "Holm, Sture", "A Simple Sequentially Rejective Multiple Test Procedure", 1979,
        journal="Scandinavian Journal of Statistics", volume="6", number="2", pages="65--70",
    ),
    "benjamini1995": _of(
        "article", "Benjamini, Yoav; Hochberg, Yosef",
        "Controlling the False Discovery Rate: A Practical and Powerful Approach to Multiple Testing", 1995,
        journal="Journal of the Royal Statistical Society: Series B", volume="57", number="1", pages="289--300",
        doi="10.1111/j.2517-6161.1995.tb02031.x",
    ),
    "hodges1963": _of(
        "article", "Hodges, Joseph L.; Lehmann, Erich L.", "Estimates of Location Based on Rank Tests", 1963,
        journal="The Annals of Mathematical Statistics", volume="34", number="2", pages="598--611",
        doi="10.1214/aoms/1177704172",
    ),
    "efron1993": _of(
        "book", "Efron, Bradley; Tibshirani, Robert J.", "An Introduction to the Bootstrap", 1993,
        publisher="Chapman & Hall",
    ),
    "pitman1937": _of(
        "article", "Pitman, Edwin J. G.",
        "Significance Tests Which May be Applied to Samples From any Populations", 1937,
        journal="Supplement to the Journal of the Royal Statistical Society", volume="4", number="1", pages="119--130",
        doi="10.2307/2984124",
    ),
    "dixon1946": _of(
        "article", "Dixon, Wilfrid J.; Mood, Alexander M.", "The Statistical Sign Test", 1946,
        journal="Journal of the American Statistical Association", volume="41", number="236", pages="557--566",
        doi="10.1080/01621459.1946.10501898",
    ),
    "phipson2010": _of(
        "article", "Phipson, Belinda; Smyth, Gordon K.",
        "Permutation P-values Should Never Be Zero: Calculating Exact P-values When Permutations Are Randomly Drawn",
        2010, journal="Statistical Applications in Genetics and Molecular Biology", volume="9", number="1",
        pages="Article 39", doi="10.2202/1544-6115.1585",
    ),
    "winkler2014": _of(
        "article",
        "Winkler, Anderson M.; Ridgway, Gerard R.; Webster, Matthew A.; Smith, Stephen M.; Nichols, Thomas E.",
        "Permutation Inference for the General Linear Model", 2014,
        journal="NeuroImage", volume="92", pages="381--397", doi="10.1016/j.neuroimage.2014.01.060",
    ),
    "winkler2015": _of(
        "article",
        "Winkler, Anderson M.; Webster, Matthew A.; Vidaurre, Diego; Nichols, Thomas E.; Smith, Stephen M.",
        "Multi-level Block Permutation", 2015,
        journal="NeuroImage", volume="123", pages="253--268", doi="10.1016/j.neuroimage.2015.05.092",
    ),
    "schuirmann1987": _of(
        "article", "Schuirmann, Donald J.",
        "A Comparison of the Two One-sided Tests Procedure and the Power Approach for Assessing the Equivalence of"
        " Average Bioavailability", 1987,
        journal="Journal of Pharmacokinetics and Biopharmaceutics", volume="15", number="6", pages="657--680",
        doi="10.1007/BF01068419",
    ),
    "box1973": _of(
        "book", "Box, George E. P.; Tiao, George C.", "Bayesian Inference in Statistical Analysis", 1973,
        publisher="Addison-Wesley",
    ),
    "student1908": _of(
        "article", "Student", "The Probable Error of a Mean", 1908,
        journal="Biometrika", volume="6", number="1", pages="1--25", doi="10.1093/biomet/6.1.1",
    ),
    "satterthwaite1946": _of(
        "article", "Satterthwaite, Franklin E.", "An Approximate Distribution of Estimates of Variance Components",
        1946, journal="Biometrics Bulletin", volume="2", number="6", pages="110--114", doi="10.2307/3002019",
    ),
    "bell2002": _of(
        "article", "Bell, Robert M.; McCaffrey, Daniel F.",
        "Bias Reduction in Standard Errors for Linear Regression with Multi-stage Samples", 2002,
        journal="Survey Methodology", volume="28", number="2", pages="169--181",
    ),
    "searle1992": _of(
        "book", "Searle, Shayle R.; Casella, George; McCulloch, Charles E.", "Variance Components", 1992,
        publisher="Wiley",
    ),
    "friedman1937": _of(
        "article", "Friedman, Milton",
        "The Use of Ranks to Avoid the Assumption of Normality Implicit in the Analysis of Variance", 1937,
        journal="Journal of the American Statistical Association", volume="32", number="200", pages="675--701",
        doi="10.1080/01621459.1937.10503522",
    ),
    "iman1980": _of(
        "article", "Iman, Ronald L.; Davenport, James M.",
        "Approximations of the Critical Region of the Friedman Statistic", 1980,
        journal="Communications in Statistics - Theory and Methods", volume="9", number="6", pages="571--595",
        doi="10.1080/03610928008827904",
    ),
    "nemenyi1963": _of(
        "phdthesis", "Nemenyi, Peter B.", "Distribution-free Multiple Comparisons", 1963,
        school="Princeton University",
    ),
    "demsar2006": _of(
        "article", "Demšar, Janez", "Statistical Comparisons of Classifiers over Multiple Data Sets", 2006,
        journal="Journal of Machine Learning Research", volume="7", pages="1--30",
    ),
    "muennighoff2023": _of(
        "inproceedings", "Muennighoff, Niklas; Tazi, Nouamane; Magne, Loïc; Reimers, Nils",
        "MTEB: Massive Text Embedding Benchmark", 2023,
        booktitle="Proceedings of the 17th Conference of the European Chapter of the Association for Computational"
        " Linguistics", pages="2014--2037", doi="10.18653/v1/2023.eacl-main.148",
    ),
    "tang2024": _of(
        "misc", "Tang, Yixuan; Yang, Yi",
        "Pooling and Attention: What are Effective Designs for LLM-Based Embedding Models?", 2024,
        eprint="2409.02727", archiveprefix="arXiv",
    ),
}  # fmt: skip


def bibtex(keys: Iterable[str]) -> str:
    """Return the entries of these keys, in the order of the table. Raises KeyError for an unknown key."""
    wanted = list(keys)
    unknown = [key for key in wanted if key not in REFERENCES]
    if unknown:
        raise KeyError(f"analysis/report/references.py has no {', '.join(unknown)}")
    return "\n".join(_entry(key, reference) for key, reference in REFERENCES.items() if key in wanted)


# what BibTeX of 8-bit age cannot sort or print
ACCENTS = {"š": r"{\v{s}}", "ï": r"{\"i}", "&": r"\&"}


def _entry(key: str, reference: Reference) -> str:
    fields = {"author": " and ".join(reference.authors), "title": f"{{{reference.title}}}", "year": str(reference.year)}
    fields |= dict(reference.fields)
    lines = [f"  {name} = {{{_ascii(text) if name != 'doi' else text}}}," for name, text in fields.items()]
    return "\n".join([f"@{reference.kind}{{{key},", *lines, "}", ""])


def _ascii(text: str) -> str:
    return "".join(ACCENTS.get(letter, letter) for letter in text)


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
