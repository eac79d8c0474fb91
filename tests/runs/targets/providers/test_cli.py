from __future__ import annotations

import http.server
import json
import threading
import time
from functools import partial

import pytest

from evaluators.model import CompletionError, CompletionRequest, Usage
from evaluators.transcripts import parse
from evaluators.transcripts.agent_streams import is_agent_stream
from evaluators.transcripts.latest import LatestCalls
from evaluators.transcripts.traces import as_trace
from runs.errors import ProviderError
from runs.sandbox.process import ProcessResult
from runs.sandbox.recording.record import RecordedTool, ToolRecord
from runs.sandbox.sandbox import Level
from runs.targets.agents.cli_answer import CliAnswer, outage_of, parse_answer
from runs.targets.agents.cli_judge import complete_through_command
from runs.targets.agents.command_template import TemplateValues, render
from runs.targets.agents.program_lookup import hidden_files, how_to_read
from runs.targets.agents.session_end import broken_by
from runs.targets.definitions import define, resolve_definition
from runs.targets.providers.base import PollCalls, Provider
from runs.targets.providers.registry import make_provider
from tests.runs.containments import containment
from tests.runs.processes import nothing_left, unique_seconds
from tests.runs.targets.providers import agents

pytestmark = pytest.mark.one_database

LEVELS = list(Level)


def provider(template: str, level: Level | None = None, **fields) -> Provider:
    definition = define({"name": "local", "provider": "cli", "command_template": template, **fields})
    return make_provider(resolve_definition(definition, {}), containment(level))


invocation = partial(agents.invocation, prompt="it's $HOME")


@pytest.mark.parametrize("level", LEVELS)
def test_it_works(tmp_path, level):
    agent = provider(
        "echo step; echo {PROMPT} > done; echo answer > {OUTPUT_FILE}; pwd; echo {WORKSPACE}", level
    )
    recording = agent.invoke(invocation(tmp_path))
    assert recording.answer == "answer\n"
    step, where, workspace = recording.raw.decode().split()
    assert (step, where) == ("step", workspace)
    assert (tmp_path / "workspace/done").read_text() == "it's $HOME\n"
    assert (recording.exit_code, recording.notes) == (0, ())


def test_it_reads_events_from_outside_the_workspace_and_cleans_up(tmp_path):
    event = json.dumps({"type": "tool_call", "name": "x"})
    recording = provider(f"echo '{event}' > {{EVENTS_FILE}}; echo hi > {{OUTPUT_FILE}}").invoke(
        invocation(tmp_path)
    )
    assert recording.events == event.encode() + b"\n"
    assert list((tmp_path / "workspace").iterdir()) == []
    assert not [path for path in (tmp_path / "scratch").iterdir() if path.is_file()]


def test_its_last_call_is_reported_while_it_works(tmp_path):
    event = json.dumps({"type": "tool_call", "name": "bash", "command": "taskmgr list"})
    looks: list[PollCalls] = []
    asked = invocation(
        tmp_path, watch=looks.append, cancelled=lambda: looks[0]() == LatestCalls("taskmgr list", 1)
    )
    assert provider(f"echo '{event}' > {{EVENTS_FILE}}; sleep 60").invoke(asked).cancelled


def test_a_command_without_events_reports_no_calls(tmp_path):
    looks: list[PollCalls] = []
    provider("echo hi > {OUTPUT_FILE}").invoke(invocation(tmp_path, watch=looks.append))
    assert looks == []


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_the_prompt_may_be_a_file(tmp_path, level):
    task = invocation(tmp_path, prompt="Zeile 'eins'\nзадача")
    recording = provider("cat {PROMPT_FILE}; echo", level).invoke(task)
    assert recording.answer == "Zeile 'eins'\nзадача\n"
    assert not list(task.scratch.glob("*prompt*"))


@pytest.mark.parametrize("name", ["OUTPUT_FILE", "EVENTS_FILE"])
def test_a_file_is_read_and_removed_also_where_the_other_is_not_named(tmp_path, name):
    recording = provider(f"echo hi > {{{name}}}").invoke(invocation(tmp_path))
    assert (recording.answer, recording.events) == (
        ("hi\n", None) if name == "OUTPUT_FILE" else ("", b"hi\n")
    )
    assert not [path for path in (tmp_path / "scratch").iterdir() if path.is_file()]


def test_what_it_ran_is_kept(tmp_path):
    recording = provider("echo hi", verbose=True).invoke(invocation(tmp_path))
    assert b"command=echo hi" in recording.logs["command"]


def test_stdout_is_the_answer_where_no_file_is_named(tmp_path):
    recording = provider("echo answer; echo noise >&2").invoke(invocation(tmp_path))
    assert recording.answer == "answer\n"
    assert b"noise" in recording.raw


def test_it_understands_an_answer_with_a_trace(tmp_path):
    printed = json.dumps(
        {"text": "42", "trace": [{"type": "tool_call", "name": "s"}, {"type": "nonsense"}, 3]}
    )
    recording = provider(f"echo '{printed}'").invoke(invocation(tmp_path))
    assert recording.answer == "42"
    assert recording.events_are_trace
    trace = parse(recording.parser, recording.raw, recording.events, events_are_trace=True)
    assert [(event.type, event.name) for event in trace.events] == [("tool_call", "s"), ("raw", "nonsense")]
    assert trace.unknown_events == 1


def test_a_trace_without_a_call_is_kept_and_does_not_silence_the_answer(tmp_path):
    trace = [{"type": "error", "timestamp": "2026-01-01T00:00:00Z", "metadata": {"n": 1}, "text": "oops"}]
    recording = provider(f"echo '{json.dumps({'text': '42', 'trace': trace})}'").invoke(invocation(tmp_path))
    transcript = parse(
        recording.parser, recording.raw, recording.events, events_are_trace=recording.events_are_trace
    )
    assert (transcript.source, as_trace(transcript.events)) == ("events", trace)


@pytest.mark.parametrize(
    "trace", [[], [{"type": "nonsense"}, 3, {"type": ["tool_call"]}], {"type": "error"}, None]
)
def test_a_trace_without_any_known_event_is_none(trace):
    assert parse_answer(json.dumps({"text": "42", "trace": trace})) == CliAnswer("42")


@pytest.mark.parametrize(
    ("text", "answer"),
    [(' \r\n{"text": "42"}', "42"), ('{"text": [1]}', "[1]"), ("{no JSON}", "{no JSON}"), ('["42"]', '["42"]'), ("", "")],
)  # fmt: skip
def test_only_an_object_with_a_text_is_more_than_its_words(text, answer):
    assert parse_answer(text) == CliAnswer(answer)


def test_messages_of_agentv_are_answer_trace_and_figures():
    calls = [{"tool": "search", "input": {"q": "x"}, "output": "3", "duration_ms": 40}]
    messages = [{"role": "assistant", "content": "done", "tool_calls": calls}]
    figures = {"token_usage": {"input": 100, "output": 20, "cached": 40}, "cost_usd": 0.02}
    found = parse_answer(json.dumps({"output": messages, **figures}))
    assert (found.text, found.cost_usd, found.usage) == ("done", 0.02, Usage(100, 20, cache_read=40))
    assert [(event["type"], event.get("name")) for event in found.trace] == [
        ("tool_call", "search"),
        ("tool_result", "search"),
        ("message", None),
    ]
    assert parse_answer(json.dumps({"output_messages": messages})).trace == found.trace
    assert parse_answer(json.dumps({"output": "plain"})) == CliAnswer('{"output": "plain"}')


def test_an_agent_that_fails_in_a_workspace_is_not_an_error(tmp_path):
    recording = provider("echo partly; exit 3").invoke(invocation(tmp_path))
    assert (recording.exit_code, recording.answer) == (3, "partly\n")


def test_a_command_that_fails_without_a_workspace_is_an_error(tmp_path):
    with pytest.raises(ProviderError, match=r"exit code 3: broken\.") as caught:
        provider("echo broken >&2; exit 3").invoke(invocation(tmp_path, in_workspace=False))
    assert caught.value.kind == "command"


def test_a_missing_answer_without_a_workspace_is_an_error(tmp_path):
    with pytest.raises(ProviderError, match="wrote no answer"):
        provider("true {OUTPUT_FILE}").invoke(invocation(tmp_path, in_workspace=False))


def test_the_answer_cannot_point_to_other_files(tmp_path):
    recording = provider("ln -s /etc/passwd {OUTPUT_FILE}").invoke(invocation(tmp_path))
    assert recording.answer is None
    assert recording.notes


@pytest.mark.parametrize("template", ["no-such-program {PROMPT}", "/no/such/program", "/etc/passwd"])
def test_it_cannot_start_without_its_program(tmp_path, template):
    with pytest.raises(ProviderError, match="The target 'local' cannot start") as caught:
        provider(template).invoke(invocation(tmp_path))
    assert caught.value.kind == "start"


def test_it_cannot_start_without_its_folder(tmp_path):
    with pytest.raises(ProviderError, match="does not exist"):
        provider("true", cwd=str(tmp_path / "gone")).invoke(invocation(tmp_path))


def test_it_works_in_the_folder_that_it_names(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    recording = provider("pwd; echo x > made", cwd=str(tmp_path / "elsewhere")).invoke(invocation(tmp_path))
    assert recording.answer == f"{tmp_path}/elsewhere\n"
    assert (tmp_path / "elsewhere/made").exists()


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK])
def test_it_reads_and_never_writes_what_came_with_an_eval_file(tmp_path, level):
    evals = tmp_path / "bundle/evals"
    evals.mkdir(parents=True)
    (tmp_path / "bundle/check.py").write_text("judge")
    given = {"bundle": tmp_path / "bundle", "folder": evals.name}
    recording = provider("pwd; cat ../check.py; (echo x > ../check.py) || echo refused", level).invoke(
        invocation(tmp_path, **given)
    )
    assert recording.answer == f"{evals}\njudgerefused\n"
    assert (tmp_path / "bundle/check.py").read_text() == "judge"
    relative = provider("ls", level, cwd="..").invoke(invocation(tmp_path, **given))
    assert relative.answer == "check.py\nevals\n"


def test_a_timeout_is_recorded_in_a_workspace_and_an_error_without(tmp_path):
    seconds = unique_seconds()
    slow = provider(f"echo early; sleep {seconds}", timeout_seconds=1.2)
    recording = slow.invoke(invocation(tmp_path))
    assert (recording.timed_out, recording.answer) == (True, "early\n")
    with pytest.raises(ProviderError, match=r"timed out after 1\.2 s") as caught:
        slow.invoke(invocation(tmp_path, in_workspace=False))
    assert caught.value.kind == "timeout"
    assert nothing_left(f"sleep\0{seconds}")


def test_it_stops_when_it_is_cancelled(tmp_path):
    asked, seconds = threading.Event(), unique_seconds()
    threading.Timer(0.2, asked.set).start()
    began = time.monotonic()
    assert provider(f"sleep {seconds}").invoke(invocation(tmp_path, cancelled=asked.is_set)).cancelled
    assert time.monotonic() - began < 10
    assert nothing_left(f"sleep\0{seconds}")


def test_values_are_escaped_and_not_expanded_again():
    values = TemplateValues(prompt="{EVAL_ID} '; rm -rf /", eval_id="k", files=("/a b/c", "/a b/c", "/d"))
    line = render("x {PROMPT} {FILES} {lower}", values, "--file={path}:{basename}")
    assert line == "x '{EVAL_ID} '\"'\"'; rm -rf /' --file='/a b/c':'c' --file='/d':'d' {lower}"


@pytest.mark.parametrize(
    ("command", "well"), [("exit 0", True), ("echo ill; exit 1", False), ("sleep 30", False)]
)
def test_a_command_checks_its_health(command, well):
    health = {"type": "command", "commandTemplate": command, "timeoutSeconds": 0.5}
    availability = provider("x", healthcheck=health).check()
    assert availability.available is well
    assert well or "The health check of the target 'local' failed" in availability.sentence


@pytest.mark.parametrize(("status", "well"), [(204, True), (503, False)])
def test_an_address_checks_its_health(status, well):
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        availability = provider("x", healthcheck={"type": "http", "url": url}).check()
    assert availability.available is well
    assert well or "HTTP 503" in availability.sentence


@pytest.mark.parametrize(
    ("template", "available", "tried"),
    [
        ("python3 --version", True, True),
        ("KEY=1 python3 --version {PROMPT}", True, True),
        ("no-such-agent {PROMPT}", False, True),
        ("/nowhere/agent {PROMPT}", False, True),
        ("./agent {PROMPT}", True, False),
        ("$AGENT {PROMPT}", True, False),
        ("cd sub && ./agent", True, False),
        ("python3 'open", True, False),
    ],
)
def test_without_a_health_check_the_program_is_looked_up(template, available, tried):
    found = provider(template).check()
    assert (found.available, found.tried) == (available, tried)
    assert available or "Install it on the worker, or correct `command_template`." in found.sentence


@pytest.mark.parametrize(
    "template", ["{file} {{PROMPT}}", "sh {file} {{PROMPT}}"], ids=["program", "argument"]
)
def test_a_file_that_the_sandbox_hides_is_named_with_the_setting(tmp_path, template):
    agent = tmp_path / "hidden" / "agent"
    agent.parent.mkdir()
    agent.write_text("#!/bin/sh\necho hi\n")
    agent.chmod(0o755)
    sentence = provider(template.format(file=agent), Level.BWRAP).check().sentence
    assert f"{agent} exists on the worker, but not inside the sandbox" in sentence
    assert f"Add {agent.parent} to the target's `read_folders`, or set EVALHUB_SANDBOX_READ" in sentence
    with pytest.raises(ProviderError, match="exists on the worker, but not inside the sandbox") as error:
        provider(template.format(file=agent), Level.BWRAP).invoke(invocation(tmp_path))
    assert error.value.kind == "start"


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK])
def test_a_folder_that_the_target_shows_is_read_and_not_written(tmp_path, level):
    agent = tmp_path / "hidden" / "bin" / "agent"
    agent.parent.mkdir(parents=True)
    agent.write_text(f"#!/bin/sh\necho found; touch {agent}.new 2>/dev/null || echo kept\n")
    agent.chmod(0o755)
    shown = provider(f"{agent} {{PROMPT}}", level, read_folders=[str(agent.parent.parent)])
    assert shown.check().available
    output = shown.invoke(invocation(tmp_path)).raw.decode()
    assert output.startswith("found\nkept\n")
    assert not agent.with_name("agent.new").exists()


def test_what_a_sandbox_hides_is_known_without_running_it(tmp_path):
    agent, elsewhere = tmp_path / "mine" / "bin" / "run", tmp_path / "other" / "a.py"
    for file in (agent, elsewhere):
        file.parent.mkdir(parents=True)
        file.write_text("")
        file.chmod(0o755)
    contained = containment(Level.BWRAP)
    hidden = hidden_files(f"{agent} {elsewhere} {{PROMPT}} /nowhere", contained, [])
    assert hidden.files == (agent, elsewhere)
    assert hidden.folders == (tmp_path / "mine", tmp_path / "other")
    assert hidden_files(f"{agent} x", contained, [tmp_path]).files == ()
    assert hidden_files("python3 -c 1", contained, []).files == ()
    assert hidden_files(str(agent), containment(Level.OFF), []).files == ()
    linked = tmp_path / "link"
    linked.symlink_to(tmp_path / "mine")
    behind = hidden_files(str(linked / "bin" / "run"), contained, [])
    assert behind.folders == () and f"Name {agent} in the command." in behind.refusal


def test_a_missing_script_of_the_command_is_an_error(tmp_path):
    with pytest.raises(ProviderError, match=r"cannot start: .*agent\.py.*Install it on the worker"):
        provider("python3 /nowhere/agent.py {PROMPT}").invoke(invocation(tmp_path))


def test_an_agent_that_misses_another_file_did_start(tmp_path):
    recording = provider("python3 -c 'exit(\"todo.txt: No such file\")'").invoke(invocation(tmp_path))
    assert recording.exit_code == 1


def test_a_command_can_judge():
    for template in ("cat; echo . >&2", "cat {PROMPT_FILE}"):
        definition = define({"name": "judge", "provider": "cli", "command_template": template})
        complete = complete_through_command(resolve_definition(definition, {}), containment())
        asked = CompletionRequest(user="is it good?", system="be fair")
        assert complete(asked).text == "be fair\n\nis it good?"


def test_a_judge_that_fails_says_why():
    definition = define({"name": "judge", "provider": "cli", "command_template": "echo no key >&2; exit 1"})
    with pytest.raises(CompletionError, match=r"exit code 1\. Output: no key"):
        complete_through_command(resolve_definition(definition, {}), containment())(
            CompletionRequest(user="?")
        )


STREAMS = agents.FILES / "streams"


def test_a_parser_reads_standard_output(tmp_path):
    asked = invocation(tmp_path)
    (asked.workspace / "stream").write_bytes((STREAMS / "codex.jsonl").read_bytes())
    for template in ("cat stream; echo late >&2", "cat stream; echo late >&2; echo mine > {OUTPUT_FILE}"):
        recording = provider(template, parser="codex").invoke(asked)
        transcript = parse(recording.parser, recording.raw, recording.events)
        assert transcript.source == "stream" and transcript.events and not transcript.problems
        assert recording.answer == ("mine\n" if "mine" in template else None) and transcript.answer
        assert recording.unread_stream == ""


def test_an_unknown_parser_is_refused():
    with pytest.raises(Exception, match=r"There is no parser 'gemini'\. Choose one of events, plain_text"):
        provider("true", parser="gemini")


@pytest.mark.parametrize("program", ["gemini", "qwen", "copilot", "pi", "cline"])
def test_a_stream_of_json_lines_is_no_answer(tmp_path, program):
    asked = invocation(tmp_path)
    (asked.workspace / "stream").write_bytes((agents.FILES / f"programs/{program}.jsonl").read_bytes())
    recording = provider(f"cat stream # {program}").invoke(asked)
    assert recording.answer == "" and recording.raw
    assert "is a stream of JSON lines, which no reader has read" in recording.unread_stream
    assert f" {program}: " in recording.unread_stream


@pytest.mark.parametrize(
    "answer",
    [
        "All done.",
        '{"type": "session"}',
        '{"name": "a"}\n{"name": "b"}\n{"name": "c"}',
        '{"type": "cat", "n": 1}\n{"type": "dog", "n": 2}\n{"type": "cow", "n": 3}',
        '```\n{"type": "message"}\n{"type": "session"}\n{"type": "tool_use"}\n```',
        'I wrote these:\nthree lines\nas you asked\n{"type": "message"}\n{"type": "tool_use"}\n{"type": "result"}',
    ],
)
def test_other_answers_are_judged_as_they_are(answer):
    assert not is_agent_stream(answer)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("gemini -p {PROMPT}", "gemini: Write `provider: gemini_cli`"),
        ("npx @openai/codex exec", "codex: Set `parser: codex`"),
        ("cd x && /opt/bin/qwen -p {PROMPT}", "qwen: Write `provider: qwen_code`"),
        ("aider --message {PROMPT}", "aider: Set `parser: aider` and print its chat history"),
        ("sh agent.sh {PROMPT}", "Name `target.binary` in the scenario"),
    ],
)
def test_what_makes_output_readable_depends_on_the_program(template, said):
    assert how_to_read(template).startswith(said)


SAYS_OUTAGE = "echo thinking; echo 'first' >&2; echo 'model down' >&2; exit 75"


def test_an_agent_without_an_answer_says_by_exit_code_75_that_its_service_failed(tmp_path):
    broken = broken_by(provider(SAYS_OUTAGE).invoke(invocation(tmp_path)))
    assert broken is not None
    assert broken.kind == "endpoint"
    assert "It ended with exit code 75 (EX_TEMPFAIL): model down." in broken.sentence


def test_without_a_workspace_it_is_an_outage_too(tmp_path):
    with pytest.raises(ProviderError) as raised:
        provider(SAYS_OUTAGE).invoke(invocation(tmp_path, in_workspace=False))
    assert raised.value.kind == "endpoint"


@pytest.mark.parametrize(
    ("template", "fields"),
    [
        ("echo yes > {OUTPUT_FILE}; exit 75", {}),
        ('echo \'{"type":"tool_call","name":"x"}}\' > {EVENTS_FILE}; exit 75', {}),
        ('echo \'{"type":"result","result":"Done.","is_error":true}}\'; exit 75', {"parser": "claude_code"}),
        ("sleep 60; exit 75", {"timeout_seconds": 0.3}),
    ],
)
def test_an_agent_with_an_answer_or_a_time_limit_says_nothing_by_75(tmp_path, template, fields):
    recording = provider(template.replace("{{", "{").replace("}}", "}"), **fields).invoke(
        invocation(tmp_path)
    )
    assert broken_by(recording) is None
    assert not any("without an answer" in note for note in recording.notes)


@pytest.mark.parametrize(
    ("command", "said"), [("echo text; echo 'no key' >&2; exit 3", ": no key."), ("exit 3", ".")]
)
def test_another_exit_code_without_an_answer_is_a_warning(tmp_path, command, said):
    recording = provider(command).invoke(invocation(tmp_path))
    note = f"The command of the target 'local' ended with exit code 3 and without an answer{said}"
    assert note in recording.notes
    assert broken_by(recording) is None


def test_a_tools_75_that_a_shell_passes_on_is_no_outage(tmp_path):
    record = ToolRecord(RecordedTool("mt"), tmp_path, str(tmp_path), ())
    call = {"n": 1, "how": "file", "path": "mt", "argv": ["mt"], "start": 1.0, "seconds": 1.0, "parents": []}
    result = ProcessResult(75)
    assert outage_of(result, record).said
    record.read(json.dumps(call | {"exit": 75, "signal": None}).encode() + b'\n{"lost": 0}')
    assert outage_of(result, record).said == ""
