"""The values of other programs' results, and readers of untrusted JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from evalhub.lib.limits import LONGEST_NAME
from evalhub.lib.numbers import format_count
from evalhub.lib.storable_text import storable_json
from evaluators.model import AgentResult, Transcript
from evaluators.tool_use.tool import Tool
from evaluators.transcripts.reading import decode_text
from runs.errors import RequestError

_NAMED = 5
SUITE_FORMATS = ("agent_skills", "llm_tool_test", "agentv", "tool_forge")
"""Formats whose suites evalhub runs."""


@dataclass(frozen=True, kw_only=True)
class ExternalTrial(AgentResult):
    """One result of one case. Scores have a trial's shape."""

    key: str
    outcome: str
    error: str = ""
    completed: bool | None = None
    answer: str = ""
    description: str = ""
    prompt: str = ""
    finished: datetime | None = None
    scores: tuple[dict[str, Any], ...] = ()
    tools_called: tuple[str, ...] = ()
    transcript: Transcript | None = None
    """Layer 1 is computed from it."""
    tool: Tool | None = None
    """The tool under test, if the results name it; else the stored scenario's."""
    composite: float | None = None
    warnings: tuple[str, ...] = ()
    """What a reader of its figures must know, one sentence each."""
    scenario_hash: str = ""
    """The content of its scenario (`ScenarioVersion.sha256`), if evalhub wrote the results."""


@dataclass(frozen=True)
class ExternalRun:
    """One run of one suite on one target."""

    suite: str
    format: str
    target: str
    trials: tuple[ExternalTrial, ...]
    model: str = ""
    tool_version: str = ""
    program_version: str = ""
    """The version of the program that wrote the file, else of its format."""
    external_id: str = ""
    baseline: str = ""
    """External id of its baseline."""
    suite_hash: str = ""
    """The first digits of the content of its suite (`SuiteVersion.sha256`) or eval file."""
    guidance: str = ""
    """The content of its guidance (`Guidance.sha256`)."""
    cancelled: bool = False
    """Whether it ended before all of its trials; such a run is never a baseline."""
    started: datetime | None = None
    config: dict[str, Any] = field(default_factory=dict)
    staleness: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    skipped: int = 0
    """Cases that were not run, and so aren't trials."""

    @property
    def all_warnings(self) -> list[str]:
        """Return what a reader of the run must know, one sentence each."""
        warnings = [*self.warnings, *self.staleness.get("warnings", [])]
        if self.skipped:
            warnings.append(
                f"{format_count(self.skipped, 'case')} skipped; they weren't run, so they aren't trials."
            )
        return warnings


@dataclass(frozen=True)
class ResultsFile:
    """An uploaded file of results, or the files of an archive or folder."""

    name: str
    content: bytes = b""
    members: Mapping[str, bytes] = field(default_factory=dict)
    """The files of an archive by path; empty for a single file."""

    @cached_property
    def text(self) -> str:
        """The file as text. Raises `RequestError` if it isn't UTF-8 or UTF-16."""
        try:
            return decode_text(self.content)
        except UnicodeDecodeError as error:
            raise RequestError(
                f"{self.name}: not UTF-8 or UTF-16 text. Choose a results file in JSON or JSON lines."
            ) from error

    @cached_property
    def value(self) -> Any:
        """The file as JSON; None if it isn't."""
        return decode_storable_json(self.text)


@dataclass(frozen=True)
class ResultsImporter:
    """A program whose results can be imported."""

    name: str
    looks_like: str
    """What its files look like, for the error about a file that no importer reads."""
    read: Callable[[ResultsFile], tuple[ExternalRun, ...]]
    """Return a file's runs; none if it is another program's. Raises `RequestError` if it is broken."""


def decode_storable_json(text: str) -> Any:
    """Return JSON that every database can store; None if the text isn't JSON."""
    try:
        return json.loads(storable_json(json.loads(text)))
    except (ValueError, OverflowError, RecursionError):
        return None


def describe_left_out(what: str, names: Sequence[str], total: int, why: str) -> str:
    """Return the sentence about what an import leaves out of `total`: how many, which, and why."""
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return f"{len(names)} of {total} {what} left out, {why}: {shown}."


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def object_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def suite_name(value: Any, file: str) -> str:
    """Return a suite's name, else that of the file up to its first dot."""
    return (str(value or "") or file.rsplit("/", 1)[-1].split(".")[0] or "results")[:LONGEST_NAME]


def format_of_suite(value: Any, other: str) -> str:
    """Return the format of a suite, if it is one that evalhub reads; else the other one."""
    return value if value in SUITE_FORMATS else other


def key_of_text(value: Any) -> str:
    key = str(value)
    if len(key) > LONGEST_NAME:
        raise RequestError(
            f"The id '{key[:40]}…' has {len(key)} characters. Shorten it to {LONGEST_NAME} at most."
        )
    return key


def as_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def number_of(value: Any, divisor: int) -> float | None:
    return value / divisor if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def read_time(value: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
