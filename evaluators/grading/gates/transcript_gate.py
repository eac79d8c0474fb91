"""Gates on the transcript: failed commands, a pattern, the answer, loaded skills, calls of MCP servers."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

from pydantic import Field

from evalhub.lib.limits import LONGEST_ERROR
from evalhub.lib.numbers import format_count
from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.gates.base_gate import BaseGate, PatternText, matches
from evaluators.model import Command, Json, Score
from evaluators.tool_use.exposure import find_failed_loads, opened_paths
from evaluators.tool_use.interaction import describe_unknown, describe_unread
from evaluators.tool_use.mcp_calls import arguments_of
from evaluators.transcripts.stream import unseen_sentence

_SHOWN = 5
NO_EVENTS = "The agent's output has no events, so it isn't known which files and skills it opened."


class NoTranscriptErrors(BaseGate):
    """None of the tool's commands failed."""

    needs_workspace: ClassVar[bool] = False

    type: Literal["no_transcript_errors"] = "no_transcript_errors"

    def check(self, evidence: TrialEvidence) -> Score:
        metrics = evidence.interaction
        has_transcript = evidence.transcript.events or evidence.transcript.text.strip()
        if not has_transcript and metrics.source != "recorded":
            return self.score(False, "There is no transcript to check for errors.", source="none")
        if metrics.problem:
            return self.score(None, metrics.problem, error=metrics.problem, source=metrics.source)
        if unread := describe_unread(metrics.unread):
            return self.score(None, unread, error=unread, source=metrics.source)
        if metrics.source == "none":
            message = "No command was seen in this output."
            return self.score(True, message, source="none", expected=0, actual=None)
        failed = [command.line for command in metrics.commands if command.failed]
        source = "structured events" if metrics.source == "events" else metrics.source
        printed = len(metrics.printed_errors)
        unknown = describe_unknown(metrics.total_commands, metrics.unknown_exit, printed)
        unknown = f"; {unknown}" if unknown else ""
        unknown += f"; {metrics.estimated} estimated" if metrics.estimated else ""
        message = (
            f"{metrics.error_count} of {metrics.total_commands} commands failed (source: {source}{unknown})."
        )
        if metrics.lost:
            message += f" {format_count(metrics.lost, 'execution')} of the tool could not be recorded."
        if evidence.transcript.unseen_agents and metrics.source != "recorded":
            message += f" {unseen_sentence(evidence.transcript.unseen_agents)}"
        return self.score(
            metrics.error_count == 0 and not metrics.lost,
            message,
            source=metrics.source,
            expected=0,
            actual=metrics.error_count,
            unknown_exit=metrics.unknown_exit,
            printed_errors=printed,
            failed=failed[:_SHOWN],
        )


class TranscriptMatches(BaseGate):
    """A regular expression matches in the agent's answer or in a command that it ran."""

    needs_workspace: ClassVar[bool] = False

    type: Literal["transcript_matches"] = "transcript_matches"
    pattern: PatternText = Field(min_length=1)
    where: Literal["answer", "commands", "either"] = "either"

    def check(self, evidence: TrialEvidence) -> Score:
        commands = [event.command for event in evidence.transcript.events if event.command]
        answer = [evidence.answer or evidence.transcript.answer]
        texts = {"answer": answer, "commands": commands, "either": answer + commands}[self.where]
        what = {
            "answer": "The answer",
            "commands": "The agent's commands",
            "either": "What the agent said or ran",
        }
        passed, message, extra = matches(what[self.where], "\n".join(texts), self.pattern)
        return self.score(passed, message, **extra)


class AnswerLacks(BaseGate):
    """The agent's answer doesn't contain a text; there is an answer."""

    needs_workspace: ClassVar[bool] = False

    type: Literal["answer_lacks"] = "answer_lacks"
    substring: str = Field(min_length=1)

    def check(self, evidence: TrialEvidence) -> Score:
        answer = evidence.answer or evidence.transcript.answer
        if not answer.strip():
            return self.score(False, "There is no answer.", expected=self.substring)
        passed = self.substring not in answer
        verb = "doesn't contain" if passed else "contains"
        return self.score(passed, f"The answer {verb} '{self.substring}'.", expected=self.substring)


class _SkillGate(BaseGate):
    """A gate on whether the agent loaded a skill: called it as a skill, or read its SKILL.md."""

    needs_workspace: ClassVar[bool] = False
    expected: ClassVar[bool]

    skill: str = Field(min_length=1)

    def check(self, evidence: TrialEvidence) -> Score:
        if not evidence.transcript.events:
            return self.score(None, NO_EVENTS, error=NO_EVENTS, skill=self.skill)
        path = f"skills/{self.skill}/SKILL.md"
        loaded = bool(opened_paths((path,), evidence.transcript))
        if not loaded and (said := find_failed_loads(path, evidence.transcript)):
            message = (
                f"The agent called the skill '{self.skill}', and its program could not read it: "
                f"{said[0][:LONGEST_ERROR].rstrip('.')}. Fix that on the worker, and run the trial again."
            )
            return self.score(None, message, error=message, skill=self.skill)
        passed, done = loaded is self.expected, "loaded" if loaded else "didn't load"
        wanted = "" if passed else " It should have." if self.expected else " It shouldn't have."
        message = f"The agent {done} the skill '{self.skill}'.{wanted}"
        return self.score(passed, message, skill=self.skill, actual=loaded)


class SkillLoaded(_SkillGate):
    """The agent loaded the skill."""

    expected: ClassVar[bool] = True
    type: Literal["skill_loaded"] = "skill_loaded"


class SkillNotLoaded(_SkillGate):
    """The agent didn't load the skill, which isn't for this task."""

    expected: ClassVar[bool] = False
    type: Literal["skill_not_loaded"] = "skill_not_loaded"


NO_SERVER = "The scenario names no MCP server. Add target.mcp, or use another gate."


class _McpGate(BaseGate):
    """A gate that counts calls; help isn't a call."""

    needs_workspace: ClassVar[bool] = False

    def check(self, evidence: TrialEvidence) -> Score:
        if evidence.tool is None or evidence.tool.mcp is None:
            return self.score(None, NO_SERVER, error=NO_SERVER)
        if problem := evidence.interaction.problem:
            return self.score(None, problem, error=problem)
        calls = [each for each in evidence.interaction.commands if not each.help]
        return self.judge(calls, evidence.tool.mcp.name)

    @abstractmethod
    def judge(self, calls: list[Command], server: str = "") -> Score:
        """Return the score for the agent's calls of a server."""


class McpCalled(_McpGate):
    """The agent called the tool, with these arguments among others, and the call succeeded."""

    type: Literal["mcp_called"] = "mcp_called"
    tool: str = Field(min_length=1)
    arguments: dict[str, Json] = Field(default_factory=dict)
    times: int | None = Field(default=None, ge=1)
    """Exact number of calls; None means at least one."""

    def judge(self, calls: list[Command], server: str = "") -> Score:
        called = [call for call in calls if _is_named(call, self.tool, server)]
        # A call whose end is unknown isn't a success.
        fitting = [
            call for call in called if call.exit_code == 0 and _has(arguments_of(call.line), self.arguments)
        ]
        passed = bool(fitting) if self.times is None else len(fitting) == self.times
        wanted = "at least 1" if self.times is None else str(self.times)
        how = " with these arguments" if self.arguments else ""
        message = (
            f"Successful calls of `{self.tool}`{how}: {len(fitting)} of {len(called)}; expected {wanted}."
        )
        return self.score(
            passed, message, expected=wanted, actual=len(fitting), calls=_lines(called or calls)
        )


class McpNotCalled(_McpGate):
    """The agent didn't call the tool, whether or not the call would have worked; without a tool, none of the server's."""

    type: Literal["mcp_not_called"] = "mcp_not_called"
    tool: str | None = Field(default=None, min_length=1)

    def judge(self, calls: list[Command], server: str = "") -> Score:
        called = [each for each in calls if self.tool is None or _is_named(each, self.tool, server)]
        what = f"`{self.tool}`" if self.tool else "the server's tools"
        message = f"Calls of {what}: {len(called)}; expected none."
        return self.score(not called, message, expected=0, actual=len(called), calls=_lines(called))


def _is_named(call: Command, tool: str, server: str) -> bool:
    """Return whether a call is of a tool, given as `tool` or `server/tool`; runs with several servers have the latter."""
    name = call.subcommand or ""
    return tool in (name, f"{server}/{name}") or name == f"{server}/{tool}"


def _lines(calls: list[Command]) -> list[Json]:
    return [each.line for each in calls[:_SHOWN]]


def _has(actual: Json, wanted: Json) -> bool:
    """Return whether a value contains what is wanted: mappings by key, other values by equality."""
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(
            key in actual and _has(actual[key], wanted[key]) for key in wanted
        )
    return bool(actual == wanted)
