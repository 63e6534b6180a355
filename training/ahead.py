"""What the next step needs is made while this one runs: tokenising releases the interpreter, and a GPU needs none."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """`make(step)` for one step after another, each begun in a thread when the step before it is taken.

    make: a function of the step's number and nothing else, so that it does not matter when it is called, nor in
    which thread. It is never called for step `steps` or later.
    """

    def __init__(self, make: Callable[[int], T], steps: int) -> None:
        self.make, self.steps = make, steps
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ahead")
        self._begun: dict[int, Future[T]] = {}

    def take(self, step: int) -> T:
        """Return `make(step)` and begin `make(step + 1)`. What `make` raises is raised here, at its own step."""
        begun = self._begun.pop(step, None)
        made = begun.result() if begun else self.make(step)
        self._begun = {step + 1: self._thread.submit(self.make, step + 1)} if step + 1 < self.steps else {}
        return made
