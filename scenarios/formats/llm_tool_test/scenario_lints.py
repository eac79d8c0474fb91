"""What is allowed in a scenario and yet hardly meant."""

from __future__ import annotations

from evaluators.criteria import Criteria
from scenarios.formats.llm_tool_test.scenario_models import ScenarioFile
from scenarios.formats.positions import Document, Location
from scenarios.formats.problems import Problem


def lints(found: ScenarioFile, criteria: Criteria, document: Document) -> list[Problem]:
    """Return the lints of a scenario that is right as it stands."""
    return [
        *_vacuous(found, document),
        *_without_tool(criteria, document),
        *_repeated_evaluators(found, document),
        *_empty_matrix(found, document),
        *_no_composite(criteria, document),
    ]


def _lint(document: Document, at: Location, what: str, fix: str, id: str) -> Problem:
    return document.problem(at, what, fix=fix, id=id, lint=True)


def _vacuous(found: ScenarioFile, document: Document) -> list[Problem]:
    judge = found.evaluation.judge
    if found.evaluation.gates or found.gates or (judge and judge.enabled):
        return []
    what = "Without gates and without a judge every trial passes."
    return [_lint(document, ("evaluation",), what, "Add a gate or a judge.", "format/vacuous")]


def _without_tool(criteria: Criteria, document: Document) -> list[Problem]:
    if criteria.tool is not None:
        return []
    what = "No tool is named, so interaction metrics are available only for agents that report tool calls."
    fix = "Add 'target:' with a binary or a command_pattern."
    return [_lint(document, ("target",), what, fix, "format/no-tool")]


def _repeated_evaluators(found: ScenarioFile, document: Document) -> list[Problem]:
    names = [script.name for script in found.scripts.evaluators]
    return [
        _lint(
            document,
            ("scripts", "evaluators", index, "name"),
            f"Another evaluator is called '{name}' as well, so their scores are one series.",
            "Give each evaluator a name of its own.",
            "format/duplicate-evaluator",
        )
        for index, name in enumerate(names)
        if name in names[:index]
    ]


def _empty_matrix(found: ScenarioFile, document: Document) -> list[Problem]:
    if found.tool_matrix is None or found.tool_matrix:
        return []
    what = "The tool_matrix is empty, so nothing of it can be run."
    return [_lint(document, ("tool_matrix",), what, "Name a tool or remove the key.", "format/empty-matrix")]


def _no_composite(criteria: Criteria, document: Document) -> list[Problem]:
    weights = criteria.composite
    if weights is None or any(weights.model_dump().values()):
        return []
    what = "All weights are 0, so no composite is computed."
    at = ("evaluation", "composite")
    return [_lint(document, at, what, "Give a weight above 0 or remove the section.", "format/no-composite")]
