"""Draft scenarios from the stretches of a trial in which the tool's commands failed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from django.conf import settings
from django.urls import reverse
from django.utils.text import slugify

from evaluators.model import Transcript
from evaluators.redaction import redact_patterns
from evaluators.tool_use.tool import Tool
from runs.models import CommandRecord, TranscriptRecord, Trial
from scenarios.formats.llm_tool_test.draft import draft_scenario

MOST_DRAFTS = 100
"""Stretches of a trial that become drafts."""
MOST_COMMANDS = 20
"""Commands of a stretch that a draft quotes."""
LONGEST_PROMPT = 20_000
"""Characters of a prompt that a draft quotes, because writing YAML is slow."""


@dataclass(frozen=True)
class Draft:
    """A scenario file to complete."""

    name: str
    prompt: str
    tool: Tool | None
    commands: Sequence[str]
    source: str
    protected: Sequence[str] | None = None

    @property
    def label(self) -> str:
        """Return the first failed command."""
        return redact_patterns(self.commands[0])

    @cached_property
    def text(self) -> str:
        """Return the file's text, written when it is shown."""
        lines = [redact_patterns(each) for each in self.commands]
        prompt = redact_patterns(self.prompt)[:LONGEST_PROMPT]
        schema = scenario_schema_address()
        return draft_scenario(self.name, prompt, self.tool, lines, self.source, self.protected, schema)


def scenario_schema_address() -> str:
    """Return the address of the JSON Schema of scenarios, as people reach this server."""
    return settings.PUBLIC_URL.rstrip("/") + reverse("schema", args=("llm-tool-test",))


def draft_scenarios(trial: Trial) -> list[Draft]:
    """Return a draft for each of the first failing stretches of a trial. One query; expects its transcript to be loaded."""
    record: TranscriptRecord | None = getattr(trial, "transcript", None)
    content = trial.scenario_version.content
    tool_entry = content.get("criteria", {}).get("tool")
    tool = Tool.model_validate(tool_entry) if tool_entry else None
    protected = content.get("criteria", {}).get("protected")
    scenario_prompt = "" if trial.run.suite.has_sessions else str(content.get("prompt", ""))
    said = [] if scenario_prompt or record is None else _person_messages(record.unpack())
    drafts = []
    failing = islice(find_stretches(list(CommandRecord.objects.filter(trial=trial))), MOST_DRAFTS)
    for number, stretch in enumerate(failing, 1):
        first = stretch[0]
        name = slugify(f"{first.subcommand or 'draft'}-trial-{trial.pk}-{number}")
        prompt = scenario_prompt or _message_before(said, first.event)
        lines = [each.line for each in stretch[:MOST_COMMANDS]]
        drafts.append(Draft(name, prompt, tool, lines, f"trial {trial.pk}", protected))
    return drafts


def find_stretches(commands: Sequence[CommandRecord]) -> Iterator[list[CommandRecord]]:
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


def _person_messages(transcript: Transcript) -> list[tuple[int, str]]:
    """Return the person's messages, each with the number of its event."""
    return [(at, each.text) for at, each in enumerate(transcript.events) if each.role == "user" and each.text]


def _message_before(said: Sequence[tuple[int, str]], event: int | None) -> str:
    """Return the person's last message before an event; empty if none is kept."""
    at = 0 if event is None else bisect_left(said, (event,))
    return said[at - 1][1] if at else ""
