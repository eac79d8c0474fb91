"""Lints of scenarios: valid, but probably a mistake."""

from __future__ import annotations

from evaluators.grading.criteria import Criteria
from scenarios.formats.llm_tool_test.scenario_models import ScenarioFile
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem

FILL_IN = "FILL-IN"
"""Marks what a person still has to write in a drafted scenario."""


def lints(scenario_file: ScenarioFile, criteria: Criteria, document: PositionedDocument) -> list[Problem]:
    """Return the lints of a valid scenario."""
    return [
        *_vacuous(scenario_file, document),
        *_to_fill_in(scenario_file, document),
        *_without_tool(criteria, document),
        *_repeated_evaluators(scenario_file, document),
        *_empty_matrix(scenario_file, document),
        *_no_composite(criteria, document),
    ]


def _lint(document: PositionedDocument, at: Location, what: str, fix: str, id: str) -> Problem:
    return document.problem(at, what, fix=fix, id=id, lint=True)


def _vacuous(scenario_file: ScenarioFile, document: PositionedDocument) -> list[Problem]:
    judge = scenario_file.evaluation.judge
    if scenario_file.evaluation.gates or scenario_file.gates or (judge and judge.enabled):
        return []
    what = "Every trial passes, because there is no gate and no judge."
    return [_lint(document, ("evaluation",), what, "Add a gate or a judge.", "format/vacuous")]


def _to_fill_in(scenario_file: ScenarioFile, document: PositionedDocument) -> list[Problem]:
    """Return the parts of a drafted scenario that a person still has to write."""
    places: list[tuple[Location, object]] = [(("task", "prompt"), scenario_file.task.prompt)]
    key: Location = ("evaluation", "gates") if scenario_file.evaluation.gates is not None else ("gates",)
    gates = (
        scenario_file.evaluation.gates
        if scenario_file.evaluation.gates is not None
        else scenario_file.gates or []
    )
    places += [((*key, index), gate) for index, gate in enumerate(gates)]
    return [
        _lint(
            document,
            at,
            f"The draft's {'task' if at[0] == 'task' else 'gate'} still contains {FILL_IN}.",
            "Describe the task and what must be true after it.",
            "format/to-fill-in",
        )
        for at, value in places
        if FILL_IN in str(value)
    ]


def _without_tool(criteria: Criteria, document: PositionedDocument) -> list[Problem]:
    if criteria.tool is not None:
        return []
    what = "Without a tool, interaction metrics need an agent that reports tool calls."
    fix = "Add 'target:' with a binary or a command_pattern."
    return [_lint(document, ("target",), what, fix, "format/no-tool")]


def _repeated_evaluators(scenario_file: ScenarioFile, document: PositionedDocument) -> list[Problem]:
    names = [script.name for script in scenario_file.scripts.evaluators]
    return [
        _lint(
            document,
            ("scripts", "evaluators", index, "name"),
            f"Another evaluator is also named '{name}', so their scores are mixed.",
            "Give each evaluator a unique name.",
            "format/duplicate-evaluator",
        )
        for index, name in enumerate(names)
        if name in names[:index]
    ]


def _empty_matrix(scenario_file: ScenarioFile, document: PositionedDocument) -> list[Problem]:
    if scenario_file.tool_matrix is None or scenario_file.tool_matrix:
        return []
    what = "The tool_matrix is empty, so it runs nothing."
    return [_lint(document, ("tool_matrix",), what, "Name a tool or remove the key.", "format/empty-matrix")]


def _no_composite(criteria: Criteria, document: PositionedDocument) -> list[Problem]:
    weights = criteria.composite
    if weights is None or any(weights.model_dump().values()):
        return []
    what = "All weights are 0, so there is no composite score."
    at = ("evaluation", "composite")
    return [_lint(document, at, what, "Give a weight above 0 or remove the section.", "format/no-composite")]
