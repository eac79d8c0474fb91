"""Calls of an MCP server in the events of real agents, with and without the proxy's record."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.model import Event, Transcript
from evaluators.tool_use.flag_confusion import argument_confusions
from evaluators.tool_use.interaction import Interaction, analyse, score_interaction
from evaluators.tool_use.mcp_arguments import argument_problems
from evaluators.tool_use.mcp_calls import mark_calls, refused_calls
from evaluators.tool_use.mcp_record import McpSurface, RecordedRequest, read_mcp_record, surface_of
from evaluators.tool_use.tool import McpServer, Tool
from evaluators.transcripts import parse
from tests.linear_time import assert_linear_time

STREAMS = Path(__file__).parents[2] / "files" / "streams"
SERVER = McpServer(name="notes", command="notes-server")
CREATE = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "color": {"enum": ["red", "blue"]}},
    "required": ["title"],
}
TOOLS = [
    {"name": "search", "description": "Find notes.", "inputSchema": {"properties": {"query": {}}}},
    {"name": "create", "description": "Create a note.", "inputSchema": CREATE},
    {"name": "crash"},
]
SURFACE = surface_of("notes", {"tools": TOOLS, "instructions": "Search first."})
FOUND = [
    ("help", ""),
    ("search", ""),
    ("serach", "unknown_tool"),
    ("create", "arguments"),
    ("create", "is_error"),
    ("create", ""),
    ("crash", "protocol"),
]


def analysed(transcript: Transcript, surface: McpSurface | None = SURFACE, record: Any = None) -> Interaction:
    marked = mark_calls(transcript, SERVER, surface, record)
    return analyse(marked, Tool(mcp=SERVER), completed=True)


def pairs(found: Interaction) -> list[tuple[str | None, str]]:
    return [(command.subcommand, command.failure) for command in found.commands]


def stream(agent: str) -> Transcript:
    return parse(agent, (STREAMS / f"mcp_{agent}.jsonl").read_bytes())


@pytest.mark.parametrize("agent", ["codex", "claude_code", "opencode"])
def test_calls_are_found_in_each_agents_events(agent):
    # Codex says on standard error alone that there is no such tool; Claude Code doesn't tell protocol errors apart.
    hidden = {"codex": FOUND[2], "claude_code": FOUND[6]}.get(agent)
    shown = [each for each in FOUND if each != hidden]
    found = pairs(analysed(stream(agent)))
    assert [each for each in found if each != ("crash", "is_error")] == shown


@pytest.mark.parametrize(
    ("agent", "crash"), [("gemini_cli", "is_error"), ("qwen_code", "protocol"), ("copilot_cli", "is_error")]
)
def test_calls_are_found_in_the_streams_of_session_agents(agent, crash):
    """They call no help; Gemini CLI and Copilot CLI don't tell protocol errors apart."""
    assert pairs(analysed(stream(agent))) == [*FOUND[1:6], ("crash", crash)]


def test_codex_says_on_standard_error_that_a_tool_is_unknown():
    (call,) = refused_calls(
        "ERROR codex_core::tools::router: error=unsupported call: mcp__notesserach\n", SERVER
    )
    assert pairs(analysed(stream("codex"), record=[call]))[-1] == ("serach", "unknown_tool")


def lines(*calls: tuple[str, Any, Any]) -> bytes:
    """A record of these tools, with arguments and response; None for no response."""
    entries: list[dict[str, Any]] = []
    for number, (tool, arguments, response) in enumerate(calls, 1):
        request = {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        entries.append({"number": number, "time": 5.0, "request": request})
        if response is not None:
            entries.append({"number": number, "seconds": 0.5, "response": response})
    return b"no JSON\n" + b"".join(json.dumps(each).encode() + b"\n" for each in entries)


RECORD = lines(
    ("search", {"query": "milk"}, {"result": {"content": []}}),
    ("create", {"title": 1}, {"result": {"isError": True, "content": []}}),
    ("create", {"title": "a"}, {"result": {"isError": True, "content": []}}),
    ("create", {"title": "b"}, {"error": {"code": -32000, "message": "gone"}}),
    ("search", {}, None),
)


def test_the_record_is_the_authority_where_events_lack_calls():
    found = analysed(Transcript(text="done", source="transcript"), record=read_mcp_record(RECORD))
    assert pairs(found) == [
        ("search", ""),
        ("create", "arguments"),
        ("create", "is_error"),
        ("create", "protocol"),
        ("search", "protocol"),
    ]
    assert [command.exit_code for command in found.commands] == [0, 1, 1, 1, 1]
    assert found.failures == {"unknown_tool": 0, "arguments": 1, "is_error": 1, "protocol": 2}
    named = {score.name: score.value for score in score_interaction(found)}
    assert named["failed_arguments"] == 1.0


def test_recorded_calls_are_not_counted_twice():
    record = [
        RecordedRequest("search", {"query": "milk"}, ended=True),
        RecordedRequest("create", {"x": 1}, ended=True),
    ]
    found = analysed(stream("opencode"), record=record)
    assert [command.subcommand for command in found.commands].count("search") == 1
    assert [command.subcommand for command in found.commands].count("create") == 3


def test_a_success_that_the_record_lacks_is_unknown_and_counted():
    record = [RecordedRequest("search", {"query": "milk"}, ended=True)]
    found = analysed(stream("opencode"), record=record)
    successes = [command for command in found.commands if command.exit_code == 0 and not command.help]
    assert [command.subcommand for command in successes] == ["search"]
    # The agent's events state three successes: two calls of search or create, and the one that is recorded.
    assert found.unrecorded == 1
    assert analysed(stream("opencode")).unrecorded == 0


def searches(queries: Iterable[int]) -> Transcript:
    """One call of `search` for each query."""
    events = [
        Event("tool_call", str(n), "mcp__notes__search", input={"query": query})
        for n, query in enumerate(queries)
    ]
    return Transcript(events=tuple(events), source="stream")


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8))
def test_a_call_takes_the_first_record_with_its_arguments_else_of_its_tool(asked, recorded):
    record = [RecordedRequest("search", {"query": query}, failure=f"{n}") for n, query in enumerate(recorded)]
    marked = mark_calls(searches(asked), SERVER, None, record)
    left, expected = dict(enumerate(recorded)), []
    for query in asked:
        number = next((n for n in left if left[n] == query), next(iter(left), None))
        expected.append("" if number is None else f"{number}")
        left.pop(number, None)
    failures = [event.metadata["mcp"].get("failure", "") for event in marked.events]
    assert failures == [*expected, *map(str, left)]


@pytest.mark.hostile
@pytest.mark.parametrize("recorded", [[-1] * 5_000, range(-5_000, 0), range(5_000, 0, -1)])
def test_many_calls_with_many_records_take_linear_time(recorded):
    def mark(number):
        record = [RecordedRequest("search", {"query": query}, ended=True) for query in recorded[:number]]
        mark_calls(searches(range(number)), SERVER, SURFACE, record)

    assert_linear_time(mark, 1_250, 5_000)


def test_a_failed_call_that_never_reached_the_server_is_a_protocol_failure():
    events = (
        Event("tool_call", "1", "mcp__notes__search", input={"query": "a"}),
        Event("tool_result", "1", output="denied", success=False),
    )
    assert pairs(analysed(Transcript(events=events, source="stream"), record=[])) == [("search", "protocol")]


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("ToolSearch", {"query": "select:mcp__notes__search"}, [("help", "")]),
        ("ToolSearch", {"query": "todo"}, []),
        ("ListMcpResourcesTool", {}, [("help", "")]),
        ("read_mcp_resource", {"server": "other", "uri": "x"}, []),
        ("mcp__other__search", {}, []),
        ("bash", {"command": "notes search"}, []),
        ("mcp__notes__search_docs", {"q": "x"}, [("help", "")]),
    ],
)
def test_only_the_servers_tools_and_resources_count(name, given, expected):
    server = SERVER.model_copy(update={"help_tools": ("search_docs",)})
    call = Event("tool_call", "1", name, input=given)
    transcript = Transcript(events=(call, Event("tool_result", "1", success=True)), source="stream")
    found = analyse(mark_calls(transcript, server, None), Tool(mcp=server), completed=True)
    assert pairs(found) == expected


def test_agents_spellings_lead_to_the_servers_names():
    surface = surface_of("notes", {"tools": [{"name": "notes.search"}]})
    call = Event("tool_call", "1", "mcp__notes__notes_search", input={})
    transcript = Transcript(events=(call, Event("tool_result", "1", success=True)), source="stream")
    assert pairs(analysed(transcript, surface)) == [("notes.search", "")]


def test_half_of_a_surrogate_pair_in_the_record_is_replaced():
    record = read_mcp_record(lines(("search", {"query": "a\ud800b", "\udfff": 1}, {"result": {}})))
    (command,) = analysed(Transcript(), record=record).commands
    assert command.line == 'search {"?":1,"query":"a?b"}'


@pytest.mark.hostile
@pytest.mark.parametrize("seconds", ["1" + "0" * 400, "-1" + "0" * 400, "NaN", "Infinity"])
def test_impossible_times_in_the_record_are_none(seconds):
    asked = f'{{"number": 1, "time": {seconds}, "request": {{"method": "tools/call", "params": {{"name": "x"}}}}}}'
    answered = f'{{"number": 1, "seconds": {seconds}, "response": {{"result": {{}}}}}}'
    (call,) = read_mcp_record(f"{asked}\n{answered}\n".encode())
    assert (call.started, call.seconds) == (0.0, 0.0)


def test_argument_keys_are_compared_with_the_schema():
    record = read_mcp_record(
        lines(
            ("create", {"titel": "a"}, {"result": {"isError": True}}),
            ("create", {"title": "a", "color": "green", "zzz": 1}, {"result": {"isError": True}}),
            ("creat", {}, {"error": {"code": -32602}}),
            ("create", {"title": "a", "extra": 1}, {"result": {}}),
        )
    )
    commands = analysed(Transcript(), record=record).commands
    found = [(each.kind, each.typed, each.meant) for each in argument_confusions(commands, SURFACE)]
    assert found == [
        ("unknown_command", "creat", "create"),
        ("invented", "zzz", ""),
        ("missing", "", "title"),
        ("near_miss", "titel", "title"),
        ("wrong_value", "color", "one of red, blue"),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"$ref": "http://127.0.0.1:1/schema.json"},
        {"$ref": "#"},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"pattern": "(a+)+$"}}},
        {"patternProperties": {"(a+)+$": False}},
        {"patternProperties": {"(a+)+$": True}, "additionalProperties": False},
        {"$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": True}, "$ref": "#/$defs/d0"},
    ],
)  # fmt: skip
def test_a_broken_or_slow_schema_blames_nobody(schema):
    given = {"a": "a" * 40 + "!", "a" * 40 + "!": 1}
    kinds = [each.kind for each in argument_problems(schema, given)]
    assert kinds in ([], ["value"])


def test_a_number_too_large_to_divide_blames_nobody():
    assert argument_problems({"properties": {"a": {"multipleOf": 0.1}}}, {"a": 10**400}) == []


NAMES = [f"v{n}" for n in range(4_000)]


@pytest.mark.sampled(2)
@pytest.mark.hostile
@pytest.mark.parametrize(
    ("items", "given"),
    [
        ({"enum": NAMES}, NAMES[-1:] * 4_000),
        ({"enum": NAMES}, [0] * 4_000),
        ({"enum": [[0] * 500 + [n] for n in range(500)]}, [[0] * 501] * 500),
        ({"allOf": [{"type": "integer"}] * 4_000}, [0] * 4_000),
        ({"anyOf": [{"type": "string"}] * 4_000}, [0] * 4_000),
        ({"allOf": [{"maxItems": 0}] * 4_000}, [NAMES] * 4_000),
        ({"anyOf": [{"maxItems": 0}] * 4_000}, [NAMES] * 4_000),
        ({"required": NAMES}, [{}] * 4_000),
        ({"properties": dict.fromkeys(NAMES, True)}, [{}] * 4_000),
    ],
)
def test_products_of_schema_and_arguments_end_soon(items, given):
    started = time.thread_time()
    problems = argument_problems({"properties": {"a": {"items": items}}}, {"a": given})
    assert time.thread_time() - started < 20
    assert len(problems) in (0, 20)


@pytest.mark.hostile
@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
def test_a_part_with_a_dialect_of_its_own_is_within_limits(draft):
    schema = {"properties": {"a": {"$schema": draft, "pattern": "(a+)+$"}}}

    def check(number):
        assert [each.kind for each in argument_problems(schema, {"a": "a" * number + "!"})] == ["value"]

    assert_linear_time(check, 500, 2_000)


def test_long_lists_are_checked():
    schema = {"properties": {"a": {"items": {"enum": NAMES[:200]}}}}
    given = [*NAMES[:200] * 20, "other"]
    assert [each.name for each in argument_problems(schema, {"a": given})] == ["a.4000"]


@pytest.mark.sampled(1)
@pytest.mark.hostile
@pytest.mark.parametrize("reference", ["#x", "#/$defs/x", "https://x.example/#/$defs/x"])
def test_references_within_a_large_schema_take_linear_time(reference):
    named = {"$anchor": "x", "$id": "https://x.example/", "$defs": {"x": True}}

    def check(number):
        parts = {f"p{n}": {"type": "string"} for n in range(number)}
        schema = {"$defs": {**parts, "x": {**named, "items": {"$ref": reference}}}, "$ref": "#/$defs/x"}
        assert argument_problems(schema, [0] * 2 * number) == []

    assert_linear_time(check, 250, 1_000)
