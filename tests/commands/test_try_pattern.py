"""`try_pattern`: what a pattern finds, and what it says of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.model import Event, Transcript
from runs.models import TranscriptRecord
from tests.builders import make_project, make_run, make_suite, make_trial
from tests.commands.calling import call

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
TEXT = "$ ship deploy --env prod\nerror: no such option\n$ ship --help\nusage: ship\n$ ls\n"


def test_a_programs_name_finds_its_commands_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "transcript.txt").write_text(TEXT)
    called = call("try_pattern", "--binary", "ship", "--file", str(tmp_path / "transcript.txt"))
    assert called.out.splitlines() == [
        "deploy           exit 1     ship deploy --env prod",
        "help             help       ship --help",
        "2 commands, 1 failed, 1 help calls (source: transcript)",
    ]


def test_a_pattern_finds_commands_of_a_stored_trial() -> None:
    trial = make_trial(make_run(make_suite(make_project("default"))))
    events = (Event("tool_call", id="1", command="npx ship list"), Event("tool_result", id="1", exit_code=0))
    data = TranscriptRecord.pack(Transcript(events=events, source="events"))
    TranscriptRecord.objects.create(trial=trial, source="events", data=data, events=2)
    document = call(
        "try_pattern", "--pattern", r"ship\s+(?P<sub>\S+)", "--trial", str(trial.pk), "--json"
    ).document
    (found,) = document["commands"]
    assert (found["line"], found["subcommand"], found["exit_code"]) == ("ship list", "list", 0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--pattern", "(", "--file", "{file}"), "'(' is not a regular expression"),
        (("--binary", "ship", "--file", "{file}.gone"), "the transcript cannot be read"),
        (("--binary", "ship", "--trial", "99"), "There is no transcript of trial 99."),
    ],
)
def test_wrong_use_is_one_sentence(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    make_project("default")
    (tmp_path / "transcript.txt").write_text(TEXT)
    called = call("try_pattern", *(word.format(file=tmp_path / "transcript.txt") for word in words))
    assert called.code == 2
    assert sentence in called.err


def test_no_match_is_reported(tmp_path: Path) -> None:
    (tmp_path / "transcript.txt").write_text(TEXT)
    called = call("try_pattern", "--binary", "absent", "--file", str(tmp_path / "transcript.txt"))
    assert called.out.startswith("No command matches.")
