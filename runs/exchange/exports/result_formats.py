"""Export a stored run of any format as tool-forge's EvalSuiteResult, AgentV's JSONL results or JUnit XML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, cast
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import msgspec

from evaluators.grading.judges.rubric_judge import NAME as JUDGE
from evaluators.grading.scores.weighted_score import NAME as AGGREGATE
from evaluators.grading.suite_result import CaseResult, CaseTrial, EarlierResult, SuiteRun, trial_result
from evaluators.model import Json, Outcome, Score
from evaluators.redaction import redact_json, redact_patterns
from evaluators.transcripts.traces import trace_summary
from runs.compare.comparison import find_incomparable, read_passes
from runs.compare.retests import retest_json, retests_of
from runs.exchange.exports.document import first_trials, status_of
from runs.models import JudgingRecord, Run, Trial
from runs.models.trial import TrialState
from runs.results.failure_reasons import (
    error_of_unmeasured,
    failed_scores,
    reason_without_outcome,
    trial_reasons,
)

TIER = "golden"
"""Tier of suites whose format has none."""


def suite_run(run: Run) -> SuiteRun:
    """Return a run's data for an EvalSuiteResult. Expects suite_version and target to be loaded."""
    config, staleness = run.suite_version.config, run.fingerprint.get("staleness") or {}
    endpoint = run.fingerprint.get("endpoint", run.target.definition.get("url"))
    rows = run.trial_set.filter(state=TrialState.FINISHED).order_by("position")
    return SuiteRun(
        run_id=run.shown_id,
        number=run.pk,
        timestamp=(run.started or run.created).isoformat().replace("+00:00", "Z"),
        tier=config.get("tier") or TIER,
        tool_name=config.get("tool") or run.suite.slug,
        agent_endpoint=endpoint or run.target.name,
        cases=_cases(run),
        tool_version=staleness.get("tool_version") or run.tool_version or None,
        description_hash=staleness.get("description_hash"),
        registry_size=staleness.get("registry_size"),
        eval_file_hash=config.get("eval_file_hash") or run.suite_version.sha256[:12],
        staleness_warnings=tuple(staleness.get("warnings") or ()),
        stale=bool(staleness.get("stale")),
        generated_hash=staleness.get("generated_hash"),
        baseline=_baseline(run),
        origin={
            "scenarios": dict(rows.values_list("scenario__key", "scenario_version__sha256")),
            "suite": run.suite.slug,
            "format": run.suite.format,
            "state": run.state,
            "target": run.target.name,
            "model": run.model or None,
            "guidance": run.guidance.sha256 if run.guidance else None,
            **({"retests": [retest_json(each) for each in retests]} if (retests := retests_of(run)) else {}),
        },
    )


def _baseline(run: Run) -> EarlierResult | None:
    if filed := run.options.get("baseline_file"):
        return EarlierResult(filed["run_id"], filed["passed"])
    if run.baseline is None:
        return None
    return EarlierResult(
        run.baseline.imported_id or run.baseline.shown_id,
        read_passes(run.baseline.pk),
        find_incomparable(run.baseline, run),
        run.baseline.pk,
    )


def _cases(run: Run) -> tuple[CaseResult, ...]:
    first = run.trial_set.filter(round=0, state=TrialState.FINISHED)
    trials = first.select_related("scenario", "scenario_version")
    by_key: dict[str, list[Trial]] = {}
    for trial in trials:
        by_key.setdefault(trial.scenario.key, []).append(trial)
    return tuple(_case(key, repeated) for key, repeated in by_key.items())


def _case(key: str, trials: list[Trial]) -> CaseResult:
    description = redact_patterns(trials[0].scenario_version.content.get("description", ""))
    ordered = sorted(trials, key=lambda trial: trial.index)
    return CaseResult(key, description, tuple(case_facts(trial) for trial in ordered))


def case_facts(trial: Trial) -> CaseTrial:
    """Return one trial's contract fields; texts are redacted."""
    return trial_result(
        cast(Outcome, trial.outcome),
        msgspec.convert(redact_json(trial.scores), tuple[Score, ...]),
        tools_called=trial.detail.get("tools_called", ()),
        answer=trial.answer,
        seconds=trial.seconds,
        error=redact_patterns(trial.error),
        cost_usd=trial.cost_usd,
    )


AGENT_KINDS = frozenset(
    (
        "cli",
        "codex",
        "claude_code",
        "opencode",
        "gemini_cli",
        "qwen_code",
        "copilot_cli",
        "vscode",
        "vscode-insiders",
    )
)
"""Providers whose request belongs in `agent_provider_request`."""


def write_jsonl(run: Run) -> Iterator[str]:
    """Yield a line for each finished first trial, in the order of the suite. Secrets are redacted."""
    trials = run.trial_set.filter(round=0, state=TrialState.FINISHED)
    trials = trials.select_related("scenario", "scenario_version")
    for trial in trials.prefetch_related("judgings", "transcript"):
        yield json.dumps(redact_json(trial_record(run, trial)), ensure_ascii=False) + "\n"


def trial_record(run: Run, trial: Trial) -> dict[str, Json]:
    """Return one trial's record; keys without a value are left out."""
    content = trial.scenario_version.content
    aggregate = _score(trial.scores, "evaluators", AGGREGATE)
    detail = aggregate.get("detail", {})
    judgings = {judging.name: judging for judging in trial.judgings.all()}
    fields: dict[str, Json] = {
        "timestamp": trial.finished.isoformat().replace("+00:00", "Z") if trial.finished else None,
        "eval_id": trial.scenario.key,
        "dataset": run.suite.name,
        "conversation_id": content.get("conversation") or None,
        "score": _value(trial, aggregate),
        "status": status_of(trial.scores, trial.outcome),
        "hits": detail.get("hits", []),
        "misses": detail.get("misses", []),
        "candidate_answer": trial.answer,
        "target": run.target.name,
        "reasoning": detail.get("reasoning") or None,
        _request_name(run): _request(content),
        "evaluator_results": _evaluator_results(trial.scores, judgings) or None,
        "error": trial.error or None,
        "trace_summary": _trace_summary(trial),
        "trial": trial.index if run.trials > 1 and trial.index else None,
        # Not AgentV's fields: an import needs the threshold and the times; costs are in US dollars.
        "cost_usd": trial.cost_usd,
        "price_source": trial.detail.get("price_source") or None,
        "outcome": trial.outcome,
        "seconds": trial.seconds,
        # By these, an import knows the run and compares it with later ones.
        "run_id": run.shown_id,
        "model": run.model or None,
        "suite_format": run.suite.format,
        "suite_hash": run.suite_version.sha256,
        "scenario_hash": trial.scenario_version.sha256,
        "guidance_hash": run.guidance.sha256 if run.guidance else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _value(trial: Trial, aggregate: Mapping[str, Any]) -> float:
    """Return the aggregate score; for other suites, 1 for a pass and 0 otherwise."""
    value = aggregate.get("value")
    return float(trial.outcome == "pass") if value is None and not aggregate else float(value or 0.0)


def _score(scores: Iterable[Mapping[str, Any]], layer: str, name: str) -> Mapping[str, Any]:
    return next((score for score in scores if (score["layer"], score["name"]) == (layer, name)), {})


def _request_name(run: Run) -> str:
    return "agent_provider_request" if run.target.provider in AGENT_KINDS else "lm_provider_request"


def _request(content: Mapping[str, Any]) -> dict[str, Json]:
    criteria = content.get("criteria", {})
    return {"question": content.get("prompt", ""), "guideline_paths": list(criteria.get("guidelines", []))}


def _evaluator_results(
    scores: Iterable[Mapping[str, Any]], judgings: Mapping[str, JudgingRecord]
) -> list[dict[str, Json]]:
    """Return each evaluator's result; other deciding scores count as evaluators too."""
    rows = [
        score
        for score in scores
        if (score["layer"] == "evaluators" and score["name"] != AGGREGATE)
        or score["layer"] in ("gates", "assertions")
        or (score["layer"], score["name"]) == ("judge", JUDGE)
    ]
    return [_evaluator_result(score, judgings.get(score["name"])) for score in rows]


def _evaluator_result(score: Mapping[str, Any], judging: JudgingRecord | None) -> dict[str, Json]:
    detail = score.get("detail", {})
    value = score.get("value")
    fields: dict[str, Json] = {
        "name": score["name"],
        "type": detail.get("type") or score["layer"],
        "score": 0.0 if value is None else value,
        "weight": score.get("weight"),
        "verdict": detail.get("verdict"),
        "hits": detail.get("hits", []),
        "misses": detail.get("misses", _misses(score)),
        "reasoning": detail.get("reasoning") or None,
        "evaluator_provider_request": _prompts(judging),
        "error": score.get("error") or None,
    }
    return {name: item for name, item in fields.items() if item is not None}


def _prompts(judging: JudgingRecord | None) -> dict[str, Json] | None:
    if judging is None:
        return None
    content = judging.content
    return {"userPrompt": content.get("user_prompt", ""), "systemPrompt": content.get("system_prompt", "")}


def _trace_summary(trial: Trial) -> Json:
    stored = getattr(trial, "transcript", None)
    transcript = stored.unpack() if stored else None
    return trace_summary(transcript) if transcript else None


def _misses(score: Mapping[str, Any]) -> list[str]:
    """Return why a score failed; imported scores may have no message."""
    message = score.get("message", "")
    return [message] if message and score.get("passed") is False else []


# XML 1.0 forbids most control characters, even escaped.
_FORBIDDEN = dict.fromkeys(
    [*range(0x00, 0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)]
)


Files = Mapping[int, Mapping[str, str]]
"""Files of scenarios, by run and key."""


def junit_xml(documents: Iterable[Mapping[str, Any]], files: Files | None = None) -> str:
    """Return run documents as one JUnit document: a test suite per run, a test case per trial.

    Each suite also fits Maven's schema (surefire-test-report.xsd), which requires `time` and `type`; `file` and
    `timestamp` are what pytest and other programs add. Times are in seconds.
    """
    root = Element("testsuites")
    for document in documents:
        run = document["run"]
        root.append(_suite(run, first_trials(document), (files or {}).get(run.get("id", 0), {})))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(run: Mapping[str, Any], trials: Iterable[Mapping[str, Any]], files: Mapping[str, str]) -> Element:
    cases = [_junit_case(run, trial, files.get(trial["scenario"], "")) for trial in trials]
    tags = [element.tag for case in cases for element in case]
    attributes = {
        "name": _clean(f"{run['suite']} on {run['target']}"),
        "tests": str(len(cases)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
        "skipped": str(tags.count("skipped")),
        "time": _time(run["seconds"]),
    }
    if moment := run.get("started") or run.get("created"):
        attributes["timestamp"] = datetime.fromisoformat(moment).strftime("%Y-%m-%dT%H:%M:%S")
    suite = Element("testsuite", attributes)
    properties = SubElement(suite, "properties")
    for name, value in _properties(run).items():
        SubElement(properties, "property", name=f"evalhub.{name}", value=_clean(value))
    suite.extend(cases)
    return suite


def _properties(run: Mapping[str, Any]) -> dict[str, str]:
    """Return by what an import knows the run again."""
    known = {
        "run": run.get("uuid"),
        "suite": run["suite"],
        "target": run["target"],
        "model": run.get("model"),
        "state": run.get("state"),
    }
    return {name: str(value) for name, value in known.items() if value}


def _junit_case(run: Mapping[str, Any], trial: Mapping[str, Any], file: str) -> Element:
    name = trial["scenario"] + (f" #{trial['index'] + 1}" if trial["index"] else "")
    attributes = {
        "classname": _clean(run["suite"]),
        "name": _clean(name),
        "time": _time(trial["seconds"]),
        **({"file": _clean(file)} if file else {}),
    }
    case = Element("testcase", attributes)
    if trial["outcome"] == "fail":
        failed = failed_scores(trial["scores"])
        _add(case, "failure", "\n".join(trial_reasons(trial)), failed[0]["name"] if failed else "fail")
    elif trial["outcome"] == "error":
        _add(case, "error", "\n".join(trial_reasons(trial)), trial.get("error_kind") or "error")
    elif trial["outcome"] is None:
        if unmeasured := error_of_unmeasured(run, trial):
            _add(case, "error", unmeasured, "not_run")
        else:
            _add(case, "skipped", reason_without_outcome(trial))
    return case


def _add(case: Element, tag: str, text: str, type: str = "") -> None:
    """Add the result of a case; Maven's schema has no type of skipped ones."""
    text = _clean(text)
    attributes = {"message": text[:300], **({"type": _clean(type)} if type else {})}
    SubElement(case, tag, attributes).text = text


def _time(seconds: float | None) -> str:
    """Return a time in seconds; 0 for an unknown one, because the schema requires it."""
    return f"{seconds or 0.0:.3f}"


def _clean(text: str) -> str:
    return text.translate(_FORBIDDEN)
