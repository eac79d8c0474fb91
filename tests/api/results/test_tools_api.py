"""MCP servers over REST: what they showed, and descriptions in place of theirs."""

from __future__ import annotations

from evaluators.tool_use.mcp_surface import encode_surfaces, surface_of
from runs.models import Run, ToolHelp
from tests.builders import make_run, make_suite, make_target


def test_a_run_lists_what_its_servers_showed(api, project):
    run = make_run(make_suite(project), fingerprint={"tool_surface": "a" * 64})
    surface = surface_of(
        "notes", {"tools": [{"name": "search", "description": "Find."}], "instructions": "Hi."}
    )
    ToolHelp.objects.create(
        project=project, binary="mcp", tool_version="a" * 64, text=encode_surfaces([surface])
    )
    found = api("viewer").get(f"/runs/{run.pk}/tools").json()
    assert found["sha256"] == "a" * 64
    (item,) = found["items"]
    assert (item["server"], item["instructions"], item["tokens"] > 0) == ("notes", "Hi.", True)
    assert item["tools"] == [{"name": "search", "description": "Find.", "input_schema": {}}]
    other = make_run(make_suite(project, slug="other"))
    assert api("viewer").get(f"/runs/{other.pk}/tools").json() == {"sha256": "", "items": []}


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
