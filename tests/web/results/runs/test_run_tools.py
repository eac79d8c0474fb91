"""What an MCP server showed, and how its calls failed, on the run's pages."""

from __future__ import annotations

import pytest
from django.test import Client

from evaluators.tool_use.mcp_record import encode_surfaces, surface_of
from runs.models import CommandRecord, Run, ToolHelp
from tests.builders import make_run, make_suite, make_trial
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

TOOLS = [
    {
        "name": "search",
        "description": "Find notes.",
        "inputSchema": {"properties": {"query": {"type": "string"}}},
    }
]
BETTER = [{**TOOLS[0], "description": "Find notes by words."}]


def shown(version, hash: str, tools, **fields) -> Run:
    text = encode_surfaces([surface_of("notes", {"tools": tools, "instructions": "Search <first>."})])
    keys = {"project": version.suite.project, "binary": "mcp", "tool_version": hash}
    ToolHelp.objects.create(**keys, text=text)
    names = {"names": {"tool_surface": "notes: 1 tool, about 20 tokens"}}
    return make_run(version, fingerprint={"tool_surface": hash, **names}, **fields)


@pytest.fixture
def client(signed_in) -> Client:
    return signed_in()


@pytest.fixture
def runs(project) -> tuple[Run, Run]:
    version = make_suite(project)
    before = shown(version, "a" * 64, TOOLS)
    return before, shown(version, "b" * 64, BETTER, baseline=before, options={"descriptions": {"tools": {}}})


def test_a_page_has_instructions_and_tools_with_their_tokens(client, runs, django_assert_max_num_queries):
    _, run = runs
    client.get(f"/p/tools/runs/{run.pk}/tools/")
    with django_assert_max_num_queries(12):
        page = parse(client.get(f"/p/tools/runs/{run.pk}/tools/"))
    assert "Search <first>." in page.text
    assert "Find notes by words." in page.text
    assert "tokens" in page.text and "in place of the server's" in page.text
    link = page.link("Compare with baseline").address
    compared = parse(client.get(link))
    assert "Find notes." in compared.text and "Find notes by words." in compared.text
    assert "Tool's descriptions difference" in compared.text


def test_a_run_of_another_tool_has_no_tools(client, project):
    run = make_run(make_suite(project))
    assert "No MCP server" in parse(client.get(f"/p/tools/runs/{run.pk}/tools/")).text


def test_failing_calls_name_their_class(client, runs):
    _, run = runs
    trial = make_trial(run, outcome="fail")
    for number, failure in enumerate(["arguments", "arguments", "is_error"]):
        CommandRecord.objects.create(
            trial=trial,
            n=number,
            line="search {}",
            subcommand="search",
            exit_code=1,
            failed=True,
            failure=failure,
        )
    page = parse(client.get(f"/p/tools/runs/{run.pk}/?failing=search"))
    assert "Arguments don't fit the schema: 2. The tool reported an error: 1" in page.text
    assert page.text.count("Arguments don't fit the schema") == 3
    assert parse(client.get(f"/p/tools/trials/{trial.pk}/")).text.count("arguments don't fit the schema") == 2
    assert page.link("notes: 1 tool, about 20 tokens").address.endswith(f"/runs/{run.pk}/tools/")
