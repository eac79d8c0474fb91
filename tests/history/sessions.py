"""Generate transcripts: calls with outputs, failures, help and retries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any

from msgspec import structs

from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import Event, Json, Score, Transcript
from evaluators.tool_use.attempts import find_attempts
from evaluators.tool_use.diagnosis import diagnose
from evaluators.tool_use.interaction import Interaction, score_interaction
from evaluators.tool_use.tool import Tool
from runs.models import TranscriptRecord
from runs.models.trial import command_row, json_of
from runs.results.files.artifacts import StoredFile, keep_content
from runs.results.search.trial_search import make_entry
from tests.history.catalogue import PASSED, TOOLS, UNCHANGED, UNWRITTEN, WRONG, DemoTool

VARIANTS = 6
"""Sessions per scenario and course; trials share them."""
BEGAN = datetime(2026, 11, 1, 9, tzinfo=UTC)
"""When every session begins: trials share them, so only the time between their events means something."""
CHECK = " --show"
"""The end of a command that lists the result."""
_UNKNOWN_FLAG = "error: unexpected argument '{}' found\n\n  tip: a similar argument exists: '--format'\n"


@dataclass(frozen=True)
class DemoSession:
    """A transcript with derived values, computed once for all trials that share it."""

    transcript: Transcript
    packed: bytes
    events: int
    interaction: Interaction
    scores: tuple[Score, ...]
    """The scores of layer 1."""
    interaction_json: Json
    diagnosis: Json
    attempts: Json
    answer: str
    kept: StoredFile
    commands: tuple[dict[str, Any], ...]
    """Rows of the tool's commands, without their trial."""
    texts: dict[str, Any]
    """What the search finds, without the judge's statements."""
    facts: frozenset[str]
    """What a judge may say of it; see the catalogue."""


@cache
def make_session(tool: int, place: int, failures: int, course: str, variant: int) -> DemoSession:
    """Return a scenario's session that begins with `failures` failed commands and ends as `course` says."""
    tested = TOOLS[tool]
    rng = Random(f"{tool} {place} {failures} {course} {variant}")
    events = tuple(_with_times(_events(tested, place, failures, course, rng), rng))
    done = course in (PASSED, WRONG)
    answer = f"The {tested.key(place)} task is done." if done else "I could not finish the last step."
    transcript = Transcript(events=events, source="events", answer=answer)
    evidence = TrialEvidence(transcript, tool=Tool(binary=tested.binary), exit_code=0)
    interaction = evidence.interaction
    return DemoSession(
        transcript=transcript,
        packed=TranscriptRecord.pack(transcript),
        events=len(events),
        interaction=interaction,
        scores=tuple(score_interaction(interaction)),
        interaction_json=interaction.as_json(),
        diagnosis=json_of(diagnose(interaction, failed=course != PASSED)),
        attempts=json_of(find_attempts(transcript, interaction.commands)),
        answer=answer,
        kept=keep_content(
            "transcript", "\n".join(event.command or str(event.output or "") for event in events).encode()
        ),
        commands=tuple(command_row(0, each) for each in interaction.commands),
        texts=make_entry(0, "", transcript=transcript, judgings=(), answer=answer),
        facts=frozenset(_facts(events, failures, course, done)),
    )


def _facts(events: tuple[Event, ...], failures: int, course: str, done: bool) -> Iterator[str]:
    """Yield what is true of a session."""
    commands = [event.command for event in events if event.command]
    has_help = any(command.endswith("--help") for command in commands)
    yield from ("read", course)
    yield "checked" if CHECK in commands[-1] else "unchecked"
    if not done:
        yield "lost"
    if not failures:
        yield "clean"
    else:
        yield "help" if has_help else "no help"
    if any("--output-format" in command for command in commands):
        yield "guessed"
    tried = [command for command in commands if not command.endswith("--help")]
    if len(set(tried)) < len(tried):
        yield "repeated"


def _events(tool: DemoTool, place: int, failures: int, course: str, rng: Random) -> Iterator[Event]:
    verb, _, noun = tool.key(place).partition("-")
    yield Event("message", role="assistant", text=f"I will {verb} the {noun} as the guide says.")
    yield from _call(
        "c0", "cat AGENTS.md", f"# Working with {tool.binary}\n" + "- one line of advice\n" * 12, 0
    )
    for number in range(failures):
        flag = rng.choice(("--output-format", "--all-records", "--as"))
        yield from _call(f"f{number}", f"{tool.binary} {verb} {flag} json", _UNKNOWN_FLAG.format(flag), 2)
        if rng.random() < 0.6:
            help_text = (
                f"Usage: {tool.binary} {verb} [OPTIONS]\n" + "      --option <VALUE>  what it sets\n" * 9
            )
            yield from _call(f"h{number}", f"{tool.binary} {verb} --help", help_text, 0)
    listing = "".join(f"{n:>4}  {noun}  open\n" for n in range(rng.randint(3, 14)))
    wanted = f"{tool.binary} {verb} --format json --limit {rng.randint(5, 50)}"
    if course == UNWRITTEN:
        yield from _call("d0", f"{wanted} > result.json", f"error: can't {verb} {noun}: locked\n", 1)
        return
    yield from _call("d0", f"{wanted}{' --of others' if course == WRONG else ''} > result.json", "", 0)
    if course == UNCHANGED:
        yield from _call("d1", f"{tool.binary} {verb} --commit", f"error: nothing to {verb}\n", 1)
    elif rng.random() < 0.6:
        yield from _call("d2", f"{tool.binary} {rng.choice(tool.subcommands)}{CHECK}", listing, 0)


def _with_times(events: Iterator[Event], rng: Random) -> Iterator[Event]:
    """Yield events at the times of a session in which the model takes seconds for each turn."""
    now = BEGAN
    for event in events:
        took = event.seconds if event.type == "tool_result" else rng.uniform(1.5, 6.0)
        now += timedelta(seconds=round(took or 0.0, 3))
        yield structs.replace(event, timestamp=now.isoformat())


def _call(id: str, command: str, output: str, code: int) -> Iterator[Event]:
    yield Event("tool_call", id=id, name="bash", command=command)
    yield Event("tool_result", id=id, output=output, exit_code=code, seconds=0.1 + len(output) / 4000)
