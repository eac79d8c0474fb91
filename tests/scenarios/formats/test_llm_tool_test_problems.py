"""One broken upload for every problem: its line, its place, its sentence and its id."""

import pytest
from llm_tool_test_files import RUBRIC, SCENARIO, changed, upload

from scenarios.formats import parse_files
from scenarios.formats.parsed import ScenarioFileError

GATE = "    - type: no_transcript_errors\n"


def gate(text):
    return upload(changed(GATE, f"    - {text}\n"))


# fmt: off
FORMER = {
    "min_notes": ("count: 3", "- {type: command_json_path, command: taskmgr list --format json, path: $, assertion: len >= 3}"),
    "min_links": ("count: 1", "path: $.links, assertion: len >= 1}"),
    "search_hit": ("query: abc", "- {type: command_output_contains, command: taskmgr search abc, substring: abc}"),
    "note_exists": ("id: n1", "- {type: command_succeeds, command: taskmgr show n1}"),
    "link_exists": ("from: a, to: b", "- {type: command_output_contains, command: taskmgr show a, substring: b}"),
    "tag_exists": ("tag: t", "- {type: command_output_contains, command: taskmgr list --format json, substring: t}"),
    "content_contains": ("id: n, substring: s", "- {type: command_output_contains, command: taskmgr show n, substring: s}"),
    "doctor_passes": ("x: 1", "- {type: command_succeeds, command: taskmgr doctor}"),
}

REFUSED = {
    "no name": (upload(changed("name: add-task\n", "")), 1, "name", "The key 'name' is missing.", "format/missing-field"),
    "no task": (upload(changed("task:\n  prompt: Add a task.\n", "")), 1, "task", "The key 'task' is missing.", "format/missing-field"),
    "a name that is a number": (upload(changed("add-task", "7")), 1, "name", "must be text, not a number.", "format/wrong-type"),
    "a blank prompt": (upload(changed("Add a task.", '"  "')), 14, "task.prompt", "must not be empty.", "format/empty-value"),
    "tags as text": (upload(changed("[quick, tasks]", "quick")), 45, "tags", "must be a list, not text.", "format/wrong-type"),
    "target as a list": (upload(changed("target:\n", "target: [x]\nsetupx:\n")), 4, "target", "must be a mapping, not a list.", "format/wrong-type"),
    "a limit of zero": (upload(changed("timeout_secs: 60", "timeout_secs: 0")), 43, "run.timeout_secs", "must be greater than 0, not 0.", "format/out-of-range"),
    "a limit in quotes": (upload(changed("timeout_secs: 60", 'timeout_secs: "60"')), 43, "run.timeout_secs", "must be a number, not text.", "format/wrong-type"),
    "a limit of true": (upload(changed("timeout_secs: 60", "timeout_secs: true")), 43, "run.timeout_secs", "must be a number, not true or false.", "format/wrong-type"),
    "a gate's limit of zero": (upload(changed("timeout_secs: 3", "timeout_secs: 0")), 28, "evaluation.gates[0].timeout_secs", "must be greater than 0, not 0.", "format/out-of-range"),
    "half a turn": (upload(changed("max_turns: 9", "max_turns: 0.5")), 44, "run.max_turns", "must be a whole number, not a number.", "format/wrong-type"),
    "a negative tier": (upload(changed("tier: 2", "tier: -1")), 46, "tier", "must be at least 0, not -1.", "format/out-of-range"),
    "a threshold above one": (upload(changed("0.7", "1.5")), 32, "evaluation.judge.pass_threshold", "must be at most 1, not 1.5.", "format/out-of-range"),
    "a negative weight": (upload(changed("gate_weight: 0.5", "gate_weight: -1")), 37, "evaluation.composite.gate_weight", "must be at least 0", "format/out-of-range"),
    "an unknown word": (upload(changed("gates_pass", "sometimes")), 34, "evaluation.judge.when", "must be 'always' or 'gates_pass'.", "format/unknown-value"),
    "a long name": (upload(changed("add-task", "x" * 201)), 1, "name", "at most 200 characters.", "format/wrong-value"),
    "a misspelled gate": (gate("type: file_exist"), 29, "evaluation.gates[1].type", "Unknown gate 'file_exist'. Did you mean 'file_exists'?", "format/unknown-gate"),
    "an unheard-of gate": (gate("type: zzz"), 29, "evaluation.gates[1].type", "Use one of command_succeeds,", "format/unknown-gate"),
    "a gate without a type": (gate("command: x"), 29, "evaluation.gates[1]", "The gate has no 'type'.", "format/missing-field"),
    "a gate whose type is a list": (gate("type: [x]"), 29, "evaluation.gates[1].type", "must be text, not a list.", "format/wrong-type"),
    "a gate that is a word": (gate("no_transcript_errors"), 29, "evaluation.gates[1]", "Write '- type: no_transcript_errors'.", "format/wrong-type"),
    "a gate without its parameter": (gate("type: file_exists"), 29, "evaluation.gates[1].path", "The key 'path' is missing.", "format/missing-field"),
    "a gate on no path": (gate("{type: file_exists, path: ''}"), 29, "evaluation.gates[1].path", "must not be empty.", "format/empty-value"),
    "a bad pattern in a gate": (gate("{type: file_matches, path: x, pattern: '(['}"), 29, "evaluation.gates[1].pattern", "'([' is not a regular expression", "format/bad-regex"),
    "a bad command pattern": (upload(changed("taskmgr\\s+(\\S+)", "taskmgr (")), 6, "target.command_pattern", "'taskmgr (' is not a regular expression", "format/bad-regex"),
    "a server and a program": (upload(changed("target:\n", "target:\n  mcp: {name: n, command: x}\n")), 5, "target.mcp", "either an MCP server or a program.", "format/two-tools"),
    "a server without a transport": (upload(changed("target:\n", "target:\n  mcp: {name: n}\n")), 5, "target.mcp", "needs a `command` or a `url`, and not both.", "format/wrong-value"),
    "a server with two transports": (upload(changed("target:\n", "target:\n  mcp: {name: n, command: x, url: 'http://x/mcp'}\n")), 5, "target.mcp", "and not both.", "format/wrong-value"),
    "a server with a bad name": (upload(changed("target:\n", "target:\n  mcp: {name: My_Server, command: x}\n")), 5, "target.mcp", "lower-case letters, digits and hyphens.", "format/wrong-value"),
    "a server at no address": (upload(changed("target:\n", "target:\n  mcp: {name: n, url: 'ftp://x'}\n")), 5, "target.mcp", "begins with http:// or https://.", "format/wrong-value"),
    "headers of a command": (upload(changed("target:\n", "target:\n  mcp: {name: n, command: x, headers: {A: b}}\n")), 5, "target.mcp", "`headers` and `transport` belong to a server with a `url`.", "format/wrong-value"),
    "a header in two lines": (upload(changed("target:\n", "target:\n  mcp: {name: n, url: 'http://x', headers: {A: \"b\\nC: d\"}}\n")), 5, "target.mcp", "'A' can't be a header", "format/wrong-value"),
    "a bad JSONPath": (gate('{type: command_json_path, command: x, path: "$[", assertion: exists}'), 29, "evaluation.gates[1].path", "'$[' is not a JSONPath", "format/bad-json-path"),
    "a JSONPath with a pattern": (gate('{type: command_json_path, command: x, path: "$[?(@.a =~ \'(a+)+$\')]", assertion: exists}'), 29, "evaluation.gates[1].path", "is not allowed in a path.", "format/bad-json-path"),
    "a bad assertion": (gate('{type: command_json_path, command: x, path: "$", assertion: "len = 3"}'), 29, "evaluation.gates[1].assertion", "'len = 3' is not an assertion.", "format/bad-assertion"),
    "gates in both places": (upload(SCENARIO + "gates: []\n"), 50, "gates", "are in both 'gates' and 'evaluation.gates'.", "format/gates-twice"),
    "a secret by its name": (upload(changed("PORT: 8080", "API_KEY: hunter2")), 11, "target.env.API_KEY", "Write API_KEY: ${API_KEY}", "format/literal-secret"),
    "a secret by its value": (upload(changed("PORT: 8080", "X: sk-abcdefghijklmnopqrstuv")), 11, "target.env.X", "'X' looks like a credential", "format/literal-secret"),
    "a missing fixture": (upload(changed("template_folder: basic", "template_folder: other")), 3, "template_folder", "The upload has no folder 'other'", "format/missing-fixture"),
    "a fixture upwards": (upload(changed("template_folder: basic", "template_folder: ../basic")), 3, "template_folder", "'../basic' is outside the upload.", "format/fixture-outside"),
    "a fixture through '..'": (upload(changed("template_folder: basic", "template_folder: a/../basic")), 3, "template_folder", "is outside the upload.", "format/fixture-outside"),
    "an absolute fixture": (upload(changed("template_folder: basic", "template_folder: /etc")), 3, "template_folder", "'/etc' is outside the upload.", "format/fixture-outside"),
    "a fixture around its scenario": ({"add-task.yaml": changed("template_folder: basic", "template_folder: .").encode(), "rubrics/style.yaml": RUBRIC.encode()}, 3, "template_folder", "contains the scenario file", "format/fixture-holds-scenario"),
    "a missing rubric": (upload(changed("rubrics/style.yaml", "rubrics/none.yaml")), 31, "evaluation.judge.rubric", "The file 'rubrics/none.yaml' is not in the upload", "format/missing-rubric"),
    "a rubric outside": (upload(changed("rubrics/style.yaml", "../../style.yaml")), 31, "evaluation.judge.rubric", "The file '../../style.yaml' is not in the upload", "format/missing-rubric"),
    "a rubric that is a number": (upload(changed("rubrics/style.yaml", "7")), 31, "evaluation.judge.rubric", "must be a path or a mapping, not a number.", "format/wrong-type"),
    "a judge without rubric": (upload(changed("    rubric: rubrics/style.yaml\n", "")), 30, "evaluation.judge", "The judge has no 'rubric'.", "format/missing-field"),
    "a judge without threshold": (upload(changed("    pass_threshold: 0.7\n", "")), 30, "evaluation.judge", "The judge has no 'pass_threshold'.", "format/missing-field"),
    "no settings": (upload("name: a\ntarget: from_config\ntask: x\ngates: []\n"), 2, "target", "no llm-tool-test-config.toml", "format/no-settings"),
}

REFUSED_ELSEWHERE = {
    "a criterion twice": (upload(rubric=RUBRIC.replace("neat", "correct")), "rubrics/style.yaml", 5, "format/duplicate-criterion"),
    "no weight at all": (upload(rubric=RUBRIC.replace("0.6", "0").replace("0.4", "0")), "rubrics/style.yaml", 1, "format/no-weight"),
    "a rubric without criteria": (upload(rubric="criteria: []\n"), "rubrics/style.yaml", 1, "format/empty-value"),
    "a rubric that isn't YAML": (upload(rubric="criteria: [\n"), "rubrics/style.yaml", 2, "format/not-yaml"),
    "the same name twice": (upload(**{"second.yaml": SCENARIO}), "second.yaml", 1, "format/duplicate-scenario"),
    "a file that isn't YAML": (upload(**{"second.yaml": "a: [\n"}), "second.yaml", 2, "format/not-yaml"),
    "settings that aren't TOML": (upload(**{"llm-tool-test-config.toml": "\n= 1\n"}), "llm-tool-test-config.toml", 2, "format/not-toml"),
    "a secret in the settings": (upload(**{"llm-tool-test-config.toml": '[target]\nbinary = "x"\n[target.env]\nTOKEN = "abc"\n'}), "llm-tool-test-config.toml", 4, "format/literal-secret"),
    "no scenario": ({"notes.yaml": b"a: 1\n"}, "notes.yaml", 1, "format/no-scenario"),
    "an empty file": ({"notes.yaml": b""}, "notes.yaml", 1, "format/empty-file"),
}

LINTS = {
    "an unknown key": (upload(changed("health_check:", "helth_check:")), "target.helth_check", "Did you mean 'health_check'?", "format/unknown-key"),
    "an unknown key of a gate": (upload(changed("timeout_secs: 3", "timeout_sec: 3")), "evaluation.gates[0].timeout_sec", "Did you mean 'timeout_secs'?", "format/unknown-key"),
    "a key like no other": (upload(SCENARIO + "zzz: 1\n"), "zzz", "The key is ignored. Remove it.", "format/unknown-key"),
    "weights that are not one": (upload(rubric=RUBRIC.replace("0.4", "0.2")), "criteria", "add up to 0.8, not 1.", "format/rubric-weights"),
    "nothing that decides": (upload("name: a\ntask: x\ntarget: {binary: t}\ngates: []\n"), "evaluation", "Every trial passes", "format/vacuous"),
    "a gate of a draft": (upload("name: a\ntask: x\ntarget: {binary: t}\ngates: [{type: file_exists, path: FILL-IN}]\n"), "gates[0]", "still contains FILL-IN", "format/to-fill-in"),
    "a task of a draft": (upload("name: a\ntask: {prompt: FILL-IN}\ntarget: {binary: t}\ngates: [{type: file_exists, path: x}]\n"), "task.prompt", "still contains FILL-IN", "format/to-fill-in"),
    "no tool": (upload("name: a\ntask: x\ngates: [{type: file_exists, path: x}]\n"), "target", "Without a tool", "format/no-tool"),
    "an evaluator's name twice": (upload(changed("      name: size\n", "      name: size\n    - {command: x, name: size}\n")), "scripts.evaluators[1].name", "'size'", "format/duplicate-evaluator"),
    "an empty matrix": (upload(changed("tool_matrix:\n  - tool: codex\n    models: [a, b]\n  - tool: claude\n", "tool_matrix: []\n")), "tool_matrix", "is empty", "format/empty-matrix"),
    "a setup that names a hidden file": (upload("name: a\ntask: x\ntarget: {binary: t}\ntemplate_folder: box\nhidden: ['gold/*']\nsetup: {commands: [git add -A, 'cat \"$PWD/gold/b.txt\" > c']}\ngates: [{type: file_exists, path: c}]\n", **{"templates/box/gold/a.txt": "", "templates/box/gold/b.txt": ""}), "setup.commands[1]", "gold/b.txt", "format/hidden-in-setup"),
    "gates of the fixture's own scripts": (upload("name: a\ntask: x\ntarget: {binary: t}\ntemplate_folder: box\ngates: [{type: command_succeeds, command: sh check.sh && sh tests/a.sh && sh tests/b.sh && . tests/c.sh && cat order.csv}]\n", **{"templates/box/check.sh": "", "templates/box/tests/a.sh": "", "templates/box/tests/b.sh": "", "templates/box/tests/c.sh": "", "templates/box/order.csv": ""}), "evaluation.gates", "protected: [check.sh, 'tests/**']", "format/unprotected"),
    "no composite": (upload(changed("gate_weight: 0.5", "{gate_weight: 0, judge_weight: 0, interaction_weight: 0}")), "evaluation.composite", "All weights are 0", "format/no-composite"),
}
# fmt: on


def problems_of(files):
    with pytest.raises(ScenarioFileError) as caught:
        parse_files(files, name="tasks")
    return caught.value.problems


@pytest.mark.parametrize(("files", "line", "where", "sentence", "id"), REFUSED.values(), ids=REFUSED)
def test_it_refuses_with_line_and_sentence(files, line, where, sentence, id):
    (problem,) = [problem for problem in problems_of(files) if not problem.lint]
    assert (problem.file, problem.line, problem.where, problem.id) == ("add-task.yaml", line, where, id)
    assert sentence in f"{problem.what} {problem.fix}"
    assert problem.what[-1] in ".?"


@pytest.mark.parametrize(("files", "file", "line", "id"), REFUSED_ELSEWHERE.values(), ids=REFUSED_ELSEWHERE)
def test_it_refuses_and_names_the_file(files, file, line, id):
    (problem,) = [problem for problem in problems_of(files) if not problem.lint]
    assert (problem.file, problem.line, problem.id) == (file, line, id)


@pytest.mark.parametrize(("files", "where", "sentence", "id"), LINTS.values(), ids=LINTS)
def test_it_lints_and_accepts(files, where, sentence, id):
    (suite,) = parse_files(files, name="tasks")
    (lint,) = suite.lints
    assert (lint.where, lint.id, lint.lint) == (where, id, True)
    assert sentence in f"{lint.what} {lint.fix}"


@pytest.mark.parametrize("kind", FORMER)
@pytest.mark.spec("llm-tool-test", "Replacements of the former gates")
def test_a_legacy_gate_is_refused_with_its_replacement(kind):
    given, replacement = FORMER[kind]
    (problem,) = problems_of(gate(f"{{type: {kind}, {given}}}"))
    assert (problem.line, problem.id) == (29, "format/former-gate")
    assert replacement in problem.fix


def test_all_problems_of_all_files_are_reported_at_once():
    broken = (
        SCENARIO.replace("tier: 2", "tier: -1")
        .replace("template_folder: basic", "template_folder: none")
        .replace("PORT: 8080", "API_KEY: abc")
        .replace("0.7", "7")
        .replace("no_transcript_errors", "min_notes")
        .replace("rubrics/style.yaml", "none.yaml")
    )
    found = problems_of(upload(broken, **{"b.yaml": "a: [\n", "c.yaml": "name: c\nevaluation: 3\n"}))
    assert sorted(problem.id for problem in found) == [
        "format/former-gate",
        "format/literal-secret",
        "format/missing-field",
        "format/missing-fixture",
        "format/missing-rubric",
        "format/not-yaml",
        "format/out-of-range",
        "format/out-of-range",
        "format/wrong-type",
    ]


def test_a_secret_is_never_repeated_in_a_message():
    for secret in ("hunter2", "sk-abcdefghijklmnopqrstuv"):
        (problem,) = problems_of(upload(changed("PORT: 8080", f"API_KEY: {secret}")))
        assert secret not in str(problem)


def test_the_message_reads_as_promised():
    (problem,) = problems_of(gate("type: file_exist"))
    assert str(problem) == (
        "add-task.yaml:29: evaluation.gates[1].type: Unknown gate 'file_exist'. "
        "Did you mean 'file_exists'? [format/unknown-gate]"
    )
