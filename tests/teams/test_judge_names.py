"""Names of judges: targets, or models that litellm knows."""

from __future__ import annotations

import pytest
from django.forms.models import model_to_dict

from evalhub.teams.judge_models import judge_problem, model_id
from evalhub.teams.settings_forms import ProjectForm
from tests.builders import make_project, make_target


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("openai/anything", "openai/anything"),
        ("gpt-4o-mini", "openai/gpt-4o-mini"),
        ("claude-haiku-4-5", "anthropic/claude-haiku-4-5"),
        ("gemini-2.5-flash", "gemini/gemini-2.5-flash"),
        ("nobody", ""),
    ],
)
def test_a_model_is_called_by_its_provider(name, id):
    assert model_id(name) == id


def test_the_nearest_name_is_proposed():
    assert judge_problem("gpt-4o-mni", ["strict"]).endswith("Did you mean 'gpt-4o-mini'?")
    assert judge_problem("strikt", ["strict"]).endswith("Did you mean 'strict'?")
    assert judge_problem("zzzzzzzz", []).endswith("such as openai/gpt-4o-mini.")
    assert judge_problem("strict", ["strict"]) == judge_problem("", []) == ""


@pytest.mark.django_db
def test_a_projects_judge_is_checked_where_it_is_saved():
    project = make_project()
    make_target(project, "strict")

    def form(judge: str) -> ProjectForm:
        return ProjectForm(
            {**model_to_dict(project), "smallest_effects": "", "diagnosis_thresholds": "", "judge": judge},
            instance=project,
        )

    assert form("strikt").errors["judge"] == [
        "The judge 'strikt' is neither a target of this project nor a model that litellm knows. Did you mean 'strict'?"
    ]
    for judge in ("strict", "gpt-4o-mini", "openai/anything", ""):
        assert "judge" not in form(judge).errors
