"""Problems of files, with line and fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from heapq import nsmallest


@dataclass(frozen=True, order=True)
class Problem:
    """One problem: where it is, what is wrong and how to fix it.

    `id` is stable, for programs (`format/unknown-gate`). A `lint` is shown and stored, but does not reject the file.
    """

    file: str
    line: int
    where: str
    """Path within the document, such as `evaluation.gates[2].type`."""
    what: str
    """A sentence."""
    fix: str = ""
    """A sentence that says how to fix it."""
    id: str = ""
    lint: bool = False

    def __str__(self) -> str:
        sentences = f"{self.what} {self.fix}".strip()
        where = f" {self.where}:" if self.where else ""
        return f"{self.file}:{self.line}:{where} {sentences} [{self.id}]"

    def as_json(self) -> dict[str, object]:
        """The problem as JSON of the REST interface."""
        return asdict(self)


MOST_PROBLEMS = 1_000


class ScenarioFileError(Exception):
    """The files are not valid scenarios. Contains every problem up to `MOST_PROBLEMS`, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        # Hints are the first to be left out.
        first = nsmallest(MOST_PROBLEMS, problems, key=lambda problem: (problem.lint, problem))
        self.problems = tuple(sorted(first))
        super().__init__("\n".join(str(problem) for problem in self.problems))
