"""Draft scenarios from the stretches of a trial in which the tool's commands failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.text import slugify

from evaluators.model import Transcript
from evaluators.redaction import redact_patterns
from evaluators.tool import Tool
from runs.models import CommandRecord, TranscriptRecord, Trial
from scenarios.formats.llm_tool_test.draft import draft_scenario

MOST_COMMANDS = 20
"""Commands of a stretch that a draft quotes."""


@dataclass(frozen=True)
class Draft:
    """A scenario file to complete."""

    name: str
    text: str
    label: str
    """The first failed command."""


def draft_scenarios(trial: Trial) -> list[Draft]:
    """Return a draft for each failing stretch of a trial. One query; expects its transcript to be loaded."""
    record: TranscriptRecord | None = getattr(trial, "transcript", None)
    transcript = record.unpack() if record else None
    content = trial.scenario_version.content
    given = content.get("criteria", {}).get("tool")
    tool = Tool.model_validate(given) if given else None
    own = "" if trial.run.suite.has_sessions else str(content.get("prompt", ""))
    drafts = []
    for number, stretch in enumerate(stretches(list(CommandRecord.objects.filter(trial=trial))), 1):
        first = stretch[0]
        name = slugify(f"{first.subcommand or 'draft'}-trial-{trial.pk}-{number}")
        prompt = redact_patterns(own or _message_before(transcript, first.event))
        lines = [redact_patterns(each.line) for each in stretch[:MOST_COMMANDS]]
        text = draft_scenario(name, prompt, tool, lines, f"trial {trial.pk}")
        drafts.append(Draft(name, text, lines[0]))
    return drafts


def stretches(commands: Sequence[CommandRecord]) -> Iterator[list[CommandRecord]]:
    """Yield the failing stretches: from a failed command to the first success of its subcommand, or to the end."""
    current: list[CommandRecord] = []
    for command in commands:
        if current or command.failed:
            current.append(command)
        if (
            current
            and not command.failed
            and not command.help
            and command.subcommand == current[0].subcommand
        ):
            yield current
            current = []
    if current:
        last = max(n for n, command in enumerate(current) if command.failed)
        yield current[: last + 1]


def _message_before(transcript: Transcript | None, event: int | None) -> str:
    """Return the person's last message before an event; empty if none is kept."""
    if transcript is None or event is None:
        return ""
    before = reversed(transcript.events[:event])
    return next((each.text for each in before if each.role == "user" and each.text), "")
