"""docs/formats/agentv.md names every field of an eval file, every evaluator and every pattern."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import AliasChoices, BaseModel

from evaluators.grading.assertions.answer_checks import FieldCheck
from evaluators.grading.assertions.tool_trajectory import ExpectedTool
from evaluators.grading.scores import EVALUATORS
from evaluators.tool_use.guidelines import DEFAULT_PATTERNS
from scenarios.formats.agentv import eval_models, imported_cases
from scenarios.formats.agentv.assertion_reader import SPELLINGS
from scenarios.formats.agentv.evaluator_reader import ALIASES, MODELS
from scenarios.formats.parsed import shown_fields

TEXT = (Path(__file__).parents[3] / "docs/formats/agentv.md").read_text()

MODELS_OF_FILES = {
    *(
        model
        for module in (eval_models, eval_models, imported_cases)
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, BaseModel)
    ),
    *MODELS.values(),
    ExpectedTool,
    FieldCheck,
}


def names_of_fields() -> set[str]:
    found = {spelling for names in SPELLINGS.values() for spelling in names}
    for model in MODELS_OF_FILES:
        found |= set(shown_fields(model))
        choices = (field.validation_alias for field in model.model_fields.values())
        found |= {str(each) for alias in choices if isinstance(alias, AliasChoices) for each in alias.choices}
    return found


def test_every_field_is_documented():
    missing = {name for name in names_of_fields() if not re.search(rf"`[^`\n]*{re.escape(name)}\b", TEXT)}
    assert missing == set()


def test_every_evaluator_is_documented():
    assert {name for name in (*EVALUATORS, *ALIASES) if f"`{name}`" not in TEXT} == set()


def test_every_key_that_cannot_be_run_is_documented():
    keys = {key for model in MODELS_OF_FILES for key in getattr(model, "unrunnable", {})}
    assert {key for key in keys if f"`{key}`" not in TEXT} == set()


def test_the_default_patterns_are_documented():
    assert [pattern for pattern in DEFAULT_PATTERNS if f"`{pattern}`" not in TEXT] == []
