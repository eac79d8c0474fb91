"""Files that are small one by one are limited together."""

from __future__ import annotations

import pytest

from scenarios.formats import parse_files
from scenarios.formats.candidates import MAX_DECODED, MAX_VALUES
from scenarios.formats.problems import MOST_PROBLEMS, Problem, ScenarioFileError

FULL = b"evalcases: [" + b"{}," * 60_000 + b"0]"


def problems_of(files: dict[str, bytes]) -> tuple[Problem, ...]:
    with pytest.raises(ScenarioFileError) as caught:
        parse_files(files, name="s")
    return caught.value.problems


def test_the_values_of_all_scenario_files_are_limited() -> None:
    (problem,) = problems_of({f"{number}.yaml": FULL for number in range(5)})
    assert (problem.id, problem.file) == ("format/too-many-values", "4.yaml")
    assert f"{MAX_VALUES:,}" in problem.what


def test_the_values_of_files_that_are_no_scenarios_are_limited() -> None:
    data = b"[" + b"0," * 500_000 + b"0]"
    (problem,) = problems_of({f"{number}.json": data for number in range(4)})
    assert (problem.id, problem.file) == ("format/too-many-values", "3.json")
    assert f"{MAX_DECODED:,}" in problem.what


def test_a_file_that_breaks_at_its_end_counts_by_its_size() -> None:
    broken = b"[" + b"0," * 900_000
    (problem,) = problems_of({f"{number:02}.json": broken for number in range(20)})
    assert (problem.id, problem.file) == ("format/too-many-values", "11.json")


def test_a_refusal_has_a_limited_number_of_problems() -> None:
    problems = problems_of({"a.yaml": FULL})
    assert len(problems) == MOST_PROBLEMS
    assert not any(problem.lint for problem in problems)


def test_hints_are_left_out_first() -> None:
    hints = [Problem("a.yaml", line, "", "A hint.", lint=True) for line in range(MOST_PROBLEMS)]
    error = ScenarioFileError([*hints, Problem("b.yaml", 1, "", "An error.")])
    assert len(error.problems) == MOST_PROBLEMS
    assert [problem.what for problem in error.problems if not problem.lint] == ["An error."]
