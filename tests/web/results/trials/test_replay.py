"""A trial's calls replayed as in a terminal."""

from __future__ import annotations

import json

import pytest

from tests.builders import make_project, make_run, make_trial
from tests.shell_events import shell
from tests.trial_parts import make_transcript
from tests.web.screen import main_of, parse

pytestmark = pytest.mark.one_database


def replayed(version):
    trial = make_trial(make_run(version))
    make_transcript(trial, [*shell("task add milk", "ok"), *shell("task add", "no name", 2, number=1)])
    return trial


def address(trial, part="replay/"):
    return f"/p/tools/trials/{trial.pk}/{part}"


def test_the_page_lists_commands_and_the_first_failure(signed_in, version):
    trial, client = replayed(version), signed_in("viewer")
    assert main_of(client.get(address(trial, ""))).links["Replay"] == address(trial)
    shown = parse(client.get(address(trial)))
    assert [each.text for each in shown.all("ol.steps button")] == ["task add milk", "task add"]
    failure = next(each for each in shown.all("button") if each.text == "First failure")
    assert failure["data-step"] == "1"
    assert shown.links["Download asciicast"] == address(trial, "replay.cast")


def test_only_this_page_may_compile_webassembly(signed_in, version):
    trial, client = replayed(version), signed_in("viewer")
    policies = [
        client.get(address(trial, part)).headers["Content-Security-Policy"] for part in ("replay/", "")
    ]
    assert ["wasm-unsafe-eval" in each for each in policies] == [True, False]
    assert all("'unsafe-eval'" not in each for each in policies)


def test_the_recording_is_an_asciicast(signed_in, version):
    trial = replayed(version)
    answer = signed_in("viewer").get(address(trial, "replay.cast"))
    header, *events = (json.loads(line) for line in answer.content.decode().splitlines())
    assert (header["version"], header["title"]) == (2, f"create, trial {trial.pk}")
    assert [event[2] for event in events if event[1] == "m"] == ["1. task add milk", "2. task add ✗"]
    assert answer.headers["Content-Disposition"] == f'attachment; filename="trial-{trial.pk}.cast"'


def test_a_trial_without_transcript_has_no_replay(signed_in, version):
    trial, client = make_trial(make_run(version)), signed_in("viewer")
    assert client.get(address(trial)).status_code == 404
    assert "Replay" not in main_of(client.get(address(trial, ""))).links
    assert signed_in(of=make_project("other")).get(address(trial)).status_code == 404
