"""The archive in which runs travel between evalhubs: a zip of `evalhub.json`, trials as JSON lines, and files by hash.

`evalhub.json` names the format and holds the runs; `trials/<run>.<n>.jsonl` their trials; `files/<hash>` the files of
suites' uploads; `artifacts/<hash>` those of trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from evaluators.statistics.looks import StoredLook
from evaluators.statistics.retest import Retest
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
    files: list[dict[str, str | bool]] = []
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
    retests: list[Retest] = []
    """What fresh trials of single scenarios say."""
    retest_usd: float = 0.0
    """How much of the run's cost is theirs."""

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
    round: int = 0
    is_retest: bool = False
    """Whether it is a fresh trial of a retest, which no rate counts."""


class Archived(NamedTuple):
    """A run of an archive with its trials."""

    run: ArchivedRun
    trials: tuple[ArchivedTrial, ...]


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
        "tokens_in",
        "tokens_out",
        "counting",
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
    manifest = _decode(content, Manifest, f"{file}: {MANIFEST}")
    if manifest.evalhub_archive != FORMAT:
        raise RequestError(
            f"{file}: the archive has format {manifest.evalhub_archive}, and this evalhub reads {FORMAT}. Upgrade evalhub."
        )
    return manifest


def written_by(members: Mapping[str, bytes]) -> str:
    """Return the version of the evalhub that wrote an archive that was read."""
    return msgspec.json.decode(members[MANIFEST], type=Manifest).version


def decode_trial(line: bytes, place: str) -> ArchivedTrial:
    """Return a trial from its line; `place` is for the error. Raises `RequestError`."""
    return _decode(line, ArchivedTrial, place)


def _decode(content: bytes, type: type[Content], place: str) -> Content:
    try:
        return msgspec.json.decode(content, type=type)
    except msgspec.MsgspecError as error:
        raise RequestError(f"{place} can't be read: {error}. Export the run again.") from error


def read_run_archive(members: Mapping[str, bytes], file: str) -> list[Archived]:
    """Return the runs of an archive with their trials; none if it is another program's. Raises `RequestError`."""
    if MANIFEST not in members:
        return []
    return [_read(run, members, file) for run in decode_manifest(members[MANIFEST], file).runs]


def _read(run: ArchivedRun, members: Mapping[str, bytes], file: str) -> Archived:
    paths = sorted(path for path in members if path.startswith(f"trials/{run.uuid}."))
    lines = [(path, n, line) for path in paths for n, line in enumerate(members[path].splitlines(), start=1)]
    trials = tuple(decode_trial(line, f"{file}: {path}:{n}") for path, n, line in lines)
    archived = Archived(run, trials)
    if problem := _problem(archived):
        raise RequestError(f"{file}: run {run.uuid} can't be read: {problem}. Export the run again.")
    return archived


def _problem(archived: Archived) -> str:
    """Return what is wrong with a run; empty if nothing is."""
    run, trials = archived
    if run.trials != len(trials):
        return f"it has {len(trials)} of {run.trials} trials"
    if lacking := [name for name in RUN_COLUMNS if name not in run.columns]:
        return f"`{lacking[0]}` is missing"
    if any(name not in trial.columns for trial in trials for name in TRIAL_COLUMNS):
        return "a trial's column is missing"
    states = {run.columns["state"], *(trial.columns["state"] for trial in trials)}
    return "" if states <= set(CLOSED) else "it isn't finished"
