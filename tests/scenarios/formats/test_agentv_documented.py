"""docs/formats/agentv.md names every field of an eval file, every evaluator and every pattern."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import AliasChoices

from evaluators.grading.scores import EVALUATORS
from evaluators.tool_use.guidelines import DEFAULT_PATTERNS
from scenarios.formats.agentv import assertion_models, eval_models, import_models
from scenarios.formats.agentv.evaluator_reader import ALIASES

TEXT = (Path(__file__).parents[3] / "docs/formats/agentv.md").read_text()


def names_of_fields() -> set[str]:
    named = {**vars(eval_models), **vars(assertion_models), **vars(import_models)}
    models = [model for model in named.values() if hasattr(model, "model_fields")]
    found: set[str] = set()
    for name, field in (item for model in models for item in model.model_fields.items()):
        alias = field.validation_alias
        found |= set(map(str, alias.choices)) if isinstance(alias, AliasChoices) else {str(alias or name)}
    return found


def test_every_field_is_documented():
    missing = {name for name in names_of_fields() if not re.search(rf"`[^`\n]*{re.escape(name)}\b", TEXT)}
    assert missing == set()


def test_every_evaluator_is_documented():
    assert {name for name in (*EVALUATORS, *ALIASES) if f"`{name}`" not in TEXT} == set()


def test_every_key_that_cannot_be_run_is_documented():
    named = {**vars(eval_models), **vars(assertion_models), **vars(import_models)}
    keys = {key for model in named.values() for key in getattr(model, "unrunnable", {})}
    assert {key for key in keys if f"`{key}`" not in TEXT} == set()


def test_the_default_patterns_are_documented():
    assert [pattern for pattern in DEFAULT_PATTERNS if f"`{pattern}`" not in TEXT] == []
