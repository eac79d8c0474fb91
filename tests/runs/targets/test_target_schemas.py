"""The JSON Schema of targets files refuses what the reader refuses, and nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runs.targets.definitions import hints_of_file, read_targets
from runs.targets.target_schemas import SCHEMAS
from scenarios.formats.parsed import ScenarioFileError
from scenarios.formats.yaml_text import read_yaml
from tests.runs.targets.test_definitions import BROKEN, FILE

UNSEEN = {
    "targets/literal-secret": "a guess by names and by what keys of services look like",
    "targets/partial-reference": "may stand in any text",
    "targets/repeated-name": "compares entries",
}
"""Problems that the schema can't see, and why."""
UNSEEN_SAMPLES = {"placeholder": "a language of its own inside a text"}
SEEN_SECRETS = {"literal key": "its field holds nothing but a variable"}


@cache
def validator() -> Draft202012Validator:
    (schema,) = SCHEMAS
    return Draft202012Validator(schema.document())


def decode(text: str) -> Any:
    return read_yaml(text.encode(), "targets.yaml").value


def one(*lines: str) -> str:
    return "targets:\n  - " + "\n    ".join(lines) + "\n"


@pytest.mark.parametrize(
    ("name", "lines", "id"), [(str(row.id), row.values[0], row.values[2]) for row in BROKEN]
)
def test_it_refuses_what_the_reader_refuses(name: str, lines: list[str], id: str) -> None:
    unseen = name in UNSEEN_SAMPLES or (id in UNSEEN and name not in SEEN_SECRETS)
    text = "targets:\n" + "".join(f"  {each}\n" for each in lines)
    assert validator().is_valid(decode(text)) == unseen


def test_the_list_of_what_it_cannot_see_names_nothing_else() -> None:
    assert UNSEEN.keys() <= {row.values[2] for row in BROKEN}


CLI = ("name: a", "provider: cli", "command_template: x")
VALID = {
    "the file of the other tests": FILE,
    "names of later versions": one("label: a", "provider: CLI", "command: x"),
    "fields under settings": one(
        "name: a", "provider: codex", "settings: {executable: codex, logFormat: json}"
    ),
    "a needed field under settings": one("name: a", "provider: cli", "settings: {command-template: x}"),
    "an unusual spelling": one("name: a", "provider: cli", "Command_Template: x"),
    "numbers in quotes": one(*CLI, "timeoutSeconds: '60'", "workers: '4'"),
    "a switch as a word": one(*CLI, "verbose: yes"),
    "a number as text": one("name: a", "provider: mock", "model: 5"),
    "variables in the place of values": one(*CLI, "timeout_seconds: ${{ LIMIT }}", "workers: ${{ N }}"),
    "an empty key": one(*CLI, "workers:", "cwd:"),
    "a health check in camelCase": one(
        *CLI, "healthcheck: {type: command, commandTemplate: x, timeoutSeconds: 2}"
    ),
    "no copy of the guidance": one(*CLI, "guidance_file: false"),
    "a host": one(*CLI, "runtime: host"),
    "a method in lower case": one("name: a", "provider: http", "url: 'http://x'", "method: put"),
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID)
def test_it_refuses_no_valid_file(text: str) -> None:
    assert hints_of_file(text.encode(), "targets.yaml") == ()
    assert [error.message for error in validator().iter_errors(decode(text))] == []


WRONG = {
    "a word as a limit": one(*CLI, "timeout_seconds: soon"),
    "a limit of nothing": one(*CLI, "timeout_seconds: 0"),
    "an unknown reader": one(*CLI, "parser: zzz"),
    "another network": one(*CLI, "egress: some"),
    "a list as a command": one("name: a", "provider: cli", "command_template: [x]"),
    "an unknown field under settings": one(
        "name: a", "provider: cli", "settings: {command_template: x, colour: red}"
    ),
    "an unknown key of a health check": one(*CLI, "healthcheck: {type: http, url: 'http://x', colour: red}"),
    "a health check without its address": one(*CLI, "healthcheck: {type: http}"),
    "a blank name": one("name: ' '", "provider: mock"),
    "targets that are a mapping": "targets: {a: 1}\n",
    "no targets": "targets: []\n",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_it_refuses_a_wrong_type_key_or_choice(text: str) -> None:
    with pytest.raises(ScenarioFileError):
        read_targets(text.encode(), "targets.yaml")
    assert not validator().is_valid(decode(text))


def test_it_refuses_a_field_that_would_be_ignored() -> None:
    text = one("name: a", "provider: mock", "respnse: hi")
    (hint,) = hints_of_file(text.encode(), "targets.yaml")
    assert hint.id == "targets/unknown-field"
    assert not validator().is_valid(decode(text))
