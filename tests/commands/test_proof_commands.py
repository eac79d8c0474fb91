"""Proofs on the command line: of files, and of a stored suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalhub.teams.access import default_project
from runs.models import SuiteProof
from scenarios.bundles import read_path
from scenarios.imports import import_files
from scenarios.models import Suite
from tests.commands.calling import call
from tests.greeting import EXISTS, greeting

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]

EXAMPLES = Path(__file__).parents[2] / "scenarios" / "examples"
NULL_PASSES = "- type: file_exists\n  path: README.md\n"


@pytest.fixture
def folder(tmp_path: Path, settings) -> Path:
    settings.WORK_DIR = tmp_path / "work"
    suite = tmp_path / "suite"
    (suite / "templates/repo").mkdir(parents=True)
    (suite / "solutions").mkdir()
    (suite / "templates/repo/README.md").write_text("Hello.\n")
    (suite / "greet.yaml").write_text(greeting(EXISTS))
    (suite / "solutions/greet.sh").write_text("touch out.txt\n")
    return suite


@pytest.mark.parametrize(
    ("gate", "script", "code", "seal"),
    [
        (EXISTS, "touch out.txt\n", 0, "proved"),
        (NULL_PASSES, "touch out.txt\n", 1, "passes_without_agent"),
        (EXISTS, "exit 1\n", 1, "solution_fails"),
    ],
)
def test_checking_files_proves_them_on_request(folder, gate, script, code, seal):
    (folder / "greet.yaml").write_text(greeting(gate))
    (folder / "solutions/greet.sh").write_text(script)
    called = call("check_scenarios", "--prove", str(folder), "--json")
    (proof,) = called.document["proofs"]["suite"]
    assert (called.code, proof["scenario"], proof["seal"]) == (code, "greet", seal)
    assert not Suite.objects.exists()


def test_a_stored_suite_is_proved_and_the_proof_kept(folder):
    import_files(read_path(folder), project=default_project(), by=None)
    called = call("prove_suite", "suite")
    assert called.code == 0
    assert "✓ greet: proved\n1 proved." in called.out
    assert SuiteProof.objects.get().scenarios.get().seal == "proved"


def test_a_suite_that_passes_without_an_agent_ends_with_1(folder):
    (folder / "greet.yaml").write_text(greeting(NULL_PASSES))
    import_files(read_path(folder), project=default_project(), by=None)
    called = call("prove_suite", "suite", "--json")
    assert called.code == 1
    assert [each["seal"] for each in called.document["scenarios"]] == ["passes_without_agent"]


def test_an_unknown_suite_is_refused_with_the_known_ones(folder):
    import_files(read_path(folder), project=default_project(), by=None)
    called = call("prove_suite", "siute")
    assert called.code == 2
    assert "Unknown suite 'siute' in default. Suites: suite." in called.err


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "unproved"), [("git-basics", 0), ("stock", 0), ("desk", 1), ("cities", 0)])
def test_the_example_suites_are_proved(name, unproved, tmp_path, settings):
    settings.WORK_DIR = tmp_path / "work"
    called = call("check_scenarios", "--prove", str(EXAMPLES / name), "--json")
    ((_, proofs),) = called.document["proofs"].items()
    assert called.code == (1 if unproved else 0)
    assert [each["seal"] for each in proofs].count("unproved") == unproved
    assert {each["seal"] for each in proofs} <= {"proved", "unproved"}


@pytest.mark.parametrize(
    ("words", "sentence"), [(("--max-usd", "0"), "--max-usd is 0. Give more than 0 dollars.")]
)
def test_a_wrong_option_of_a_proof_is_refused(folder, words, sentence):
    import_files(read_path(folder), project=default_project(), by=None)
    called = call("prove_suite", "suite", *words)
    assert called.code == 2
    assert sentence in called.err
