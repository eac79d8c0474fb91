"""The files of a trial: its workspace against what that started from."""

from __future__ import annotations

import pytest

from runs.artifacts import path_of
from runs.warehouse import workspace_changes as reader
from scenarios.formats.parsed import FixtureFile
from scenarios.models import Guidance
from scenarios.storing import keep_fixture
from tests.builders import make_project, make_run, make_suite, make_target, make_trial, make_workspace

HOSTILE = "</td><script>alert(1)</script>\u202eexe\x1b[31m"
SHOWN = "&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩exe␛[31m"
START = {"notes.txt": b"one\ntwo\nthree\n", "same.txt": b"stays\n", "old.txt": b"goes\n"}


@pytest.fixture(autouse=True)
def _artifacts(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path


def trial_of(project, *, start=START, kept=None, guidance=None, detail=None, **content):
    """Return a trial whose workspace started with some files and ended with others."""
    version = make_suite(project, ("export",), fixture="box" if start else None, **content)
    scenario_version = version.scenario_versions.get()
    if start:
        files = tuple(FixtureFile(path, content) for path, content in start.items())
        scenario_version.fixture = keep_fixture(project, files)
        scenario_version.save()
    if guidance:
        documents = [{"path": path, "content": text} for path, text in guidance.items()]
        guidance = Guidance.objects.create(suite=version.suite, number=1, sha256="a" * 64, files=documents)
    trial = make_trial(make_run(version, guidance=guidance or None), **({"detail": detail} if detail else {}))
    if kept is not None:
        make_workspace(trial, kept)
    return trial


def address(trial, part=""):
    return f"/p/tools/trials/{trial.pk}/{part}"


def page(client, trial):
    return client.get(address(trial, "?part=files")).content.decode()


def changes(client, trial):
    found = client.get(address(trial, "?part=files")).context["files"]
    return {change.path: change for change in found.files}


def test_it_says_what_was_added_changed_and_removed(signed_in, project):
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
    for expected in (
        "<dt>added</dt><dd>1</dd>",
        "<dt>changed</dt><dd>1</dd>",
        "<dt>removed</dt><dd>1</dd>",
        "<dt>as before</dt><dd>1</dd>",
        '<tr class="removed"><td>2</td><td></td><td>−</td><td>two</td></tr>',
        '<tr class="added"><td></td><td>2</td><td>+</td><td>2</td></tr>',
        "<td>goes</td>",
    ):
        assert expected in text
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


def test_other_tabs_open_no_archive(signed_in, project):
    trial = trial_of(project, kept={"infra.json": b"[]\n"})
    assert signed_in().get(address(trial)).context["files"] is None


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


def test_what_came_beside_the_workspace_is_no_start_of_it(signed_in, project):
    trial = trial_of(project, kept={"answer.txt": b"42"}, bundle="box")
    client = signed_in()
    assert {path: each.change for path, each in changes(client, trial).items()} == {"answer.txt": "added"}
    assert reader.EMPTY_START in page(client, trial)


def test_it_says_that_setup_ran_before(signed_in, project):
    trial = trial_of(project, kept={"made.txt": b"x"}, setup=["make"])
    assert "setup commands ran before the agent" in page(signed_in(), trial)


def test_a_workspace_that_was_emptied_lost_everything(signed_in, project):
    told = {"added": 0, "changed": 0, "removed": 3, "files": [], "left_out": [], "empty": True}
    found = changes(signed_in(), trial_of(project, detail={"workspace": told}))
    assert {each.change for each in found.values()} == {"removed"}
    assert len(found) == 3


def test_a_workspace_whose_file_was_pruned_is_not_taken_for_an_empty_one(signed_in, project):
    told = {"added": 1, "changed": 0, "removed": 0, "files": [], "left_out": []}
    trial = trial_of(project, kept=START | {"new.txt": b"x"}, detail={"workspace": told})
    trial.artifacts.all().delete()
    assert reader.NONE_KEPT in page(signed_in(), trial)


def test_no_more_text_is_compared_than_a_page_takes(signed_in, project):
    kept = {f"{n}.txt": b"%d " % n * 45_000 for n in range(5)}
    found = changes(signed_in(), trial_of(project, start=None, kept=kept))
    assert [bool(each.difference) for each in found.values()] == [True] * 3 + [False] * 2
    assert {each.note for each in found.values()} == {"", reader.MANY}


def test_nothing_changed_is_said(signed_in, project):
    assert "Every file is as the workspace started with it." in page(
        signed_in(), trial_of(project, kept=START)
    )


def test_what_was_too_large_to_keep_is_neither_removed_nor_compared(signed_in, project):
    told = {"added": 1, "changed": 1, "removed": 0, "files": [], "left_out": ["old.txt", "huge.bin"]}
    kept = {name: content for name, content in START.items() if name != "old.txt"}
    client = signed_in()
    trial = trial_of(project, kept=kept, detail={"workspace": told})
    assert changes(client, trial) == {}
    assert "huge.bin" in page(client, trial)


def test_it_says_why_nothing_is_known(signed_in, project):
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
def test_a_kept_workspace_that_cannot_be_read_is_said(signed_in, project, damage):
    trial = trial_of(project, kept={"a.txt": b"x" * 5000, "b.txt": bytes(range(256)) * 40})
    path = path_of(trial.artifacts.get().sha256)
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(content[: len(content) // 2] if damage == "cut off" else b"not an archive")
    client = signed_in()
    assert "cannot be read any more" in page(client, trial)
    assert client.get(address(trial, "files/1/")).status_code == 404


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        (b"\x00\x01", b"\x00\x02\x03", reader.NO_TEXT),
        (b"caf\xc3\xa9", b"caf\xe9", reader.NO_TEXT),
        (b"x", b"y" * (reader.LONGEST + 1), reader.LARGE),
        (b"x\n", b"y\n" * 1001, reader.LONG),
        (b"x", b"x\n", reader.UNSEEN),
        (b"token=" + b"a" * 40, b"token=" + b"b" * 40, reader.UNSEEN),
    ],
    ids=["binary", "another encoding", "large", "long", "last line's end", "a secret"],
)
def test_it_says_why_a_difference_is_not_shown(signed_in, project, before, after, note):
    trial = trial_of(project, start={"a": before}, kept={"a": after})
    client = signed_in()
    (change,) = changes(client, trial).values()
    assert (change.difference, change.note) == (None, note)
    assert (change.before, change.after) == (len(before), len(after))
    assert note in page(client, trial)


def test_an_empty_file_is_said_to_be_one(signed_in, project):
    assert reader.EMPTY in page(signed_in(), trial_of(project, kept=START | {"new": b""}))


def test_line_ends_that_changed_are_seen(signed_in, project):
    text = page(signed_in(), trial_of(project, start={"a": b"one\n"}, kept={"a": b"one\r\n"}))
    assert "<td>one␍</td>" in text


def test_many_changed_files_are_listed_in_part(signed_in, project):
    trial = trial_of(project, kept=START | {f"{n:03}.txt": b"x\n" for n in range(250)})
    client = signed_in()
    found = changes(client, trial)
    assert sum(each.difference is not None for each in found.values()) == reader.MOST_DIFFERENCES
    assert len(found) == reader.MOST_FILES
    assert "50 more changed" in page(client, trial)


def test_hostile_names_and_contents_stay_text(signed_in, project):
    name = f"{HOSTILE}\udcff.txt"
    trial = trial_of(project, start={"a.txt": b"x\n"}, kept={"a.txt": HOSTILE.encode() + b"\n", name: b"y\n"})
    client = signed_in()
    text = page(client, trial)
    assert text.count(SHOWN) >= 2
    assert "⟨U+DCFF⟩" in text
    for bad in ("<script>alert", "\u202e", "\x1b"):
        assert bad not in text
    response = client.get(address(trial, "files/1/"))
    assert response.content == b"y\n"
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert "\u202e" not in response.headers["Content-Disposition"]


def test_a_line_of_a_megabyte_is_not_put_into_the_page(signed_in, project):
    kept = {"long.txt": b"z" * (reader.LONGEST - 1), "longer.txt": b"z" * 1_000_000}
    text = page(signed_in(), trial_of(project, start=None, kept=kept))
    assert len(text) < 40_000
    assert "… of 99,999 characters" in text
    assert reader.LARGE in text


def test_what_looks_like_a_key_is_redacted_also_over_several_lines(signed_in, project):
    key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0c2VjcmV0\n-----END PRIVATE KEY-----\n"
    text = page(signed_in(), trial_of(project, kept=START | {"id_rsa": key.encode()}))
    assert "id_rsa" in text
    assert "c2VjcmV0" not in text


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("runner", 403), ("author", 200)])
def test_only_authors_download_a_file_as_it_is(signed_in, project, role, status):
    trial = trial_of(project, kept={"page.html": b"<script>alert(1)</script>"})
    client = signed_in(role)
    response = client.get(address(trial, "files/0/"))
    assert response.status_code == status
    assert ("Download" in page(client, trial)) is (status == 200)
    if status == 200:
        assert response.content == b"<script>alert(1)</script>"
        assert response.headers["Content-Type"] == "application/octet-stream"


def test_a_file_that_is_not_there_is_not_found(signed_in, project):
    trial = trial_of(project, kept={"a.txt": b"x"})
    client = signed_in()
    assert client.get(address(trial, "files/1/")).status_code == 404
    assert client.get(address(trial_of(project), "files/0/")).status_code == 404
    other = signed_in(of=make_project("other"))
    assert other.get(f"/p/other/trials/{trial.pk}/files/0/").status_code == 404


def test_the_page_of_a_trial_names_what_changed(signed_in, project):
    files = [{"path": f"{HOSTILE}.json", "change": "added", "size": 1200}]
    told = {"added": 1, "changed": 0, "removed": 2, "files": files, "left_out": []}
    trial = trial_of(project, detail={"workspace": told})
    text = signed_in().get(address(trial)).content.decode()
    assert "1 added, 0 changed, 2 removed" in text
    assert SHOWN in text
    assert 'Files <span class="count">3</span>' in text


def test_a_trial_without_a_workspace_has_no_line_for_it(signed_in, project):
    text = signed_in().get(address(trial_of(project))).content.decode()
    assert "against the fixture" not in text
