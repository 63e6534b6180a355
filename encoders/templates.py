"""Wordings of a text and its instruction, on the side of queries and on that of documents."""

import re
from dataclasses import dataclass
from typing import Any

from cli.errors import UserError

TEXT_FIELD, INSTRUCTION_FIELD = "{text}", "{instruction}"
SIDES = ("query", "document")


@dataclass(frozen=True)
class Form:
    """The wording of one side, without an instruction (`bare`) and with one. `{text}` stands once or twice."""

    bare: str
    instructed: str

    def filled(self, instruction: str) -> str:
        return self.instructed.replace(INSTRUCTION_FIELD, instruction) if instruction else self.bare


@dataclass(frozen=True)
class Template:
    """A wording for each side. eos: whether EOS closes a text. landmarks: tokens of the text between two of them.
    prepended: layers whose last token enters the next one at a placeholder before the text, see `prepend`."""

    name: str
    query: Form
    document: Form
    eos: bool = True
    landmarks: int | None = None
    prepended: int | None = None

    def asked(self, instruction: str, side: str) -> str:
        """Return what the tokenizer takes for a text: the instruction, or where sides differ the whole form.

        side: "query", "document". It keys caches and batches.
        """
        if TEXT_FIELD in instruction:
            raise UserError(f"The instruction {instruction[:60]!r} holds {TEXT_FIELD}, where the text goes. Reword it.")
        if self.query == self.document:
            return instruction
        return (self.query if side == "query" else self.document).filled(instruction)

    def form(self, asked: str) -> str:
        """Return the wording, `{text}` in it, for what `asked` gave, or for a query's instruction."""
        return asked if TEXT_FIELD in asked else self.query.filled(asked)


INSTRUCT = Form("{text}", "Instruct: {instruction}\nQuery: {text}")  # E5-Mistral, arXiv 2401.00368
DEFAULT = Template("instruct", INSTRUCT, INSTRUCT)
GLUED_FORM = Form("{text}", "{instruction}{text}")
GLUED = Template("glued", GLUED_FORM, GLUED_FORM)  # no wording and no space


def template_of(cfg: dict[str, Any]) -> Template:
    """Return the template of a configuration, of a foreign encoder's the default one.

    Raises `UserError` for a form without `{text}`, or with more than two.
    """
    if (template := cfg.get("template")) is None:
        return DEFAULT
    forms: dict[str, Any] = {side: Form(template[side]["bare"], template[side]["instructed"]) for side in SIDES}
    written = {f"{side}.{kind}": text for side, form in forms.items() for kind, text in vars(form).items()}
    for key, text in written.items():
        if not 1 <= text.count(TEXT_FIELD) <= 2:
            raise UserError(f"template.{key}={text!r} must hold {TEXT_FIELD} once, or twice for an echo.")
    added = {key: template.get(key) for key in ("landmarks", "prepended")}
    if added["landmarks"] and not (template["eos"] and all(map(ends_in_text, written.values()))):
        raise UserError("template.landmarks needs forms that end in {text}, and template.eos=true: EOS is a landmark.")
    return Template(template["name"], **forms, eos=template["eos"], **added)


def ends_in_text(form: str) -> bool:
    """Return whether the text stands once in a form, at its end."""
    return form.count(TEXT_FIELD) == 1 and form.endswith(TEXT_FIELD)


def pieces(form: str) -> list[str]:
    """Return the parts of a form in order: `TEXT_FIELD` for each place of the text, and the words between."""
    return [part for part in re.split(f"({re.escape(TEXT_FIELD)})", form) if part]
