"""The questions that can be asked of trained encoders, a file each."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from records.errors import UserError, nearest

if TYPE_CHECKING:
    from representation.answer import Answer
    from representation.subject import Subject
    from representation.texts import Texts

# name -> module with `answer(subjects, texts, settings) -> Answer | None`; None where it does not apply to them.
# A question's own keys are settings[name], from conf/representation.yaml, and their limits `LIMITS` of its module.
QUESTIONS = {
    "layers": "representation.layers.layers",
    "geometry": "representation.geometry.geometry",
    "read_ahead": "representation.probes.read_ahead",
    "causal_against_bi": "representation.probes.causal_against_bi",
    "attribution": "representation.heads.attribution",
    "leave_one_layer_out": "representation.heads.leave_one_layer_out",
    "loss": "representation.training.loss",
    "prompts": "representation.mixtures.prompts",
    "complementarity": "representation.mixtures.complementarity",
    "batch_zscore": "representation.mixtures.batch_zscore",
    "moee_readings": "representation.mixtures.moee_readings",
}


class Question(Protocol):
    """A module of `QUESTIONS`, loaded when its turn comes."""

    def answer(self, subjects: "list[Subject]", texts: "Texts", settings: dict[str, Any]) -> "Answer | None":
        """settings: the resolved conf/representation.yaml."""


def check_questions(names: Any) -> list[str]:
    """Return the names asked for, all for None. Raises `UserError` for one that there is not."""
    listed: Sequence[str] = [names] if isinstance(names, str) else list(QUESTIONS if names is None else names)
    for name in listed:
        if name not in QUESTIONS:
            raise UserError(f"There is no question '{name}'. {nearest(str(name), QUESTIONS)}")
    if not listed:
        raise UserError(f"questions= is an empty list. Choices: {', '.join(QUESTIONS)}.")
    return list(dict.fromkeys(listed))


def question(name: str) -> Question:
    """Return the module of a question."""
    return import_module(QUESTIONS[name])
