"""Prompts of AgentV's eval files: their files, and the variables in them and in shared input."""

from __future__ import annotations

import json

import pytest
from test_agentv_versions import refused, spec, suite

from scenarios.formats import parse_files

CHAT = [
    {"role": "system", "content": "Be kind to {{ audience }}."},
    {"role": "user", "content": "{{ question }}"},
]
SUPPORT = """\
prompts:
- {id: support-chat, label: Support chat, file: ./prompts/support-chat.json}
- {id: terse, label: Terse, prompt: "For {{ audience }}: {{ question }}"}
default_test: {vars: {audience: users}}
tests: [{id: reset, vars: {question: How do I reset it?}, assert: [ok]}]
"""


def contents(found) -> list[str]:
    return [message["content"] for message in found.messages]


def test_a_prompt_names_a_file_of_messages():
    chat, terse = suite(SUPPORT, **{"prompts/support-chat.json": json.dumps(CHAT)}).scenarios
    assert (chat.key, contents(chat)) == ("reset [Support chat]", ["Be kind to users.", "How do I reset it?"])
    assert (terse.key, terse.prompt) == ("reset [Terse]", "For users: How do I reset it?")


def test_a_prompt_names_a_file_of_text():
    text = "prompts: [{label: one, file: 'file://p.md'}]\ntests: [{id: a, vars: {n: 2}, assert: [ok]}]"
    assert spec(text, **{"p.md": "Add {{ n }}."}).prompt == "Add 2."


@pytest.mark.parametrize(
    "prompts",
    [
        "[{role: system, content: s}, {role: user, content: u}]",
        "[[{role: system, content: s}, {role: user, content: u}]]",
        "[{label: x, messages: [{role: system, content: s}, {role: user, content: u}]}]",
    ],
)
def test_messages_are_one_prompt(prompts):
    (found,) = suite(f"prompts: {prompts}\ntests: [{{id: a, assert: [ok]}}]").scenarios
    assert (found.key, contents(found)) == ("a", ["s", "u"])


def test_an_unknown_key_of_a_prompt_is_a_hint():
    found = suite("prompts:\n- prompt: x\n  config: {a: 1}\ntests: [{id: a, assert: [ok]}]")
    assert [(lint.line, lint.where, lint.id) for lint in found.lints] == [
        (3, "prompts[0].config", "format/unknown-key")
    ]


@pytest.mark.parametrize(
    ("entry", "where", "what"),
    [
        ("{label: x, file: gone.json}", "prompts[0].file", "The file 'gone.json' is not in the upload."),
        ("{label: x, file: 7}", "prompts[0].file", "must be text, not a number."),
        ("{label: x, file: make.py}", "prompts[0].file", "must not be a program."),
        ("{label: x, function: make.ts}", "prompts[0].function", "can't run 'function'"),
        ("{id: support-chat}", "prompts[0]", "The prompt has no text."),
        ("{prompt: x, raw: y}", "prompts[0].raw", "'prompt' and 'raw' are both the text of the prompt."),
    ],
)
def test_a_prompt_that_cannot_be_read_is_refused(entry, where, what):
    (problem,) = refused(f"prompts:\n- {entry}\ntests: [{{id: a, assert: [ok]}}]\n", **{"make.py": ""})
    assert (problem.line, problem.where) == (2, where)
    assert what in f"{problem.what} {problem.fix}"


def with_vars(variables: str, rest: str = "assert: [ok]") -> str:
    return f"prompts:\n- '{{{{ input }}}}'\ntests:\n- id: a\n  vars: {variables}\n  {rest}\n"


@pytest.mark.parametrize("where", ["test", "default_test"])
def test_variables_in_variables_are_filled_in(where):
    variables = "{product: AgentV, input: [{role: system, content: s}, {role: user, content: 'Explain {{ vars.product }}.'}]}"
    text = with_vars(variables)
    if where == "default_test":
        text = f"default_test: {{vars: {variables}}}\n" + with_vars("{}")
    assert contents(spec(text)) == ["s", "Explain AgentV."]


def test_variables_in_variables_of_assertions_and_reference_are_filled_in():
    text = with_vars(
        "{input: x, q: 'Hi {{ who.name }}', who: {name: Ada}, expected_output: '{{ q }}!'}",
        "assert: ['Answers {{ q }}']",
    )
    found = spec(text)
    (judge,) = found.criteria.evaluators
    assert (judge.rubrics[0].description, found.criteria.reference_answer) == ("Answers Hi Ada", "Hi Ada!")


@pytest.mark.parametrize(
    ("variables", "what"),
    [
        (
            "{input: [{role: user, content: 'a {{ gone }}'}]}",
            "The variable 'gone', in the value of 'input', has no value.",
        ),
        ("{input: '{{ a }} {{ a }}', a: '{{ input }}'}", "The variable 'input' contains itself"),
        ("{input: '{{ vars.input }}'}", "The variable 'input' contains itself"),
        ("{input: '{{ a }}', a: '{{ b }}', b: '{{ c }}', c: x}", "or variables are nested too deep."),
    ],
)
def test_variables_that_cannot_be_filled_in_are_one_problem(variables, what):
    (problem,) = refused(with_vars(variables))
    assert (problem.line, problem.where) == (2, "prompts[0]")
    assert what in problem.what


def test_the_published_version_fills_in_once():
    text = "tests: [{id: a, vars: {q: 'Hi {{ who }}', who: Ada}, input: '{{ q }}', criteria: c}]"
    assert spec(text).prompt == "Hi {{ who }}"


SHARED = """\
input: "You help {{ who }}."
input_files: ["{{ data }}.txt"]
tests:
- {id: a, vars: {who: Ada, data: one}, input: x, criteria: c}
- {id: b, vars: {who: Bob, data: two}, input: x, criteria: c}
- {id: c, vars: {who: Cy}, input: x, input_files: [one.txt], criteria: c, execution: {skip_defaults: true}}
"""


def test_shared_input_and_files_have_the_variables_of_each_test():
    ada, bob, alone = suite(SHARED, **{"one.txt": "first", "two.txt": "second"}).scenarios
    assert [message["content"].split("\n")[0] for message in ada.messages] == [
        "You help Ada.",
        '<file path="one.txt">',
    ]
    assert (bob.messages[0]["content"], bob.criteria.input_files) == ("You help Bob.", ("two.txt",))
    assert "You help" not in alone.prompt


def test_shared_input_of_a_dataset_has_the_variables_of_each_line():
    line = '{"id": "a", "vars": {"who": "Ada"}, "input": "x", "criteria": "c"}\n'
    files = {"data.jsonl": line.encode(), "data.yaml": b"input: 'You help {{ who }}.'\n"}
    (found,) = parse_files(files, name="folder")
    assert found.scenarios[0].messages[0]["content"] == "You help Ada."


def test_a_variable_of_shared_input_without_a_value_has_the_line_of_the_input():
    text = "name: x\nproviders: [one]\ntests: ./cases.yaml\ninput: 'You help {{ gone }}.'\n"
    cases = "- {id: a, vars: {who: Ada}, input: x, assert: [ok]}\n- {id: b, vars: {who: Bob}, input: x, assert: [ok]}\n"
    (problem,) = refused(text, **{"cases.yaml": cases})
    assert (problem.file, problem.line, problem.where) == ("a.eval.yaml", 4, "input")
