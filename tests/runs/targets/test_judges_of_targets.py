"""A target's judge is checked where the target is saved."""

from __future__ import annotations

import pytest

from runs.targets.edits import rewrite
from runs.targets.import_targets import import_targets
from scenarios.formats.parsed import ScenarioFileError
from tests.builders import make_project, make_target

pytestmark = pytest.mark.django_db
FILE = "targets:\n  - {name: strict, provider: mock}\n  - name: agent\n    provider: mock\n    judge_target: %s\n"


@pytest.mark.parametrize("judge", ["strict", "stored", "openai/anything", "gpt-4o-mini", "${{ JUDGE }}"])
def test_a_judge_of_the_file_of_the_project_or_of_litellm_is_taken(judge):
    project = make_project()
    make_target(project, "stored")
    assert len(import_targets(project, (FILE % judge).encode(), "t.yaml", by=None)) == 2


def test_another_name_is_refused_with_line_and_nearest_name():
    project = make_project()
    with pytest.raises(ScenarioFileError, match=r"t.yaml:5: judge_target: .*Did you mean 'strict'\?"):
        import_targets(project, (FILE % "strikt").encode(), "t.yaml", by=None)
    assert not project.targets.exists()


def test_an_edit_is_checked_too():
    target = make_target(make_project(), "agent")
    with pytest.raises(ScenarioFileError, match="neither a target"):
        rewrite(target, "name: agent\nprovider: mock\njudge_target: nowhere-at-all\n", by=None)
