"""The archive in which runs travel between evalhubs: a zip of `evalhub.json`, trials as JSON lines, and files by hash.

`evalhub.json` names the format and holds the runs; `trials/<run>.<n>.jsonl` their trials; `files/<hash>` the files of
suites' uploads; `artifacts/<hash>` those of trials.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from runs.compare.looks import StoredLook
from runs.errors import RequestError

Content = TypeVar("Content")
MANIFEST = "evalhub.json"
FORMAT = 1
TRIALS_A_FILE = 50


class ArchivedFile(Struct, frozen=True):
    """A file of a suite's upload."""

    path: str
    sha256: str
    executable: bool = False


class ArchivedGuidance(Struct, frozen=True):
    """A guidance version."""

    sha256: str
    name: str = ""
    files: list[dict[str, str]] = []
    laid_file: str = ""
    laid_path: str = ""


class ArchivedSuite(Struct, frozen=True):
    """A suite's version: the files of its upload, from which it is read again."""

    slug: str
    name: str
    format: str
    sha256: str
    number: int
    source_name: str = ""
    source: list[ArchivedFile] = []
    config: dict[str, Any] = {}


class ArchivedRun(Struct, frozen=True):
    """A run: its columns by name, and what they refer to."""

    uuid: str
    suite: ArchivedSuite
    target: str
    columns: dict[str, Any]
    guidance: ArchivedGuidance | None = None
    baseline: str = ""
    trials: int = 0
    """The number of its trials in the archive."""
    looks: list[StoredLook] = []
    """The looks at a run until a verdict; the verdict depends on their levels."""

    @property
    def shard(self) -> str:
        """Which part of its suite it ran, such as 1/3; empty for all of it."""
        return str((self.columns.get("options") or {}).get("shard") or "")


class ArchivedArtifact(Struct, frozen=True):
    """A file of a trial; its content is missing where it was too large for an archive."""

    name: str
    sha256: str
    size: int
    media_type: str


class ArchivedTrial(Struct, frozen=True):
    """A trial with everything that is stored of it."""

    scenario: str
    scenario_hash: str
    columns: dict[str, Any]
    description: str = ""
    prompt: str = ""
    transcript: Any = None
    commands: list[dict[str, Any]] = []
    judgings: list[dict[str, Any]] = []
    artifacts: list[ArchivedArtifact] = []


class Manifest(Struct, frozen=True):
    """The content of `evalhub.json`."""

    evalhub_archive: int
    version: str = ""
    runs: list[ArchivedRun] = field(default_factory=list)


RUN_COLUMNS = (
    *(
        "state",
        "outcome",
        "model",
        "options",
        "fingerprint",
        "tool_version",
        "error",
        "warnings",
        "concurrency",
    ),
    *(
        "trials",
        "passed",
        "failed",
        "errors",
        "cancelled",
        "cost_usd",
        "max_usd",
        "price_source",
        "cost_notes",
    ),
    *(
        "repriced",
        "tokens_in",
        "tokens_out",
        "counting",
        "recounted",
        "is_experiment",
        "branch",
        "commit",
        "tags",
    ),
    *("created", "started", "finished"),
)
TRIAL_COLUMNS = (
    *(
        "index",
        "position",
        "state",
        "outcome",
        "starts",
        "completed",
        "timed_out",
        "exit_code",
        "composite",
        "seconds",
    ),
    *(
        "cost_usd",
        "tokens_in",
        "tokens_out",
        "tokens_estimated",
        "error",
        "error_kind",
        "answer",
        "scores",
        "detail",
    ),
    *("started", "finished"),
)
COMMAND_COLUMNS = (
    *(
        "n",
        "line",
        "subcommand",
        "exit_code",
        "failed",
        "help",
        "retry_of",
        "event",
        "failure",
        "end",
        "at_least",
    ),
    "seconds",
)
JUDGING_COLUMNS = ("counts", "name", "score", "passed", "model", "rubric", "content", "cost_usd", "created")
MOMENTS = frozenset(("created", "started", "finished"))
"""Columns that are times."""
CLOSED = ("finished", "cancelled")
"""States of runs and trials that an archive may hold."""


def decode_manifest(content: bytes, file: str) -> Manifest:
    """Return the content of `evalhub.json`. Raises `RequestError`."""
    found = _decode(content, Manifest, f"{file}: {MANIFEST}")
    if found.evalhub_archive != FORMAT:
        raise RequestError(
            f"{file}: the archive has format {found.evalhub_archive}, and this evalhub reads {FORMAT}. Upgrade evalhub."
        )
    return found


def decode_trial(line: bytes, place: str) -> ArchivedTrial:
    """Return a trial from its line; `place` is for the error. Raises `RequestError`."""
    return _decode(line, ArchivedTrial, place)


def _decode(content: bytes, type: type[Content], place: str) -> Content:
    try:
        return msgspec.json.decode(content, type=type)
    except msgspec.MsgspecError as error:
        raise RequestError(f"{place} can't be read: {error}. Export the run again.") from error
