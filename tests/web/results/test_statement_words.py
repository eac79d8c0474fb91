"""Statements that a judge decided are shown in their own words."""

from __future__ import annotations

import json

import pytest

from scenarios.bundles import Bundle
from scenarios.formats.agent_skills.case_lists import statement_ids
from scenarios.imports import import_files
from tests.builders import close, make_run, make_trial
from tests.web.screen import main_of

pytestmark = pytest.mark.one_database
STATEMENT = "The answer of `t --json` has 12.50 in it"
FILES = {
    "todo/SKILL.md": b"---\nname: todo\ndescription: Keeps notes.\n---\n# Todo\n",
    "todo/evals/evals.json": json.dumps(
        {"skill_name": "todo", "evals": [{"id": 1, "prompt": "Add it.", "assertions": [STATEMENT]}]}
    ).encode(),
}


@pytest.mark.django_db
def test_a_statement_keeps_its_signs(project, signed_in):
    (imported,) = import_files(Bundle("todo", FILES), project=project, by=None)
    run = make_run(imported.version)
    (id,) = statement_ids([STATEMENT])
    scores = [
        {"layer": "judge", "name": "judge", "value": 1.0, "passed": True, "message": ""},
        {"layer": "judge", "name": f"criterion.{id}", "value": 1.0, "passed": None, "message": ""},
    ]
    trial = make_trial(run, "eval-1", outcome="pass", scores=scores)
    close(run)
    client = signed_in()
    for address in (f"/p/tools/runs/{run.pk}/", f"/p/tools/trials/{trial.pk}/"):
        assert STATEMENT in main_of(client.get(address)).text, address
