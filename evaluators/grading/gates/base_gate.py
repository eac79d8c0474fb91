"""The base classes of gates, their text checks, and which gate replaces a kind of earlier llm-tool-tests."""

from __future__ import annotations

import shlex
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, ClassVar

import yaml
from pydantic import AfterValidator, Field, ValidationInfo

from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import CHECKED, CommandResult, Json, Kind, Score
from evaluators.patterns import SlowPattern, compile_pattern

Verdict = tuple[bool, str, dict[str, Json]]
"""Whether it passed, the message or its end, and details to store."""


def _compiles(text: str, info: ValidationInfo) -> str:
    if info.context == CHECKED:
        return text
    # A stored pattern stays valid on a busy machine; the gate says that it was stopped.
    with suppress(SlowPattern):
        compile_pattern(text)
    return text


PatternText = Annotated[str, AfterValidator(_compiles)]
"""A regular expression, checked when the gate is created."""


def contains_text(what: str, text: str, substring: str) -> Verdict:
    """Return whether `text` contains a substring; `what` names the text in the message."""
    passed = substring in text
    verb = "contains" if passed else "does not contain"
    return passed, f"{what} {verb} '{substring}'.", {"expected": substring}


def matches(what: str, text: str, pattern: str) -> Verdict:
    """Return whether a regular expression matches anywhere in `text`; one that takes too long does not."""
    try:
        match = compile_pattern(pattern).search(text)
    except SlowPattern as error:
        return False, str(error), {"expected": pattern}
    verb = "matches" if match else "does not match"
    detail: dict[str, Json] = {"expected": pattern, "actual": match.text if match else None}
    return match is not None, f"{what} {verb} '{pattern}'.", detail


EXCERPT = 2_000
"""Characters of output kept in a gate's detail."""

NOT_RUN = "Not run: needs a workspace on a worker."


class BaseGate(Kind):
    """A deterministic check with a verdict and a message; each kind has its own `type`."""

    needs_workspace: ClassVar[bool] = True
    """Whether the gate needs the workspace; one that reads the transcript does not."""

    name: str | None = None
    timeout_seconds: float = Field(default=30.0, gt=0)

    @abstractmethod
    def check(self, evidence: TrialEvidence) -> Score:
        """Return the score. Never raises."""

    def score(self, passed: bool | None, message: str, *, error: str = "", **detail: Json) -> Score:
        """Return the gate's score: 1.0 or 0.0, without a value if there is no verdict."""
        if self.name:
            detail["name"] = self.name
        value = None if passed is None else float(passed)
        return Score("gates", self.type, value, passed, message, detail, error)


class CommandGate(BaseGate):
    """A gate that runs a command in the workspace and checks the result."""

    command: str
    network: bool = False

    def check(self, evidence: TrialEvidence) -> Score:
        if evidence.workspace is None:
            return self.score(None, NOT_RUN, command=self.command)
        if not self.command.strip():
            return self.score(False, "The command is blank.", command=self.command)
        result = evidence.workspace.run(
            self.command, timeout_seconds=self.timeout_seconds, env=evidence.command_env, network=self.network
        )
        detail: dict[str, Json] = {
            "command": self.command,
            "exit_code": result.exit_code,
            "stdout": excerpt(result.stdout),
            "stderr": excerpt(result.stderr),
            "truncated": result.truncated,
        }
        if result.timed_out:
            return self.score(
                False, f"`{self.command}` timed out after {self.timeout_seconds:g} s.", **detail
            )
        if result.exit_code is None:
            sentence = result.error or f"`{self.command}` did not start."
            return self.score(None, sentence, error=sentence, **detail)
        passed, message, extra = self.judge(result)
        return self.score(passed, message, **detail, **extra)

    @abstractmethod
    def judge(self, result: CommandResult) -> Verdict:
        """Return verdict, message and details for a command that exited in time."""


def excerpt(text: str) -> str:
    """Return the beginning and end of a long text, with the number of characters left out."""
    if len(text) <= EXCERPT:
        return text
    half = EXCERPT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


_Gate = dict[str, Json]


def _count(command: str, path: str, count: Json) -> _Gate:
    return {
        "type": "command_json_path",
        "command": command,
        "path": path,
        "assertion": f"len >= {count if isinstance(count, int) else 1}",
    }


def _contains(command: str, substring: Json) -> _Gate:
    return {"type": "command_output_contains", "command": command, "substring": str(substring)}


def _gate(kind: str, tool: str, parameters: Mapping[str, Json]) -> _Gate | None:
    def word(key: str) -> str:
        return shlex.quote(str(parameters.get(key, f"{key.upper()}")))

    match kind:
        case "min_notes":
            return _count(f"{tool} list --format json", "$", parameters.get("count"))
        case "min_links":
            return _count(f"{tool} export --format json", "$.links", parameters.get("count"))
        case "search_hit":
            return _contains(f"{tool} search {word('query')}", parameters.get("query", "QUERY"))
        case "note_exists":
            return {"type": "command_succeeds", "command": f"{tool} show {word('id')}"}
        case "link_exists":
            return _contains(f"{tool} show {word('from')}", parameters.get("to", "TO"))
        case "tag_exists":
            return _contains(f"{tool} list --format json", parameters.get("tag", "TAG"))
        case "content_contains":
            return _contains(f"{tool} show {word('id')}", parameters.get("substring", "SUBSTRING"))
        case "doctor_passes":
            return {"type": "command_succeeds", "command": f"{tool} doctor"}
    return None


def replacement_gate(kind: str, parameters: Mapping[str, Json], *, binary: str = "") -> str | None:
    """Return the YAML of the gate that replaces a legacy kind, ready to paste; None for other kinds.

    `parameters` are the legacy gate's parameters, `binary` is the scenario's tool. Follows the migration table of
    llm-tool-test evaluation, Layer 2; a link, missing there, is searched in the output of `show` on its source.
    """
    gate = _gate(kind, binary or "my-tool", parameters)
    return (
        None if gate is None else str(yaml.safe_dump([gate], sort_keys=False, allow_unicode=True, width=200))
    )
