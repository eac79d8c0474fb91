"""Read the stored output of trials again by the readers of this release."""

from __future__ import annotations

from django.db.models import Q

from evalhub.lib.limits import LARGEST_RECORD
from evaluators.model import Transcript
from evaluators.transcripts import UnreadableTranscript, parse
from evaluators.transcripts.endings import with_cut_ends
from evaluators.transcripts.sessions.sub_agents import MAIN, SUB_AGENT, read_own_account, with_sub_agents
from runs.models import Artifact, Run, Trial
from runs.results.files.artifacts import StoredFileUnavailable, open_stored

AGENTS = frozenset(
    (
        "codex",
        "claude_code",
        "opencode",
        "gemini_cli",
        "qwen_code",
        "copilot_cli",
        "mini_swe_agent",
        "atif",
        "inspect",
        "aider",
    )
)
"""Kinds of targets whose raw output is read again, by the reader of the same name."""


def read_stored(trial: Trial, parser: str) -> Transcript | None:
    """Return the transcript of a trial's stored raw output; None where it isn't stored or can't be read."""
    if not parser:
        return None
    outputs = Q(name__in=("transcript", "events", MAIN)) | Q(name__startswith=SUB_AGENT)
    files = {each.name: each for each in Artifact.objects.filter(outputs, trial=trial)}
    if "transcript" not in files or any(each.size > LARGEST_RECORD for each in files.values()):
        return None
    try:
        content = {name: content_of(each) for name, each in files.items()}
        by_itself = trial.exit_code == 0 and not trial.timed_out
        account = read_own_account(parser, content["transcript"], content) if by_itself else None
        read = account or parse(parser, content["transcript"], content.get("events"))
        read = with_sub_agents(read, parser, content)
        return with_cut_ends(read) if trial.timed_out else read
    except (StoredFileUnavailable, UnreadableTranscript):
        return None


def agent_parser(run: Run) -> str:
    """Return the reader of an agent's raw output; empty if the target names none and isn't a known agent."""
    is_named = run.target.provider in ("replay", "cli")
    name = str(definition_of(run).get("parser", "")) if is_named else run.target.provider
    return name if name in AGENTS else ""


def definition_of(run: Run) -> dict[str, object]:
    """Return the definition of a run's target as of the run."""
    definition: dict[str, object] = (run.target_version or run.target).definition
    return definition


def content_of(artifact: Artifact) -> bytes:
    """Return the content of a stored file. Raises `FileUnavailable`."""
    with open_stored(artifact.sha256) as file:
        return bytes(file.read())
