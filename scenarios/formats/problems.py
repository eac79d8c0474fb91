"""What is wrong with a file, said so that a person can mend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong: where it stands, what it is, what to do.

    `id` is stable, for machines (`format/unknown-gate`). A `lint` is shown and kept, but refuses nothing.
    """

    file: str
    line: int
    where: str
    """Path within the document, such as `evaluation.gates[2].type`."""
    what: str
    """A sentence."""
    fix: str = ""
    """A sentence; what to do about it."""
    id: str = ""
    lint: bool = False

    def __str__(self) -> str:
        sentences = f"{self.what} {self.fix}".strip()
        where = f" {self.where}:" if self.where else ""
        return f"{self.file}:{self.line}:{where} {sentences} [{self.id}]"

    def as_json(self) -> dict[str, object]:
        """The shape of the REST interface's `problems`."""
        return asdict(self)


class ScenarioFileError(Exception):
    """Files that cannot be taken as scenarios. Holds every problem, never the first only."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))
