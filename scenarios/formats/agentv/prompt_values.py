"""Find what a file knows of the placeholders in its judges' prompts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from evaluators.grading.judges.llm_judge import LlmJudge
from evaluators.grading.judges.llm_judge_prompt import OF_FILE, find_placeholders
from evaluators.grading.scores import BaseEvaluator
from evaluators.grading.scores.composite_evaluator import CompositeEvaluator
from evaluators.model import Json
from scenarios.formats.agentv.eval_file_context import EvalFileContext
from scenarios.formats.positions import Location
from scenarios.formats.problems import Problem


def merge_metadata(shared: Json, own: Json) -> Mapping[str, Json]:
    """Return a case's metadata with its file's: lists are joined, else the case's value has priority."""
    merged = dict(shared) if isinstance(shared, dict) else {}
    for key, value in own.items() if isinstance(own, dict) else ():
        is_joined = isinstance(value, list) and isinstance(merged.get(key), list)
        merged[key] = [*merged[key], *value] if is_joined else value
    return merged


def find_prompt_values(
    evaluators: Iterable[BaseEvaluator], metadata: Mapping[str, Json], rubrics: Json
) -> dict[str, str]:
    """Return the values of the placeholders that judges' prompts use; others aren't part of the case."""
    used: set[str] = set().union(*map(find_placeholders, _prompts(evaluators)))
    known: dict[str, str] = {}
    for name, value in (("metadata", dict(metadata)), ("rubrics", rubrics)):
        if value:
            known[name] = json.dumps(value, indent=2, ensure_ascii=False)
            known[f"{name}_json"] = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return {name: text for name, text in known.items() if name in used}


def find_unfilled(template: str, rubrics: Json, context: EvalFileContext, at: Location) -> list[Problem]:
    """Return a lint for each placeholder of a template that stays empty."""
    missing = {"file_changes"} if rubrics else {"file_changes", "rubrics", "rubrics_json"}
    used = find_placeholders(template)
    return [
        context.document.problem(
            at,
            f"evalhub has no value for {{{{{name}}}}}, so it is empty in the judge's prompt.",
            fix="Remove it, or write its text into the prompt.",
            id="format/empty-placeholder",
            lint=True,
        )
        for name in OF_FILE
        if name in missing & used
    ]


def _prompts(evaluators: Iterable[BaseEvaluator]) -> Iterator[str]:
    for one in evaluators:
        if isinstance(one, LlmJudge):
            yield one.prompt
        elif isinstance(one, CompositeEvaluator):
            yield from _prompts(one.evaluators)
