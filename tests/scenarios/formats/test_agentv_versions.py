"""Eval files of AgentV after the specification: what their keys mean, and what is refused."""

from __future__ import annotations

import pytest

from evaluators.grading.evaluate import evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.transcripts.traces import read_trace
from scenarios.formats import companions, parse_files
from scenarios.formats.parsed import ParsedSuite, Problem, ScenarioFileError
from scenarios.spec import MatrixEntry, ScenarioSpec

HEAD = """\
providers: [codex, {id: "openai:gpt-5", label: mini}]
prompts:
  - "{{ question }}"
  - label: brief
    prompt: [{role: system, content: "Be {{ vars.tone }}."}, {role: user, content: "{{ question }}"}]
default_test:
  vars: {tone: short}
  assert: [{type: not-contains, value: sorry}]
evaluate_options: {repeat: {count: 3, strategy: pass_any}}
assert: [Answers politely, Names a date]
tests:
  - id: receipt
    vars: {question: "A refund?", expected: "yes"}
    assert:
      - {metric: says-yes, type: contains, value: "{{ expected }}"}
      - type: assert-set
        threshold: 0.8
        assert: [{type: contains, value: a}, Is short]
"""


def suite(text: str, **more: str) -> ParsedSuite:
    files = {"a.eval.yaml": text, **more}
    (found,) = parse_files({name: content.encode() for name, content in files.items()}, name="folder")
    return found


def spec(text: str, **more: str) -> ScenarioSpec:
    return suite(text, **more).scenarios[0]


def refused(text: str, **more: str) -> list[Problem]:
    with pytest.raises(ScenarioFileError) as caught:
        suite(text, **more)
    return [problem for problem in caught.value.problems if not problem.lint]


def names(found: ScenarioSpec) -> list[str]:
    return [one.label for one in found.criteria.evaluators]


@pytest.mark.parametrize(
    ("cases", "threshold"), [("evalcases", 1.0), ("eval_cases", 1.0), ("tests", 0.8)], ids=str
)
@pytest.mark.spec("agentv", "The pass rule by the key of the cases")
def test_the_pass_rule_goes_by_the_key_of_the_cases(cases, threshold):
    text = f"{cases}: [{{id: a, input: hi, criteria: c}}]\n"
    assert spec(text).criteria.threshold == threshold
    assert spec("execution: {threshold: 0.3}\n" + text).criteria.threshold == 0.3


@pytest.mark.parametrize("cases", ["evalcases", "eval_cases", "tests"])
@pytest.mark.spec("agentv", "The spellings of all versions")
def test_every_spelling_of_a_case_is_the_same_case(cases):
    first = f"{cases}: [{{id: a, input_messages: [{{role: user, content: hi}}], expected_outcome: c, expected_messages: [{{role: assistant, content: r}}], evaluators: [{{type: llm_judge, name: j}}]}}]"
    later = f"{cases}: [{{id: a, input: hi, criteria: c, expected_output: r, assertions: [{{type: llm-grader, name: j}}]}}]"
    assert spec(first).criteria == spec(later).criteria
    assert (spec(later).prompt, spec(later).criteria.reference_answer) == ("hi", "r")


def test_a_mapping_as_content_is_shown_as_json():
    text = "evalcases: [{id: a, outcome: c, input_messages: [{role: user, content: {task: add, n: 2}}]}]"
    assert spec(text).prompt == '{\n  "task": "add",\n  "n": 2\n}'
    (data,) = spec("tests: [{id: a, input: x, expected_output: {n: [1]}}]").criteria.expected_messages
    assert data.content == {"n": [1]}


def test_texts_are_statements_and_names_follow_the_program():
    text = "tests: [{id: a, input: x, assertions: [Is polite, {type: contains, value: hi}, Is short, {type: rubrics, criteria: [{outcome: x, weight: 2}, y]}]}]"
    rubrics, contains, listed = spec(text).criteria.evaluators
    assert [item.description for item in rubrics.rubrics] == ["Is polite", "Is short"]
    assert (rubrics.label, rubrics.weight, contains.label) == ("rubrics", 2.0, "contains-hi")
    assert [(item.id, item.description, item.weight) for item in listed.rubrics] == [
        ("rubric-1", "x", 2.0),
        ("rubric-2", "y", 1.0),
    ]


def test_assertions_of_the_file_are_added_unless_a_case_skips_them():
    text = (
        "assertions: [{type: is-json}]\ninput: Be brief.\ntests:\n"
        "- {id: a, input: x, assertions: [{type: contains, value: y}]}\n"
        "- {id: b, input: x, execution: {skip_defaults: true}, assertions: [{type: contains, value: y}]}\n"
    )
    first, second = suite(text).scenarios
    assert (names(first), names(second)) == (["contains-y", "is-json"], ["contains-y"])
    assert "Be brief." in first.prompt
    assert "Be brief." not in second.prompt


def test_a_file_before_replaces_the_assertions_of_its_suite():
    text = "execution: {evaluators: [llm_judge]}\nevalcases: [{id: a, outcome: c, input: x, evaluators: [expected_messages]}]"
    assert names(spec(text)) == ["expected_messages"]


def test_required_and_negated_assertions_are_read():
    text = "tests: [{id: a, input: x, assertions: [{type: is-json, required: 0.6}, {type: contains, value: y, negate: true}]}]"
    required, negated = spec(text).criteria.evaluators
    assert (required.required, required.min_score, negated.negate) == (True, 0.6, True)


def test_other_keys_of_a_script_are_its_settings():
    grader = "{type: code-grader, command: [bun, run, g.ts], fields: [{path: a.b, threshold: 0.9}], mode: near, config: {mode: far}}"
    found = suite(f"tests: [{{id: a, input: x, assertions: [{grader}]}}]", **{"g.ts": ""})
    (script,) = found.scenarios[0].criteria.evaluators
    assert script.config == {"fields": [{"path": "a.b", "threshold": 0.9}], "mode": "far"}
    assert found.lints == ()


@pytest.mark.parametrize(
    ("aggregator", "kind"),
    [
        ("{type: script, path: bun run ../or.js}", "code_judge"),
        ("{type: llm-rubric, prompt: Any?}", "llm_judge"),
    ],
)
def test_aggregators_have_the_names_of_later_versions(aggregator, kind):
    group = f"{{type: composite, assert: [{{type: contains, value: y}}], aggregator: {aggregator}}}"
    (composite,) = spec(f"tests: [{{id: a, input: x, assert: [{group}]}}]").criteria.evaluators
    assert composite.aggregator.type == kind


def test_statements_have_the_key_of_earlier_versions():
    found = spec("tests: [{id: a, input: x, rubrics: [{id: r, expected_outcome: Is short}]}]")
    assert found.criteria.evaluators[0].rubrics[0].description == "Is short"


def test_variables_and_files_fill_the_input():
    text = "tests: [{id: a, vars: {who: Ada, n: {m: 2}}, input_files: [data.txt], input: 'Hi {{ who }} {{ n.m }} {{ other }}', criteria: '{{who}}'}]"
    found = spec(text, **{"data.txt": "the data"})
    assert found.prompt.endswith("\n\nHi Ada 2 {{ other }}")
    assert "the data" in found.prompt
    assert found.criteria.expected_outcome == "Ada"
    assert found.criteria.input_files == ("data.txt",)


@pytest.mark.parametrize(
    ("named", "file", "content"),
    [
        ("tests: ./cases.yaml", "cases.yaml", "- {id: a, input: x, criteria: c}\n"),
        ("tests: ['file://cases.jsonl']", "cases.jsonl", '{"id": "a", "input": "x", "criteria": "c"}\n'),
    ],
)
def test_cases_of_other_files_are_read_and_kept_from_the_agent(named, file, content):
    found = suite(named, **{file: content, "kept.txt": "x"})
    assert [one.key for one in found.scenarios] == ["a"]
    assert [one.path for one in found.fixtures["files"]] == ["kept.txt"]


@pytest.mark.parametrize("key", ["target: llm", "name: x\nproviders: [llm]", "default_test: {vars: {a: b}}"])
def test_a_file_with_prompts_and_cases_elsewhere_is_agentvs(key):
    text = f"{key}\nprompts: ['{{{{ input }}}}']\ntests: ./cases.jsonl\n"
    (found,) = suite(
        text, **{"cases.jsonl": '{"id": "a", "vars": {"input": "x"}, "assert": ["ok"]}\n'}
    ).scenarios
    assert (found.key, found.prompt) == ("a", "x")


FOLDERS = {
    "cases/add/case.yaml": "criteria: c\ninput: x\n",
    "cases/fix/case.yml": "id: own\ncriteria: c\ninput: x\n",
    "cases/notes/readme.md": "",
    "cases/fix/deep/case.yaml": "criteria: c\ninput: x\n",
}
GLOBBED = {
    "cases/a.cases.yaml": "- {id: a, criteria: c, input: x}\n",
    "cases/deep/b.cases.jsonl": '{"id": "b", "criteria": "c", "input": "x"}\n',
    "cases/.kept/c.cases.yaml": "- {id: c, criteria: c, input: x}\n",
}


@pytest.mark.parametrize(
    ("text", "files", "keys"),
    [
        ("tests: ./cases/\n", FOLDERS, "add own"),
        ("imports: {tests: [{path: cases}]}\n", FOLDERS, "add own"),
        ("tests: ['file://cases/**/*.cases.{yaml,jsonl}']\n", GLOBBED, "a b"),
        ("tests: ['file://./cases/*.cases.yaml', {id: own, criteria: c, input: x}]\n", GLOBBED, "a own"),
    ],
)
def test_cases_of_folders_and_globs_are_read(text, files, keys):
    suites = parse_files({"a.eval.yaml": text.encode()} | {k: v.encode() for k, v in files.items()}, name="x")
    found = next(each for each in suites if each.name == "a")
    assert [one.key for one in found.scenarios] == keys.split()
    assert "cases/add/case.yaml" not in {one.path for one in found.fixtures.get("files", ())}


def test_the_workspace_of_a_folders_case_is_refused():
    files = {"cases/a/case.yaml": "criteria: c\ninput: x\n", "cases/a/workspace/b.txt": ""}
    (problem,) = refused("tests: ./cases/\n", **files)
    assert (problem.file, problem.where) == ("cases/a/case.yaml", "workspace")


def test_a_single_file_names_the_folder_of_its_glob():
    text = b"tests: ['file://cases/*/x.yaml', 'file://*.yaml', './more/']\n"
    assert {"cases/", "./more/"} <= set(companions("a.eval.yaml", text))


IMPORTED = {
    "cases/a.yaml": "- {id: a1, vars: {q: x}, assert: [ok], metadata: {tags: [fast], size: 1}}\n"
    "- {id: a2, vars: {q: x}, assert: [ok]}\n",
    "cases/b.jsonl": '{"id": "b1", "input": "x", "criteria": "c"}\n',
}


@pytest.mark.parametrize(
    ("imports", "tests", "keys"),
    [
        ("[{path: cases/a.yaml}, {path: cases/b.jsonl}]", "[{id: own, assert: [ok]}]", "a1 a2 b1 own"),
        ("cases/a.yaml", "", "a1 a2"),
        ("[{include: ./cases/a.yaml, select: '*2'}, cases/b.jsonl]", "", "a2 b1"),
        ("{path: cases/a.yaml, select: {tags: fa*, metadata: {size: [1, 2]}}}", "", "a1"),
        ("{path: cases/a.yaml, select: {tags: [all]}}", "", "a1 a2"),
    ],
)
def test_imported_cases_come_before_the_files_own(imports, tests, keys):
    text = f"prompts: [hi]\nmetadata: {{tags: [all]}}\nimports: {{tests: {imports}}}\n" + (
        f"tests: {tests}\n" if tests else ""
    )
    found = suite(text, **{name: each for name, each in IMPORTED.items() if name in imports})
    assert [one.key for one in found.scenarios] == keys.split()
    assert found.lints == ()


def test_a_suite_whose_cases_are_imported_stays_one():
    other = "name: other\ntests: [{id: b, input: x, criteria: c}]\n"
    files = {"a.eval.yaml": "imports: {tests: [b.eval.yaml]}\n", "b.eval.yaml": other}
    suites = parse_files({name: text.encode() for name, text in files.items()}, name="folder")
    assert [(found.name, found.scenarios[0].key) for found in suites] == [("a", "b"), ("other", "b")]


def test_included_assertions_are_read():
    template = {
        ".agentv/templates/safe.yaml": "assertions: [{type: contains, value: y}, {include: ./more.yaml}]\n"
    }
    more = {".agentv/templates/more.yaml": "assertions: [{type: is-json}]\n"}
    found = spec("tests: [{id: a, input: x, assertions: [{include: safe}]}]", **template, **more)
    assert names(found) == ["contains-y", "is-json"]


@pytest.mark.spec("agentv", "After 4.42: prompts, variables and targets")
def test_prompts_cross_tests_with_variables_and_targets():
    direct, brief = suite(HEAD).scenarios
    assert (direct.key, direct.prompt, brief.key) == ("receipt [1]", "A refund?", "receipt [brief]")
    assert [message["content"] for message in brief.messages] == ["Be short.", "A refund?"]
    assert direct.matrix == (MatrixEntry(target="codex"), MatrixEntry(target="mini", id="openai:gpt-5"))
    assert direct.criteria.threshold == 0.8
    assert names(direct) == ["says-yes", "assert-set", "rubrics", "contains-sorry"]
    says, group, _, negated = direct.criteria.evaluators
    assert (says.value, group.min_score, negated.negate) == (("yes",), 0.8, True)


def test_repeats_are_proposed_for_runs():
    found = suite(HEAD)
    assert found.settings["trials"] == 3
    assert "format/trials" in [lint.id for lint in found.lints]


@pytest.mark.parametrize("repeat", ["4", "{count: 4, strategy: pass_any}"])
def test_a_files_own_repeats_are_proposed(repeat):
    found = suite(f"repeat: {repeat}\ntests: [{{id: a, input: x, criteria: c}}]\n")
    assert found.settings["trials"] == 4
    assert [(lint.id, lint.where) for lint in found.lints] == [("format/trials", "repeat")]


def test_a_variable_can_hold_messages_and_one_prompt_keeps_the_id():
    text = "prompts: ['{{ input }}']\ntests: [{id: a, vars: {input: [{role: system, content: s}, {role: user, content: u}]}, assert: [ok]}]"
    found = spec(text)
    assert (found.key, [one["content"] for one in found.messages]) == ("a", ["s", "u"])


@pytest.mark.parametrize(
    ("called", "value"), [([], 1.0), (["writeFile"], 0.0), (["writeFile", "deleteFile"], 0.0)], ids=str
)
def test_a_negated_list_of_tools_forbids_each_of_them(called, value):
    text = "prompts: [x]\ntests: [{id: a, assert: [{type: not-trajectory:tool-used, value: [writeFile, deleteFile]}]}]"
    trace = [{"type": "tool_call", "name": name} for name in (*called, "readFile")]
    found = evaluate(spec(text).criteria, TrialEvidence(read_trace(trace), exit_code=0))
    assert next(one.value for one in found.scores if one.name == "trajectory:tool-used-writeFile") == value


@pytest.mark.parametrize(
    "statements", ["type: llm-grader, rubrics: [{outcome: o}]", "type: llm-rubric, value: [{outcome: o}]"]
)
def test_a_prompt_beside_statements_is_a_hint(statements):
    judge = f"{{{statements},\n  prompt: file://prompts/g.md}}"
    found = suite(f"tests:\n- id: a\n  input: x\n  assertions:\n  - {judge}\n", **{"prompts/g.md": "Grade."})
    assert [(lint.line, lint.where, lint.id) for lint in found.lints] == [
        (6, "tests[0].assertions[0].prompt", "format/unused-prompt")
    ]
    assert found.scenarios[0].criteria.evaluators[0].rubrics[0].description == "o"


REFUSED = {
    "an environment": ("tests: [{id: a, input: x, criteria: c}]\nenvironment: {type: host}\n", 2, "environment", "can't run 'environment'"),
    "hooks": ("extensions: [a]\ntests: [{id: a, input: x, criteria: c}]\n", 1, "extensions", "can't run"),
    "a workspace": ("tests:\n- id: a\n  input: x\n  criteria: c\n  workspace: {template: t}\n", 5, "tests[0].workspace", "can't run"),
    "turns": ("tests:\n- id: a\n  input: x\n  criteria: c\n  turns: [{input: y}]\n", 5, "tests[0].turns", "can't run"),
    "an image": ("tests:\n- id: a\n  criteria: c\n  input:\n  - role: user\n    content:\n    - {type: image, value: a.png}\n", 7, "tests[0].input[0].content[0].type", "can't show parts of type 'image'"),
    "settings of one test's run": ("tests:\n- id: a\n  input: x\n  criteria: c\n  run: {threshold: 1.0}\n", 5, "tests[0].run", "Write 'threshold:' in the test"),
    "scenarios": ("prompts: [x]\nscenarios: [a]\ntests: [{id: a, criteria: c}]\n", 2, "scenarios", "can't run"),
    "a model for a script": ("tests:\n- id: a\n  input: x\n  assertions:\n  - {type: code-grader, command: x, target: true}\n", 5, "tests[0].assertions[0].target", "can't run 'target'"),
    "an unknown kind": ("tests:\n- id: a\n  input: x\n  assertions:\n  - {type: custom, value: y}\n", 5, "tests[0].assertions[0].type", "Unknown evaluator 'custom'."),
    "a negation of later versions": ("tests:\n- id: a\n  input: x\n  assertions:\n  - {type: not-contains, value: y}\n", 5, "tests[0].assertions[0].type", "'negate: true'"),
    "a pattern": ("tests:\n- id: a\n  input: x\n  assertions:\n  - {type: regex, value: '('}\n", 5, "tests[0].assertions[0].value", "not a regular expression"),
    "a schema": ("tests:\n- id: a\n  input: x\n  assertions:\n  - {type: json-schema, value: {uniqueItems: true}}\n", 5, "tests[0].assertions[0].value", "'uniqueItems' of JSON schemas is not supported"),
    "no limit": ("tests:\n- id: a\n  input: x\n  assertions:\n  - {type: token-usage}\n", 5, "tests[0].assertions[0]", "It sets no limit."),
    "two spellings": ("tests:\n- id: a\n  input: x\n  input_messages: [{role: user, content: y}]\n  criteria: c\n", 3, "tests[0].input", "are the same key"),
    "two lists of cases": ("tests: [{id: a, input: x, criteria: c}]\nevalcases: []\n", 1, "tests", "are the same key"),
    "no input": ("tests:\n- id: a\n  criteria: c\n", 2, "tests[0].input", "'input' is missing"),
    "nothing to judge by": ("tests:\n- id: a\n  input: x\n", 2, "tests[0]", "says nothing about a good answer"),
    "an environment variable": ("tests:\n- id: a\n  input: x ${{ HOME }}\n  criteria: c\n", 3, "tests[0].input", "variables of the environment"),
    "an environment variable with a default": ("target: x\nprompts: ['{{ env.URL | default(\"x\") }}']\ntests: [{id: a, assert: [ok]}]\n", 2, "prompts[0]", "variables of the environment"),
    "a variable without a value": ("prompts:\n- '{{ gone }}'\ntests: [{id: a, assert: [ok]}]\n", 2, "prompts[0]", "'gone' has no value"),
    "a prompt that is a program": ("prompts:\n- file://p.py:make\ntests: [{id: a, assert: [ok]}]\n", 2, "prompts[0]", "must not be a program"),
    "cases in CSV": ("tests: file://c.csv\nname: x\n", 1, "tests", "evalhub can't read 'c.csv'."),
    "cases that are gone": ("name: x\ntests: ./gone.yaml\n", 2, "tests", "is not in the upload"),
    "imported suites": ("name: x\nimports:\n  suites: [b.eval.yaml]\n", 3, "imports.suites", "can't run 'suites'"),
    "an import with settings of runs": ("imports:\n  tests:\n  - path: c.csv\n    run: {threshold: 1}\n", 4, "imports.tests[0].run", "can't run 'run'"),
    "an import that is gone": ("imports:\n  tests: [gone.yaml]\ntests: [{id: a, input: x, criteria: c}]\n", 2, "imports.tests[0].path", "is not in the upload"),
    "an import of nothing": ("name: x\nimports: {tests: []}\n", 1, "", "has no eval cases"),
    "a selection that isn't a glob": ("imports:\n  tests: {path: c.csv, select: '{'}\n", 2, "imports.tests.select", "do not match"),
    "a folder without cases": ("name: x\ntests: ./empty/\n", 2, "tests", "The folder './empty/' has no cases."),
    "a glob of nothing": ("name: x\ntests:\n- file://gone/*.yaml\n", 3, "tests[0]", "No file of the upload matches"),
    "a glob that is none": ("name: x\ntests:\n- file://gone/{.yaml\n", 3, "tests[0]", "do not match"),
    "a glob of CSV": ("name: x\ntests:\n- file://*.csv\n", 3, "tests[0]", "evalhub can't read 'c.csv'."),
    "score ranges": ("tests:\n- id: a\n  input: x\n  assertions:\n  - {type: rubrics, criteria: [{outcome: x, score_ranges: {0: y}}]}\n", 5, "tests[0].assertions[0].criteria[0].score_ranges", "decides the verdict"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "where", "what"), REFUSED.values(), ids=REFUSED)
@pytest.mark.spec("agentv", "What can't be run is refused")
def test_what_cannot_be_run_is_refused_with_its_key_and_line(text, line, where, what):
    problems = refused(text, **{"c.csv": "id\n", "empty/readme.md": ""})
    assert (line, where) in [(problem.line, problem.where) for problem in problems]
    assert any(what in f"{problem.what} {problem.fix}" for problem in problems)
    assert len(problems) == 1


def test_an_eval_in_typescript_is_said_beside_others_and_refused_alone():
    found = suite("tests: [{id: a, input: x, criteria: c}]", **{"evals/b.eval.ts": "export default {}"})
    assert [(lint.file, lint.id) for lint in found.lints] == [("evals/b.eval.ts", "format/eval-program")]
    with pytest.raises(ScenarioFileError) as caught:
        parse_files({"b.eval.ts": b"export default {}"}, name="folder")
    (problem,) = caught.value.problems
    assert problem.what == "Not read yet: an eval of AgentV in TypeScript."


def test_a_file_of_the_specification_ignores_later_keys_as_before():
    case = "evalcases: [{id: a, outcome: c, input_messages: [{role: user, content: '{{ x }}'}]}]"
    later = case.replace("id: a,", "id: a, vars: {x: y}, threshold: 0.1, description: d, input_files: [z],")
    shared = "name: other\nthreshold: 0.2\nevaluators: [expected_messages]\ninput: Be brief.\n"
    found = suite(shared + later)
    assert found.name == suite(case).name
    assert found.scenarios[0].model_copy(update={"line": 1}) == suite(case).scenarios[0]
    assert sorted(lint.where for lint in found.lints) == [
        "evalcases[0].description",
        "evalcases[0].input_files",
        "evalcases[0].threshold",
        "evalcases[0].vars",
        "evaluators",
        "input",
        "name",
        "threshold",
    ]


@pytest.mark.parametrize(
    ("given", "least"), [("max: 3", 1), ("max: 0", 0), ("min: 0, max: 3", 0), ("min: 2", 2)]
)
def test_a_tool_is_called_at_least_once_unless_the_file_says_otherwise(given, least):
    text = f"prompts: [x]\ntests: [{{id: a, assert: [{{type: trajectory:tool-used, value: {{name: t, {given}}}}}]}}]"
    (suite,) = parse_files({"one.yaml": text.encode()}, name="one")
    (check,) = suite.scenarios[0].criteria.evaluators
    assert check.minimum == least


def test_a_file_of_a_message_may_be_a_reference():
    part = "{type: file, value: 'file://./shared.md'}"
    text = f"tests: [{{id: a, criteria: c, input: [{{role: user, content: [{part}]}}]}}]"
    (suite,) = parse_files({"one.yaml": text.encode(), "shared.md": b"Shared."}, name="one")
    assert suite.scenarios[0].prompt == '<file path="./shared.md">\nShared.\n</file>'
