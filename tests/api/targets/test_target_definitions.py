"""Targets defined over REST."""

from __future__ import annotations

import pytest

from runs.models import Target
from tests.builders import make_target

MOCK = {"definition": {"name": "local", "provider": "mock", "response": "hi"}}


def test_a_target_is_added_and_replaced(api):
    assert api("author").post("/targets", MOCK).json()["accepted"] is True
    changed = {"definition": {**MOCK["definition"], "workers": 3}}
    assert api("admin").put("/targets/local", changed).json()["workers"] == 3
    assert Target.objects.get().definition == changed["definition"]


@pytest.mark.parametrize(
    ("definition", "id"),
    [
        ({"name": "new", "provider": "mok"}, "targets/unknown-provider"),
        ({"name": "new", "provider": "cli", "command_template": "x", "cwd": "/etc"}, "targets/path"),
        ({"name": "taken", "provider": "mock"}, "targets/repeated-name"),
    ],
    ids=["provider", "path", "taken"],
)
def test_an_invalid_definition_has_its_problems(api, project, definition, id):
    make_target(project, "taken")
    answer = api("author").post("/targets", {"definition": definition})
    assert answer.status_code == 422
    assert [each["id"] for each in answer.json()["problems"]] == [id]


def test_a_server_takes_proposals_only(api, project, served):
    make_target(project, "taken")
    assert api("admin").post("/targets", MOCK).json()["accepted"] is False
    assert api("admin").put("/targets/local", MOCK).status_code == 200
    assert api("admin").put("/targets/taken", MOCK).json()["id"] == "target/in-use"
