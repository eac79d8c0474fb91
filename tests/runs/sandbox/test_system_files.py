from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runs.sandbox.bubblewrap import KEPT_SECONDS, system_folder
from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.sandbox import Containment, Level
from tests.runs.containments import containment

pytestmark = pytest.mark.one_database


@pytest.fixture
def system(tmp_path: Path) -> tuple[str, ...]:
    """Names of a made-up system: a file, a folder with a link and keys, and one that is not there."""
    etc = tmp_path / "etc"
    (etc / "ssl" / "private").mkdir(parents=True)
    (etc / "ssl" / "private" / "key").write_text("hunter2")
    (etc / "ssl" / "openssl.cnf").write_text("[default]")
    (etc / "ssl" / "cert.pem").symlink_to("/usr/share/certs/cert.pem")
    (etc / "resolv.conf").write_text("nameserver 192.0.2.1\n")
    return tuple(str(etc / name) for name in ("resolv.conf", "ssl", "pki"))


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_it_gathers_what_is_there_but_no_keys(tmp_path, system):
    folder = system_folder(tmp_path / "gathered", system)
    assert folder
    assert files(folder) == {"resolv.conf", "ssl", "ssl/openssl.cnf", "ssl/cert.pem"}
    assert (folder / "ssl" / "cert.pem").readlink() == Path("/usr/share/certs/cert.pem")


def test_it_is_made_once(tmp_path, system):
    first = system_folder(tmp_path / "gathered", system)
    assert first
    (first / "resolv.conf").write_text("as it was made")
    assert system_folder(tmp_path / "gathered", system) == first
    assert (first / "resolv.conf").read_text() == "as it was made"


@pytest.mark.parametrize("changed", ["resolv.conf", "ssl/new.pem"])
def test_a_system_that_changes_is_gathered_anew(tmp_path, system, changed):
    before = system_folder(tmp_path / "gathered", system)
    (tmp_path / "etc" / changed).write_text("nameserver 198.51.100.7\n")
    after = system_folder(tmp_path / "gathered", system)
    assert before and after and after != before
    assert before.is_dir(), "a sandbox may have it still"
    assert (after / changed).read_text() == "nameserver 198.51.100.7\n"


def test_unused_files_are_removed(tmp_path, system):
    before = system_folder(tmp_path / "gathered", system)
    assert before
    old = time.time() - KEPT_SECONDS - 60
    os.utime(before, (old, old))
    assert system_folder(tmp_path / "gathered", system) == before, "what is in use stays, however old"
    (tmp_path / "etc" / "resolv.conf").write_text("nameserver 198.51.100.7\n")
    after = system_folder(tmp_path / "gathered", system)
    assert after
    assert [each.name for each in after.parent.iterdir()] == [after.name]


def test_many_at_once_make_one(tmp_path, system):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: system_folder(tmp_path / "gathered", system), range(16)))
    assert len(set(made)) == 1
    assert made[0] and [each.name for each in made[0].parent.iterdir()] == [made[0].name]


def test_where_nothing_can_be_written_there_is_none(tmp_path, system):
    (tmp_path / "gathered").write_text("a file")
    assert system_folder(tmp_path / "gathered", system) is None


def output_of(contained: Containment, tmp_path: Path, command: str, readable: tuple[Path, ...] = ()) -> str:
    workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
    workspace.mkdir()
    scratch.mkdir()
    sandbox = contained.around(workspace, scratch, profile=AGENT, readable=readable)
    result = run_process(command, cwd=workspace, env={}, timeout_seconds=20, sandbox=sandbox)
    return (result.stdout + result.stderr).decode()


def gathering(tmp_path: Path) -> Containment:
    base = containment(Level.BWRAP)
    return Containment(base.policy, base.machine, base.path, system_files=tmp_path / "gathered")


def test_a_sandbox_sees_what_was_gathered_and_no_more(tmp_path):
    seen = output_of(gathering(tmp_path), tmp_path, "ls /etc; id -un; ls /etc/ssl")
    [folder] = (tmp_path / "gathered").iterdir()
    assert {each.name for each in folder.iterdir()} <= set(seen.split())
    assert "shadow" not in seen and "private" not in seen.split()
    assert "cannot find name" not in seen


def test_a_sandbox_cannot_write_to_what_was_gathered(tmp_path):
    assert "Read-only" in output_of(gathering(tmp_path), tmp_path, "echo x > /etc/passwd")


def test_a_sandbox_that_reads_more_of_etc_sees_both(tmp_path):
    seen = output_of(
        gathering(tmp_path), tmp_path, "cat /etc/profile | wc -l; ls /etc", (Path("/etc/profile"),)
    )
    assert int(seen.split()[0]) > 0
    assert {"passwd", "profile"} <= set(seen.split())
