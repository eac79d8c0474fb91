"""AgentV's `code_judge`: a script reads JSON on stdin and prints JSON with a score."""

from __future__ import annotations

import json
import posixpath
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Struct
from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from evaluators.grading.evaluator import (
    BaseEvaluator,
    Case,
    EvaluatorResult,
    TrialEvidence,
    clamp_score,
    judged_answer,
    trace_context,
    trimmed_text,
    trimmed_texts,
)
from evaluators.grading.gates.base_gate import NOT_RUN, excerpt
from evaluators.json_values import json_output
from evaluators.model import CommandResult, Json, Kind, Seconds, Text


def run_judge_script(
    script: str,
    settings: CodeJudge | CodeAggregator,
    payload: Json,
    evidence: TrialEvidence,
    *,
    exit_code_decides: bool = False,
) -> EvaluatorResult:
    """Run a script and return its result; an error if it did not start, timed out or failed.

    It runs in its `cwd` of the uploaded files, else in the workspace.
    """
    folder = evidence.bundle or evidence.workspace
    if folder is None:
        return EvaluatorResult(None, error=NOT_RUN)
    cwd = settings.cwd if evidence.bundle else ""
    command = f"cd {shlex.quote(cwd)} || exit 127\n{script}" if cwd else script
    ended = folder.run(
        command,
        timeout_seconds=settings.timeout_seconds,
        env=evidence.command_env,
        stdin=json.dumps(payload, indent=2, ensure_ascii=False),
        network=settings.network,
    )
    if exit_code_decides and (decided := _by_exit_code(ended)):
        return decided
    return _result_of(script, ended, settings.timeout_seconds)


def _by_exit_code(ended: CommandResult) -> EvaluatorResult | None:
    """Return the result of a script that printed text: its exit code decides. None for JSON and for failures."""
    started = ended.exit_code is not None and not ended.timed_out
    if (
        not started
        or isinstance(json_output(ended.stdout), dict)
        or (ended.exit_code and ended.stderr.strip())
    ):
        return None
    said = (excerpt(ended.stdout.strip()) or f"exit code {ended.exit_code}",)
    return EvaluatorResult(0.0, misses=said) if ended.exit_code else EvaluatorResult(1.0, hits=said)


def _result_of(script: str, ended: CommandResult, timeout_seconds: float) -> EvaluatorResult:
    more: dict[str, Json] = {
        "script": script,
        "exit_code": ended.exit_code,
        "stdout": excerpt(ended.stdout),
        "stderr": excerpt(ended.stderr),
    }
    output = json_output(ended.stdout)
    failure = _failure(ended, timeout_seconds, has_json=isinstance(output, dict))
    if failure:
        return EvaluatorResult(None, misses=(f"Code evaluator failed: {failure}",), error=failure, more=more)
    if not isinstance(output, dict):
        more["judge_failure"] = "The script printed no JSON object, so the score is 0."
        return EvaluatorResult(0.0, more=more)
    checks = _checks(output)
    score = _score(output, checks)
    if score is None:
        more["judge_failure"] = "The script printed no score, so the score is 0."
    return EvaluatorResult(
        score or 0.0,
        (*trimmed_texts(output.get("hits")), *(one.text for one in checks if one.passed)),
        (*trimmed_texts(output.get("misses")), *(one.text for one in checks if not one.passed)),
        trimmed_text(output.get("reasoning") or output.get("reason")),
        failed=output.get("pass") is False,
        more=more,
    )


class _Check(Struct, frozen=True):
    """One of the things that a script checked."""

    text: str
    passed: bool
    score: float


def _checks(output: Mapping[str, Json]) -> list[_Check]:
    """Return what a script checked: `assertions` of AgentV 4, `checks` of later versions."""
    checks = []
    for name, verdict in (("assertions", "passed"), ("checks", "pass")):
        entries = output.get(name)
        for one in entries if isinstance(entries, list) else ():
            if isinstance(one, dict) and isinstance(one.get("text"), str):
                checks.append(_read_check(one, is_passed=bool(one.get(verdict))))
    return checks


def _read_check(entry: Mapping[str, Json], *, is_passed: bool) -> _Check:
    score, reason = clamp_score(entry.get("score")), trimmed_text(entry.get("reason"))
    text = f"{entry['text']}: {reason}" if reason else str(entry["text"])
    return _Check(text, is_passed, float(is_passed) if score is None else score)


def _score(output: Mapping[str, Json], checks: Sequence[_Check]) -> float | None:
    """Return the printed score, else the mean of the checks, else that of `pass`; None without any."""
    score = clamp_score(output.get("score"))
    if score is None and checks:
        return sum(one.score for one in checks) / len(checks)
    if score is None and isinstance(passed := output.get("pass"), bool):
        return float(passed)
    return score


def _failure(ended: CommandResult, timeout_seconds: float, *, has_json: bool) -> str:
    """Return why a script failed, empty if it judged: a non-zero exit with JSON and no stderr is accepted."""
    if ended.timed_out:
        return f"The judge's script timed out after {timeout_seconds:g} s."
    if ended.exit_code is None:
        return ended.error or "The judge's script did not start."
    if ended.exit_code == 0 or (has_json and not ended.stderr.strip()):
        return ""
    output = excerpt(ended.stderr.strip() or ended.stdout.strip())
    return f"The judge's script exited with code {ended.exit_code}: {output}".rstrip(" :")


def _one_line(value: Json) -> Json:
    """Join a command that is a list of words."""
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return shlex.join(value)
    return value


CommandLine = Annotated[Text, BeforeValidator(_one_line, json_schema_input_type=Text | list[Text])]


class CodeAggregator(Kind):
    """A script that reads the members' results."""

    type: Literal["code_judge"] = "code_judge"
    path: CommandLine
    """The command line of the script."""
    cwd: str = ""
    timeout_seconds: Seconds = 60.0
    network: bool = False


class CodeJudge(BaseEvaluator):
    """A script that reads the case and the answer and prints a score."""

    unrunnable: ClassVar[Mapping[str, str]] = {
        **BaseEvaluator.unrunnable,
        "target": "Remove it: a script can't ask a model here.",
    }

    type: Literal["code_judge"] = "code_judge"
    script: CommandLine
    cwd: str = ""
    """Working directory in the uploaded files."""
    timeout_seconds: Seconds = 60.0
    network: bool = False
    exit_code_decides: SkipJsonSchema[bool] = False
    """Whether a script without a JSON object scores 1 for exit code 0, else 0 (AgentV 4)."""
    config: dict[str, Json] = Field(default_factory=dict)
    """Settings of the script, given to it as `config`."""

    @property
    def needs_workspace(self) -> bool:
        return True

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        return run_judge_script(
            self.script,
            self,
            {**self._input(case, evidence), **self._later_input(case, evidence)},
            evidence,
            exit_code_decides=self.exit_code_decides,
        )

    def _input(self, case: Case, evidence: TrialEvidence) -> dict[str, Json]:
        """Return the script's input; paths are relative to its working directory."""
        guidelines = self._relative_paths(case.guidelines)
        messages = [message.model_dump(exclude_none=True) for message in case.input_messages]
        return {
            "question": case.question or evidence.prompt,
            "expected_outcome": case.expected_outcome,
            "reference_answer": case.reference_answer,
            "candidate_answer": judged_answer(evidence),
            "guideline_paths": guidelines,
            "guideline_files": guidelines,
            "input_files": self._relative_paths(case.input_files),
            "input_messages": messages,
            "input_segments": [part for message in messages for part in _segments(message.get("content"))],
            "expected_messages": [one.model_dump(exclude_none=True) for one in case.expected_messages],
            **trace_context(evidence),
        }

    def _later_input(self, case: Case, evidence: TrialEvidence) -> dict[str, Json]:
        """Return the keys that AgentV 4 adds or names otherwise."""
        context = trace_context(evidence)
        usage = evidence.usage
        return {
            "criteria": case.expected_outcome,
            "input": [message.model_dump(exclude_none=True) for message in case.input_messages],
            "expected_output": [one.model_dump(exclude_none=True) for one in case.expected_messages],
            "output": judged_answer(evidence),
            "trace": context["candidate_trace"],
            "trace_summary": context["candidate_trace_summary"],
            "token_usage": {"input": usage.input, "output": usage.known_output} if usage else None,
            "cost_usd": evidence.cost_usd,
            "duration_ms": round(evidence.seconds * 1000, 3),
            "config": self.config or None,
        }

    def _relative_paths(self, paths: Sequence[str]) -> list[str]:
        return [posixpath.relpath(path, self.cwd or ".") for path in paths]


def _segments(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "value": content}]
    return list(content) if isinstance(content, list | tuple) else []
