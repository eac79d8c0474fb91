"""How a changed file is shown: its difference, or why there is none, and its download."""

from __future__ import annotations

import pytest

from runs.results.trial_page import workspace_changes as reader
from tests.builders import make_project
from tests.web.results.trials.pages import address
from tests.web.results.trials.workspaces import START, changes, page, trial_of
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

HOSTILE = "</td><script>alert(1)</script>\u202eexe\x1b[31m"
SHOWN = "</td><script>alert(1)</script>⟨U+202E⟩exe␛[31m"


def test_no_more_text_is_compared_than_a_page_takes(signed_in, project):
    kept = {f"{n}.txt": b"%d " % n * 45_000 for n in range(5)}
    found = changes(signed_in(), trial_of(project, start=None, kept=kept))
    assert [each.is_compared for each in found.values()] == [True] * 3 + [False] * 2
    assert {each.note for each in found.values()} == {"", reader.MANY}


@pytest.mark.parametrize(
    ("before", "after", "note", "sizes"),
    [
        (b"\x00\x01", b"\x00\x02\x03", reader.NO_TEXT, "2 B → 3 B"),
        (b"caf\xc3\xa9", b"caf\xe9", reader.NO_TEXT, "5 B → 4 B"),
        (b"x", b"y" * (reader.LONGEST_TEXT + 1), reader.LARGE, "1 B → 200.0 kB"),
        (b"x\n", b"y\n" * 1001, reader.LONG, "2 B → 2.0 kB"),
        (b"x", b"x\n", reader.UNSEEN, "1 B → 2 B"),
        (b"token=" + b"a" * 40, b"token=" + b"b" * 40, reader.UNSEEN, "46 B → 46 B"),
    ],
    ids=["binary", "another encoding", "large", "long", "last line's end", "a secret"],
)
def test_it_explains_why_a_difference_is_not_shown(signed_in, project, before, after, note, sizes):
    trial = trial_of(project, start={"a": before}, kept={"a": after})
    assert changes(signed_in(), trial) == {"a": ("changed", sizes, note, False)}


def test_an_empty_file_is_labelled(signed_in, project):
    assert reader.EMPTY in page(signed_in(), trial_of(project, kept=START | {"new": b""}))


def test_line_ends_that_changed_are_seen(signed_in, project):
    text = page(signed_in(), trial_of(project, start={"a": b"one\n"}, kept={"a": b"one\r\n"}))
    assert "one␍" in [each.text for each in text.all("td")]


def test_many_changed_files_are_listed_in_part(signed_in, project):
    trial = trial_of(project, kept=START | {f"{n:03}.txt": b"x\n" for n in range(250)})
    client = signed_in()
    found = changes(client, trial)
    assert sum(each.is_compared for each in found.values()) == reader.MOST_DIFFERENCES
    assert len(found) == reader.MOST_FILES
    assert "50 more changed" in page(client, trial)


def test_hostile_names_and_contents_stay_text(signed_in, project):
    name = f"{HOSTILE}\udcff.txt"
    trial = trial_of(project, start={"a.txt": b"x\n"}, kept={"a.txt": HOSTILE.encode() + b"\n", name: b"y\n"})
    client = signed_in()
    text = page(client, trial)
    assert text.count(SHOWN) >= 2
    assert "⟨U+DCFF⟩" in text
    assert text.all("script") == []
    for bad in ("\u202e", "\x1b"):
        assert bad not in text
    response = client.get(address(trial, "files/1/"))
    assert response.content == b"y\n"
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert "\u202e" not in response.headers["Content-Disposition"]


def test_a_line_of_a_megabyte_is_not_put_into_the_page(signed_in, project):
    kept = {"long.txt": b"z" * (reader.LONGEST_TEXT - 1), "longer.txt": b"z" * 1_000_000}
    text = page(signed_in(), trial_of(project, start=None, kept=kept))
    assert len(text) < 40_000
    assert "… of 199,999 characters" in text
    assert reader.LARGE in text


def test_keys_over_several_lines_are_redacted(signed_in, project):
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
    workspace = {"added": 1, "changed": 0, "removed": 2, "files": files, "left_out": []}
    trial = trial_of(project, detail={"workspace": workspace})
    page = parse(signed_in().get(address(trial)))
    assert "1 added, 2 removed" in page.links
    assert SHOWN in page
    assert "Files 3" in page.links


def test_a_changed_file_counts_lines_and_links_to_its_diff(signed_in, project):
    path = f"{HOSTILE}.json"
    files = [
        {"path": path, "change": "changed", "size": 12, "added": 1118, "removed": 4},
        {"path": "picture.png", "change": "added", "size": 1200, "added": None, "removed": None},
        {"path": "old.txt", "change": "removed", "size": None, "added": 0, "removed": 1},
    ]
    workspace = {"added": 1, "changed": 1, "removed": 1, "files": files, "left_out": []}
    trial = trial_of(project, start={path: b"1\n"}, kept={path: b"2\n"}, detail={"workspace": workspace})
    client = signed_in()
    rows = parse(client.get(address(trial))).region("Workspace").table("Workspace").rows
    assert [row.texts[-1] for row in rows] == ["+1,118 −4", "1.2 kB", "−1"]
    name = rows[0].addresses[0].partition("#")[2]
    assert len(page(client, trial).all(f"#{name}")) == 1
