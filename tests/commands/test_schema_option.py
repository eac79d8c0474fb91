"""`check_scenarios --schema` prints what editors read."""

from __future__ import annotations

import json

import pytest

from runs.suites.file_schemas import FILE_SCHEMAS, schema_text
from tests.commands.calling import call

pytestmark = [pytest.mark.one_database, pytest.mark.django_db]


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_it_prints_a_schema(words) -> None:
    ended = call("check_scenarios", "--schema", "rubric", *words)
    assert ended.code == 0
    assert ended.document == json.loads(schema_text("rubric"))


def test_an_unknown_format_is_refused_with_the_names_that_exist() -> None:
    ended = call("check_scenarios", "--schema", "rubrics")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"Unknown format 'rubrics'. Formats: {', '.join(FILE_SCHEMAS)}.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Name a file, a folder or a bundle to check, or a format with --schema."),
        (
            ("--schema", "rubric", "a.yaml"),
            "--schema prints a schema and checks no files. Leave out one of them.",
        ),
    ],
)
def test_it_either_checks_or_prints(words, sentence) -> None:
    ended = call("check_scenarios", *words)
    assert (ended.code, ended.err) == (2, f"{sentence}\n")
