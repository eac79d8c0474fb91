"""Print a run: eval cases in tool-forge's layout, everything else in evalhub's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from evaluators.grading.suite_summary import suite_summary
from runs.exchange.exports.console import name_run, summary_lines
from runs.exchange.exports.suite_result import suite_run
from runs.models import Run


@dataclass(frozen=True)
class Terminal:
    """Properties of the output terminal."""

    width: int | None = None
    """In cells; None without a terminal."""
    colour: bool = False


class TextOutput(Protocol):
    """An output stream."""

    def isatty(self) -> bool: ...


def terminal_of(stream: TextOutput) -> Terminal:
    """Return a stream's terminal properties; NO_COLOR disables colours."""
    if not stream.isatty():
        return Terminal()
    return Terminal(shutil.get_terminal_size().columns, not os.environ.get("NO_COLOR"))


def print_digest(digest: Mapping[str, Any], terminal: Terminal, *, details: bool = False) -> str:
    """Return a run's digest as text, lines ended by newlines; `details` as in `summary`."""
    run = digest["run"]
    if run["format"] != "tool_forge":
        return summary_lines(digest, width=terminal.width, colour=terminal.colour, details=details)
    stored = Run.objects.select_related("suite", "suite_version", "target").get(pk=run["id"])
    return suite_summary(suite_run(stored)) + "".join(f"  {line}\n" for line in _further(run))


def _further(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield evalhub's additions to the contract's summary."""
    if run["error"]:
        yield f"The run did not start: {run['error']}"
    if run["cancelled"]:
        yield f"{run['cancelled']} of {run['trials']} trials were cancelled."
    if run["release_rule"]:
        yield run["release_rule"]["sentence"]
    summarised = (run["fingerprint"].get("staleness") or {}).get("warnings") or []
    yield from (f"⚠ {warning}" for warning in run["warnings"] if warning not in summarised)
    yield name_run(run)
