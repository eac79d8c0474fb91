from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluators.model import FileUnavailable
from runs.engine.workspace.workspace import LocalWorkspace, fill, fresh_folder, own_area, trial_folder
from runs.errors import ProviderError
from runs.results.files.workspace_archive import ChangedFile, archive_workspace, changed_files
from runs.sandbox.filtered_network import MOST_FREE
from runs.sandbox.safe_walk import remove_tree
from runs.sandbox.sandbox import Level
from scenarios.formats.parsed import FixtureFile
from scenarios.guidance import lay_guidance_over
from scenarios.spec import PostScript
from tests.runs.containments import containment
from tests.runs.processes import nothing_left, open_descriptors, unique_seconds

FIXTURE = (
    FixtureFile("AGENTS.md", b"old advice"),
    FixtureFile("docs/a.txt", b"text"),
    FixtureFile("run.sh", b"#!/bin/sh\necho ran\n", executable=True),
)


def prepared(files, root: Path) -> Path:
    path = fresh_folder(root, "workspace-")
    fill(path, files)
    return path


def workspace(tmp_path: Path, level: Level | None = None, **changes) -> LocalWorkspace:
    (tmp_path / "scratch").mkdir(exist_ok=True)
    path = prepared(FIXTURE, tmp_path / "root")
    return LocalWorkspace(path, tmp_path / "scratch", containment(level), **changes)


def test_it_prepares_a_fresh_directory_each_time(tmp_path):
    first, second = prepared(FIXTURE, tmp_path), prepared(FIXTURE, tmp_path)
    assert first != second
    assert (first / "docs/a.txt").read_bytes() == b"text"
    assert os.access(first / "run.sh", os.X_OK)
    assert (first / "docs/a.txt").stat().st_mode & 0o111 == 0


def test_it_lays_the_runs_guidance_over_the_fixtures(tmp_path):
    with_new = prepared(
        lay_guidance_over(FIXTURE, (FixtureFile("CLAUDE.md", b"new advice"),), name="", names=()), tmp_path
    )
    assert (with_new / "CLAUDE.md").read_bytes() == b"new advice"
    assert not (with_new / "AGENTS.md").exists()
    assert (prepared(FIXTURE, tmp_path) / "AGENTS.md").exists()


@contextmanager
def slowly_starting_processes() -> Iterator[None]:
    """Start processes all the time that have this process's files open until they run."""
    ended = threading.Event()

    def start_them() -> None:
        while not ended.is_set():
            subprocess.run(["true"], preexec_fn=lambda: time.sleep(0.02), check=True)

    starting = [threading.Thread(target=start_them) for _ in range(3)]
    for thread in starting:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in starting:
            thread.join()


@pytest.mark.slow
def test_a_new_program_runs_while_others_start(tmp_path):
    # A large file takes a while to write, so most are open when a process starts.
    program = FixtureFile("run.sh", b"#!/bin/sh\necho ran\n" + b"#" * (4 << 20), executable=True)
    with slowly_starting_processes():
        for _ in range(20):
            path = prepared([program], tmp_path)
            assert subprocess.run([path / "run.sh"], capture_output=True, check=True).stdout == b"ran\n"


@pytest.mark.parametrize("path", ["../out", "/etc/out", "a/../../out", ""])
def test_it_refuses_a_fixture_that_leads_outside(tmp_path, path):
    with pytest.raises(ProviderError, match="outside the workspace"):
        prepared([FixtureFile(path, b"x")], tmp_path / "root")
    assert not (tmp_path / "out").exists()


def test_it_runs_commands_in_the_workspace(tmp_path):
    result = workspace(tmp_path, env={"A": "1"}).run(
        "./run.sh; cat; echo $A$B; exit 4", timeout_seconds=10, env={"B": "2"}, stdin="in\n"
    )
    assert (result.stdout, result.exit_code) == ("ran\nin\n12\n", 4)


def test_it_says_that_a_command_timed_out(tmp_path):
    seconds = unique_seconds()
    result = workspace(tmp_path).run(f"sleep {seconds}", timeout_seconds=0.3)
    assert result.timed_out
    assert result.error == "The command timed out after 0.3 s and was ended."
    assert nothing_left(f"sleep\0{seconds}")


def test_it_reports_a_command_that_cannot_start_as_its_result(tmp_path):
    broken = workspace(tmp_path)
    remove_tree(broken.path)
    result = broken.run("true", timeout_seconds=5)
    assert result.exit_code is None
    assert "does not exist" in result.error


def test_it_masks_secrets_in_what_commands_print_and_files_hold(tmp_path):
    here = workspace(tmp_path, secrets=("hunter2-secret",))
    result = here.run("echo hunter2-secret | tee file; echo hunter2-secret >&2", timeout_seconds=10)
    assert "hunter2" not in result.stdout + result.stderr + here.read("file")


def test_it_reads_files_and_links_within(tmp_path):
    here = workspace(tmp_path)
    (here.path / "link").symlink_to("docs/a.txt")
    assert here.read("docs/a.txt") == here.read("link") == here.read("docs/../docs/a.txt") == "text"
    assert here.exists("docs")
    assert not here.exists("docs/b.txt")
    assert not here.exists("docs/a.txt/b")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        pytest.param("../secret", "leads out", id="dots"),
        pytest.param("docs/../../../secret", "leads out", id="dots within"),
        pytest.param("/etc/passwd", "leads out", id="absolute"),
        pytest.param("out", "leads out", id="link"),
        pytest.param("folder/passwd", "leads out", id="link to a folder"),
        pytest.param("fifo", "not a regular file", id="fifo"),
        pytest.param("docs", "not a regular file", id="folder"),
        pytest.param("big", "limit 10,485,760", id="too large"),
        pytest.param("binary", "not UTF-8 text", id="not text"),
        pytest.param("loop", "cannot be read", id="links in a circle"),
        pytest.param("a\0b", "does not exist", id="NUL"),
        pytest.param("gone", "does not exist", id="missing"),
    ],
)
def test_it_reads_nothing_but_text_within(tmp_path, path, sentence):
    here = workspace(tmp_path)
    (tmp_path / "root" / "secret").write_text("secret")
    (here.path / "out").symlink_to("/etc/passwd")
    (here.path / "folder").symlink_to("/etc")
    (here.path / "loop").symlink_to("loop")
    os.mkfifo(here.path / "fifo")
    (here.path / "binary").write_bytes(b"\xff\xfe")
    with (here.path / "big").open("wb") as big:
        big.truncate(11 << 20)
    with pytest.raises(FileUnavailable, match=sentence):
        here.read(path)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "out"])
def test_it_does_not_tell_what_exists_outside(tmp_path, path):
    here = workspace(tmp_path)
    (here.path / "out").symlink_to("/etc/passwd")
    with pytest.raises(FileUnavailable, match="leads out"):
        here.exists(path)


def test_setup_stops_at_the_first_failure(tmp_path):
    here = workspace(tmp_path)
    here.run_setup(["echo 1 > one"])
    with pytest.raises(ProviderError, match="'exit 3' failed: exit code 3") as caught:
        here.run_setup(["exit 3", "echo 2 > two"])
    assert caught.value.kind == "setup"
    assert (here.path / "one").exists()
    assert not (here.path / "two").exists()


def test_post_scripts_all_run_and_failures_are_noted(tmp_path):
    bad, good = workspace(tmp_path).run_post(
        [PostScript(command="echo no >&2; exit 2"), PostScript(command="echo ok")]
    )
    assert bad.note == "The post script 'echo no >&2; exit 2' failed: exit code 2: no."
    assert (good.note, good.result.stdout) == ("", "ok\n")


@pytest.mark.parametrize("level", list(Level))
def test_commands_know_their_files_by_the_inside_path(tmp_path, level):
    here = workspace(tmp_path, level)
    (here.scratch / "events.jsonl").write_text("line")
    assert here.run(f"cat {here.inside(here.scratch / 'events.jsonl')}", timeout_seconds=10).stdout == "line"


def test_it_lists_what_changed(tmp_path):
    path = prepared(FIXTURE, tmp_path)
    (path / "docs/a.txt").write_text("TEXT")
    (path / "new").mkdir()
    (path / "new/b").write_text("12345")
    (path / "AGENTS.md").unlink()
    (path / "link").symlink_to("/etc/passwd")
    assert changed_files(path, FIXTURE) == (
        ChangedFile("AGENTS.md", "removed"),
        ChangedFile("docs/a.txt", "changed", 4),
        ChangedFile("new/b", "added", 5),
    )


def test_it_archives_what_fits_and_names_the_rest(tmp_path):
    import io
    import tarfile

    path = prepared(FIXTURE, tmp_path)
    (path / "large").write_bytes(b"x" * 5000)
    (path / "passwords").symlink_to("/etc/passwd")
    kept = archive_workspace(path, max_file_bytes=1000)
    with tarfile.open(fileobj=io.BytesIO(kept.content)) as tar:
        assert tar.getnames() == ["AGENTS.md", "docs/a.txt", "run.sh"]
    assert kept.left_out == ("large",)
    assert len(archive_workspace(path, max_bytes=12).left_out) == 3


@pytest.mark.parametrize("left", [(), ("workspace/a/b",), ("scratch/log",), ("beside",)])
def test_a_trials_directories_are_gone_in_the_end(tmp_path, left):
    with trial_folder(tmp_path / "work", ()) as folder:
        for name in left:
            path = folder.workspace.parent / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("x")
    assert list(own_area(tmp_path / "work").iterdir()) == []


def test_a_workspace_that_became_a_link_is_removed_and_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    with trial_folder(tmp_path / "work", ()) as folder:
        folder.workspace.rmdir()
        folder.workspace.symlink_to(tmp_path / "elsewhere")
    assert list(own_area(tmp_path / "work").iterdir()) == []
    assert (tmp_path / "elsewhere").is_dir()


def test_a_bundle_has_a_directory_even_when_it_is_empty(tmp_path):
    with trial_folder(tmp_path, FIXTURE) as without, trial_folder(tmp_path, (), ()) as empty:
        assert (without.bundle.exists(), empty.bundle.is_dir()) == (False, True)


def test_only_the_owner_enters_a_trials_directory(tmp_path):
    assert fresh_folder(tmp_path / "new", "trial-").stat().st_mode & 0o777 == 0o700


def test_it_removes_what_was_made_read_only(tmp_path):
    program = (
        "import os, pathlib, sys, tempfile\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "from runs.sandbox.safe_walk import remove_tree\n"
        "root = pathlib.Path(tempfile.mkdtemp()); deep = root / 'a' / 'b'; deep.mkdir(parents=True)\n"
        "(deep / 'f').write_text('x'); (root / 'l').symlink_to('/etc')\n"
        "deep.chmod(0o000); (root / 'a').chmod(0o500); root.chmod(0o500)\n"
        "remove_tree(root); remove_tree(root); print(root.exists())\n"
    )
    root = Path(__file__).parents[3]
    code = f"import sys; sys.path.insert(0, {str(root)!r}); import runs.engine.workspace.workspace\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=False)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.slow
def test_many_trials_leave_nothing(tmp_path):
    seconds = unique_seconds()

    def trial() -> None:
        here = workspace(tmp_path)
        here.run(f"setsid sleep {seconds} >/dev/null 2>&1 & echo x > f", timeout_seconds=10)
        remove_tree(here.path)

    trial()
    before = open_descriptors()
    for _ in range(200):
        trial()
    # Less if garbage of an earlier test was collected.
    assert open_descriptors() <= before + MOST_FREE
    assert list((tmp_path / "root").iterdir()) == []
    assert nothing_left(f"sleep\0{seconds}")
