"""The files of a trial: its workspace against what that started from."""

from __future__ import annotations

import pytest

from runs.results.trial_page import workspace_changes as reader
from tests.builders import make_run, make_suite, make_target, make_trial
from tests.kept_files import path_of
from tests.web.results.trials.pages import address
from tests.web.results.trials.workspaces import START, changes, page, trial_of
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


def test_it_shows_added_changed_and_removed_files(signed_in, project):
    left = {"infra.json": b"[]\n", "notes.txt": b"one\n2\nthree\n", "same.txt": b"stays\n"}
    trial = trial_of(project, kept=left)
    client = signed_in()
    found = changes(client, trial)
    assert {path: each.change for path, each in found.items()} == {
        "infra.json": "added",
        "notes.txt": "changed",
        "old.txt": "removed",
    }
    text = page(client, trial)
    for expected in (("added", "1"), ("changed", "1"), ("removed", "1"), ("unchanged", "1")):
        assert expected in text.facts.items()
    lines = [row.texts for row in text.table("notes.txt").rows]
    assert ["2", "", "−", "two"] in lines
    assert ["", "2", "+", "2"] in lines
    assert "goes" in text.table("old.txt")
    assert "stays" not in text


def test_only_the_tab_itself_comes_where_htmx_asks(signed_in, project):
    headers = {"HX-Request": "true", "HX-Target": "transcript"}
    trial = trial_of(project, kept={"infra.json": b"[]\n"})
    text = signed_in().get(address(trial, "?part=files"), headers=headers).content.decode()
    assert "infra.json" in text
    assert "<html" not in text


def test_it_takes_at_most_twelve_queries(signed_in, project, django_assert_max_num_queries):
    trial = trial_of(project, kept={"infra.json": b"[]\n"}, guidance={"AGENTS.md": "Read.\n"})
    client = signed_in()
    with django_assert_max_num_queries(12):
        page(client, trial)


def test_other_tabs_show_no_files(signed_in, project):
    trial = trial_of(project, kept={"infra.json": b"[]\n"})
    text = parse(signed_in().get(address(trial)))
    assert "infra.json" not in text and "unchanged" not in text.facts


def test_guidance_is_what_the_run_laid_over_the_fixture(signed_in, project):
    start = START | {"box2": b"x"}
    guidance = {"AGENTS.md": "Version 2.\n", "box/CLAUDE.md": "For the box.\n", "other/CLAUDE.md": "No.\n"}
    kept = START | {"box2": b"x", "AGENTS.md": b"Version 2.\n", "CLAUDE.md": b"For the box.\nMore.\n"}
    trial = trial_of(project, start=start, kept=kept, guidance=guidance)
    found = changes(signed_in(), trial)
    assert {path: each.change for path, each in found.items()} == {
        "CLAUDE.md": "changed",
        "other/CLAUDE.md": "removed",
    }


def test_files_beside_the_workspace_are_not_its_start(signed_in, project):
    trial = trial_of(project, kept={"answer.txt": b"42"}, bundle="box")
    client = signed_in()
    assert {path: each.change for path, each in changes(client, trial).items()} == {"answer.txt": "added"}
    assert reader.EMPTY_START in page(client, trial)


def test_it_shows_that_setup_ran_before(signed_in, project):
    trial = trial_of(project, kept={"made.txt": b"x"}, setup=["make"])
    assert "Includes changes made by the scenario's setup commands." in page(signed_in(), trial)


def test_a_workspace_that_was_emptied_lost_everything(signed_in, project):
    workspace = {"added": 0, "changed": 0, "removed": 3, "files": [], "left_out": [], "empty": True}
    found = changes(signed_in(), trial_of(project, detail={"workspace": workspace}))
    assert {path: each.change for path, each in found.items()} == dict.fromkeys(sorted(START), "removed")


def test_a_pruned_workspace_is_not_shown_as_empty(signed_in, project):
    workspace = {"added": 1, "changed": 0, "removed": 0, "files": [], "left_out": []}
    trial = trial_of(project, kept=START | {"new.txt": b"x"}, detail={"workspace": workspace})
    trial.artifacts.all().delete()
    assert reader.NONE_KEPT in page(signed_in(), trial)


def test_an_unchanged_workspace_is_labelled(signed_in, project):
    assert "No files changed." in page(signed_in(), trial_of(project, kept=START))


def test_files_too_large_to_store_are_not_compared(signed_in, project):
    workspace = {"added": 1, "changed": 1, "removed": 0, "files": [], "left_out": ["old.txt", "huge.bin"]}
    kept = {name: content for name, content in START.items() if name != "old.txt"}
    client = signed_in()
    trial = trial_of(project, kept=kept, detail={"workspace": workspace})
    assert changes(client, trial) == {}
    assert "huge.bin" in page(client, trial)


def test_it_explains_a_missing_workspace(signed_in, project):
    client = signed_in()
    waiting = make_trial(make_run(make_suite(project), state="running"), outcome="")
    assert reader.NOT_YET in page(client, waiting)
    assert reader.NONE_KEPT in page(client, trial_of(project))
    foreign = make_target(project, "theirs")
    foreign.provider = "imported"
    foreign.save()
    imported = make_trial(make_run(make_suite(project), target=foreign))
    assert reader.IMPORTED in page(client, imported)


@pytest.mark.parametrize("damage", ["gone", "cut off", "no archive"])
def test_an_unreadable_workspace_is_reported(signed_in, project, damage):
    trial = trial_of(project, kept={"a.txt": b"x" * 5000, "b.txt": bytes(range(256)) * 40})
    path = path_of(trial.artifacts.get().sha256)
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(content[: len(content) // 2] if damage == "cut off" else b"not an archive")
    client = signed_in()
    why = "Its file is not on this server" if damage == "gone" else "The stored workspace is damaged"
    assert why in page(client, trial)
    assert client.get(address(trial, "files/1/")).status_code == 404


def test_a_trial_without_a_workspace_has_no_line_for_it(signed_in, project):
    text = parse(signed_in().get(address(trial_of(project))))
    assert "compared with the fixture" not in text


def test_files_of_gits_bookkeeping_are_counted_and_not_listed(signed_in, project):
    trial = trial_of(
        project, kept={**START, "new.txt": b"x\n", ".git/HEAD": b"ref\n", "in/.git/config": b"c\n"}
    )
    client = signed_in()
    assert list(changes(client, trial)) == ["new.txt"]
    text = page(client, trial)
    assert text.facts["files in .git"] == "2, hidden"
    assert ".git/HEAD" not in text


def test_a_long_new_file_is_folded(signed_in, project):
    long = "".join(f"line {n}\n" for n in range(60)).encode()
    text = page(signed_in(), trial_of(project, kept={**START, "long.txt": long, "short.txt": b"x\n"}))
    assert [each.text for each in text.all("summary")].count("Show 60 lines") == 1
    assert "line 59" in text


def test_files_that_are_not_stored_are_named_and_counted(signed_in, project):
    workspace = {
        "added": 1,
        "changed": 0,
        "removed": 0,
        "files": [],
        "left_out": ["a.bin"],
        "more_left_out": 1200,
    }
    trial = trial_of(project, kept=START, detail={"workspace": workspace})
    assert "changes are not shown: a.bin and 1,200 more." in page(signed_in(), trial)
