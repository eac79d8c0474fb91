"""Descriptions in place of those of MCP servers over REST."""

from __future__ import annotations

from runs.models import Run
from tests.builders import make_suite, make_target


def test_descriptions_are_stored_with_the_run(api, project):
    version = make_suite(project)
    make_target(project)
    texts = {"tools": {"search": "Find notes.", "put": {"arguments": {"body": "Its text."}}}}
    asked = {"suites": [version.suite.slug], "targets": ["local"], "tool_descriptions": texts}
    answer = api().post("/runs", asked)
    assert answer.status_code == 202, answer.content
    stored = Run.objects.get(pk=answer.json()["runs"][0]).options["descriptions"]["tools"]
    assert stored["search"]["description"] == "Find notes."
    assert stored["put"]["arguments"] == {"body": "Its text."}
    for wrong in ({"tool": {}}, {"instructions": "a\0b"}):
        assert api().post("/runs", {**asked, "tool_descriptions": wrong}).status_code == 422
