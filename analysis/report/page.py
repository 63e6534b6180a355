"""Result and figures -> report.html (one file, no network), methods.tex and references.bib."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from analysis.analyse import Result
from analysis.drawings.drawing import Drawing
from analysis.grids.formats import typeset
from analysis.grids.latex import defined
from analysis.questions.pair_figures import LEADING
from analysis.report.methods import REFERENCES, bibtex, html, keys_of, latex, methods
from analysis.report.parts import answer_part, answer_parts, manifest_audit, representation_parts

HERE = Path(__file__).resolve().parent


def report_files(result: Result, drawings: list[Drawing]) -> dict[str, str]:
    """Return file name -> text."""
    sentences = methods(result)
    texts = {"methods.tex": methods_latex(sentences), "references.bib": bibtex(keys_of(sentences))}
    return {"report.html": _page(result, drawings, sentences, texts)} | texts


def methods_latex(sentences: list[str]) -> str:
    r"""Return the paragraph for \input; its \cite keys are those of references.bib."""
    text = "\n".join(map(latex, sentences))
    return f"% \\bibliography{{references}} in the document\n{defined(text)}\n"


def _page(result: Result, drawings: list[Drawing], sentences: list[str], texts: dict[str, str]) -> str:
    templates = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    templates.filters["minus"] = typeset
    keys = sorted(keys_of(sentences), key=lambda key: REFERENCES[key].short)
    notes, further = result.page_notes()
    leading = [drawing for drawing in drawings if drawing.name == LEADING]
    return templates.get_template("page.html.j2").render(
        title=f"{len(result.material.designs)} designs on {len(result.material.matrix)} tasks",
        summary=result.summary,
        verdict=result.verdict,
        first=answer_part(result.answers[0], leading),
        notes=notes,
        parts=[
            *answer_parts(result.answers[1:], [drawing for drawing in drawings if drawing not in leading]),
            *representation_parts(result.material.settings),
        ],
        audit=manifest_audit(result),
        further=further,
        methods=Markup(" ").join(map(html, map(typeset, sentences))),
        methods_latex=texts["methods.tex"],
        references=[(key, REFERENCES[key].full) for key in keys],
        bibtex=texts["references.bib"],
    )
