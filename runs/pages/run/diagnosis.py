"""Link a run's diagnosed patterns to the calls that show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluators.diagnosis import CLEAR, ERRING, RETRIES, threshold_sentence
from runs.pages.run.subcommands import SubcommandRow
from runs.warehouse.digests import Finding

MOST_LINKED = 3
"""Subcommands linked per finding."""


@dataclass(frozen=True)
class FailingSubcommand:
    """A subcommand whose failing calls show a pattern."""

    name: str
    failed: int


@dataclass(frozen=True)
class ShownFinding:
    """A finding on its run's page."""

    finding: Finding
    failing: tuple[FailingSubcommand, ...]
    """Most failing calls first."""
    thresholds: str
    """The pattern's thresholds in a sentence; empty for an unknown pattern."""

    @property
    def is_problem(self) -> bool:
        """Return whether the finding asks for a fix."""
        return self.finding.pattern != CLEAR


def shown_findings(findings: Iterable[Finding], rows: Sequence[SubcommandRow]) -> list[ShownFinding]:
    """Return a run's findings with their subcommands, problems first."""
    failing = [FailingSubcommand(row.name, row.failed) for row in rows if row.failed]
    failing.sort(key=lambda each: -each.failed)
    shown = [
        ShownFinding(each, tuple(_meant(each, failing))[:MOST_LINKED], threshold_sentence(each.pattern))
        for each in findings
    ]
    return sorted(shown, key=lambda each: not each.is_problem)


def _meant(finding: Finding, failing: Iterable[FailingSubcommand]) -> Iterable[FailingSubcommand]:
    if finding.pattern in ERRING:
        return failing
    if finding.pattern != RETRIES:
        return ()
    # Evidence stored before the wording changed begins with the name.
    return [
        each
        for each in failing
        if any(
            line.startswith(f"{each.name}: ") or f"`{each.name}` calls" in line for line in finding.evidence
        )
    ]
