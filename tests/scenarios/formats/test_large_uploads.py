"""A refusal of a large upload stays readable."""

from __future__ import annotations

import time

import pytest

from scenarios.formats import parse_files
from scenarios.formats.parsed import MOST_PROBLEMS, Problem, ScenarioFileError

FULL = b"evalcases: [" + b"{}," * 60_000 + b"0]"


def problems_of(files: dict[str, bytes]) -> tuple[Problem, ...]:
    with pytest.raises(ScenarioFileError) as caught:
        parse_files(files, name="s")
    return caught.value.problems


@pytest.mark.slow
def test_a_refusal_has_a_limited_number_of_problems() -> None:
    problems = problems_of({"a.yaml": FULL})
    assert len(problems) == MOST_PROBLEMS
    assert not any(problem.lint for problem in problems)


def test_a_long_log_is_no_dataset() -> None:
    began = time.process_time()
    (problem,) = problems_of({"log.jsonl": b"{}\n" * 600_000})
    assert problem.id == "format/no-scenario"
    assert time.process_time() - began < 1


def test_a_long_dataset_is_read() -> None:
    lines = (f'{{"id": "a{n}", "input": "Say {n}.", "criteria": "It is said."}}' for n in range(1_100))
    (suite,) = parse_files({"cases.jsonl": "\n".join(lines).encode()}, name="s")
    assert len(suite.scenarios) == 1_100


def test_hints_are_left_out_first() -> None:
    hints = [Problem("a.yaml", line, "", "A hint.", lint=True) for line in range(MOST_PROBLEMS)]
    error = ScenarioFileError([*hints, Problem("b.yaml", 1, "", "An error.")])
    assert len(error.problems) == MOST_PROBLEMS
    assert [problem.what for problem in error.problems if not problem.lint] == ["An error."]
