"""Files that a trial leaves: whatever lies at a name that the worker opens, nothing is followed or waited for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from evalhub.teams.models import Project
from evaluators.model import FileUnavailable
from runs.engine import run_here
from runs.engine.workspace.workspace import LocalWorkspace, trial_folder
from runs.errors import ProviderError
from runs.models import Trial
from runs.results.files.workspace_archive import archive_workspace, changed_files
from runs.sandbox.safe_paths import (
    create_beneath,
    exists_beneath,
    make_folder_beneath,
    open_beneath,
    open_by_steps,
    read_beneath,
    write_beneath,
)
from runs.sandbox.safe_walk import disk_usage, entries_beneath, remove_tree
from runs.sandbox.sandbox import Level
from scenarios.formats.parsed import FixtureFile
from tests.kept_files import path_of
from tests.runs.carried import shell_project
from tests.runs.carrying import carrying, running, suite_of
from tests.runs.containments import containment
from tests.runs.sandbox.planted import NAMES, SECRET, SHELL, planting, plants, victim
from tests.runs.targets.providers.agents import agent, invocation
from tests.waiting import until

pytestmark = pytest.mark.one_database

QUICK_SECONDS = 20.0
"""Far longer than any of it takes, and shorter than a FIFO would hold it."""


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


OPENINGS = pytest.mark.parametrize("opening", [open_beneath, open_by_steps])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_planted_is_never_read(tmp_path, inside, name):
    plants(victim(tmp_path))[name](inside / "out")
    with pytest.raises(OSError, match=r"leads out|symbolic links|regular file|bytes|No such device"):
        read_beneath(inside, "out")
    with pytest.raises(FileUnavailable):
        LocalWorkspace(inside, inside, containment()).read("out")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_planted_is_never_written_to(tmp_path, inside, name):
    secret = victim(tmp_path)
    plants(secret)[name](inside / "out")
    with pytest.raises(FileExistsError):
        write_beneath(inside, "out", b"x")
    if name != "folder":
        write_beneath(inside, "out", b"x", replace=True)
        assert (inside / "out").read_bytes() == b"x"
    assert secret.read_text() == SECRET


@OPENINGS
@pytest.mark.parametrize(
    ("path", "target"),
    [("../victim.txt", ""), ("/etc/passwd", ""), ("a/../../victim.txt", ""), ("link/victim.txt", "..")],
)
def test_no_way_leads_out_of_the_directory(tmp_path, inside, opening, path, target):
    victim(tmp_path)
    (inside / "a").mkdir()
    if target:
        (inside / "link").symlink_to(target)
    with pytest.raises(OSError, match="leads outside the directory"):
        opening(inside, path, os.O_RDONLY)


@OPENINGS
def test_links_that_stay_inside_are_followed(inside, opening):
    (inside / "deep/er").mkdir(parents=True)
    (inside / "file").write_text("x")
    (inside / "deep/er/link").symlink_to("../../deep/../file")
    (inside / "folder").symlink_to("deep/er")
    descriptor = opening(inside, "folder/link", os.O_RDONLY)
    assert os.read(descriptor, 9) == b"x"
    os.close(descriptor)
    with pytest.raises(OSError, match="symbolic links"):
        opening(inside, "folder/link", os.O_RDONLY, links=False)


@OPENINGS
def test_a_fifo_is_opened_without_waiting(inside, opening):
    os.mkfifo(inside / "fifo")
    os.close(opening(inside, "fifo", os.O_RDONLY))


@OPENINGS
def test_a_missing_file_differs_from_other_errors(inside, opening):
    with pytest.raises(FileNotFoundError):
        opening(inside, "none/of/it", os.O_RDONLY)
    assert not exists_beneath(inside, "none/of/it")


def test_the_directory_itself_may_be_no_link(tmp_path, inside):
    (tmp_path / "link").symlink_to(inside)
    (inside / "file").write_text("x")
    with pytest.raises(NotADirectoryError):
        read_beneath(tmp_path / "link", "file")


def test_folders_are_made_beneath_a_link_to_nowhere_else(tmp_path, inside):
    (tmp_path / "elsewhere").mkdir()
    (inside / "logs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="leads out"):
        make_folder_beneath(inside, "logs/deeper")
    with pytest.raises(OSError, match="leads out"):
        create_beneath(inside, "logs/file")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_workspace_full_of_traps_is_kept_without_them(tmp_path, inside):
    secret = victim(tmp_path)
    for name, plant in plants(secret).items():
        plant(inside / name.replace(" ", "-"))
    (inside / "swapped").symlink_to(tmp_path)
    (inside / "good.txt").write_text("x")
    before = [FixtureFile(name.replace(" ", "-"), b"x") for name in NAMES]
    began = time.monotonic()
    packed = archive_workspace(inside)
    changed = {each.path: each.change for each in changed_files(inside, before)}
    assert time.monotonic() - began < QUICK_SECONDS
    assert packed.left_out == ("sparse",)
    assert len(packed.content) < 1000
    assert changed.pop("good.txt") == "added"
    assert changed.pop("sparse") == "changed"
    assert set(changed.values()) == {"removed"}
    assert disk_usage(inside, enough=1 << 30) < 1 << 20


def test_a_folder_that_becomes_a_link_is_not_walked_into(tmp_path, inside):
    victim(tmp_path)
    for name in "ab":
        (inside / name).mkdir()
    walked = entries_beneath(inside)
    seen = [next(walked)[0], next(walked)[0]]
    for name in "ab":
        (inside / name).rmdir()
        (inside / name).symlink_to(tmp_path)
    assert [*seen, *(path for path, _ in walked)] == ["a", "b"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mode", [0o700, 0o000])
def test_folders_deeper_than_any_path_are_removed(tmp_path, mode):
    root = tmp_path / "deep"
    root.mkdir()
    here = os.open(root, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.fchmod(below, mode)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(root)
    assert not root.exists()


def test_removing_opens_up_nothing_that_a_link_leads_to(tmp_path, inside):
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    (inside / "link").symlink_to(closed)
    (inside / "shut").mkdir(mode=0o000)
    remove_tree(inside)
    assert not inside.exists()
    assert closed.stat().st_mode & 0o777 == 0o500


# Whole trials: the agent, or the setup before it, plants at every name that the worker opens afterwards.

SCRATCH = "$LLM_TOOL_TEST_RESULTS_DIR"
PLACES = {
    "transcript": f"{SCRATCH}/transcript.raw.txt",
    "events": f"{SCRATCH}/events.jsonl",
    "logs": f"{SCRATCH}/logs",
    "workspace": "notes.txt",
    "answer": "$EVENTS",
}
READS_TRANSCRIPT = {
    "type": "command_output_contains",
    "command": 'cat "$LLM_TOOL_TEST_TRANSCRIPT"',
    "substring": "the agent was here",
}


@pytest.fixture
def project() -> Project:
    return shell_project()


def carried(project: Project, prompt: str, **content: object) -> Trial:
    content = {"criteria": {"gates": [READS_TRANSCRIPT]}, **content}
    version = suite_of(project, attack={"prompt": prompt, **content})
    run = running(version, targets=["shell"])
    began = time.monotonic()
    run_here.run_here(run.launch)
    assert time.monotonic() - began < QUICK_SECONDS
    return run.trial_set.get()


@pytest.mark.sampled(2)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", SHELL)
def test_a_trial_that_plants_has_its_ordinary_result(tmp_path, project, how, place):
    secret = victim(tmp_path)
    trial = carried(project, f"{planting(how, PLACES[place], secret)}; echo the agent was here")
    assert trial.outcome == "pass", trial.error or trial.detail
    assert secret.read_text() == SECRET
    kept = [path_of(each.sha256).read_bytes() for each in trial.artifacts.all()]
    assert not any(SECRET.encode() in content for content in kept)


@pytest.mark.parametrize("how", NAMES)
def test_a_record_is_never_written_where_something_lies(tmp_path, how):
    secret = victim(tmp_path)
    with trial_folder(tmp_path, ()) as folder:
        plants(secret)[how](folder.record)
        with pytest.raises(ProviderError, match="The trial wrote to record, where only evalhub writes"):
            folder.write_record(b"the agent was here", None)
    assert secret.read_text() == SECRET


@pytest.mark.django_db(transaction=True)
def test_planted_fifos_do_not_hold_a_cancelled_lane(tmp_path, project):
    planted = "; ".join(planting("fifo", place, tmp_path) for place in PLACES.values())
    version = suite_of(project, attack={"prompt": f"{planted}; exec sleep 60"})
    run = running(version, targets=["shell"])
    began = time.monotonic()
    with carrying(run):
        until(lambda: run.trial_set.filter(state="running").exists())
        time.sleep(1)
    assert time.monotonic() - began < QUICK_SECONDS
    assert run.trial_set.get().state == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_scripts_read_the_record_and_cannot_change_it(project):
    gates = [
        READS_TRANSCRIPT,
        {
            "type": "command_succeeds",
            "command": '! sh -c "echo forged > $LLM_TOOL_TEST_TRANSCRIPT" 2> /dev/null',
        },
        {
            "type": "command_succeeds",
            "command": 'cd "$(dirname "$LLM_TOOL_TEST_EVENTS")" && ! touch more 2> /dev/null',
        },
        {**READS_TRANSCRIPT},
    ]
    assert carried(project, "echo the agent was here", criteria={"gates": gates}).outcome == "pass"


@pytest.mark.django_db(transaction=True)
def test_an_agent_does_not_see_the_record_of_its_trial(project):
    prompt = 'ls "$(dirname "$LLM_TOOL_TEST_TRANSCRIPT")" 2>&1 && echo seen; echo the agent was here'
    assert "seen" not in carried(project, prompt).answer


# fmt: off
AGENTS = {
    "codex": partial(agent, "codex", "codex"),
    "claude_code": partial(agent, "claude_code", "session", env={"FAKE_STREAM": "claude_code"}),
    "vscode": partial(agent, "vscode", "code", executable=None, vscode_cmd=str(Path(__file__).parents[2] / "files/agents/code")),
}
# fmt: on


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("name", ["fifo", "link", "loop", "folder"])
def test_agents_programs_write_to_nothing_that_setup_planted(tmp_path, kind, name):
    secret = victim(tmp_path)
    given = invocation(tmp_path)
    for place in ("logs", "prompt.md", "subagent", "codex-home", "opencode-data"):
        plants(secret)[name](given.scratch / place)
    began = time.monotonic()
    try:
        AGENTS[kind](Level.OFF).invoke(given)
    except ProviderError as error:
        assert error.kind == "setup"
        assert "Let the setup commands leave that name free" in str(error)
    assert time.monotonic() - began < QUICK_SECONDS
    assert secret.read_text() == SECRET


@pytest.mark.parametrize("folder", ["subagent", "subagent/messages"])
def test_requests_to_an_editor_stay_beside_the_workspace(tmp_path, folder):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    given = invocation(tmp_path)
    link = given.scratch / folder
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    with pytest.raises(ProviderError, match="leads outside the directory"):
        AGENTS["vscode"](Level.OFF).invoke(given)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", ["fifo", "link", "loop", "environment", "device", "folder", "socket"])
def test_a_planted_recording_is_no_recording(tmp_path, name):
    given = invocation(tmp_path)
    plants(victim(tmp_path))[name](given.workspace / "stream")
    replay = agent("replay", "", executable=None, path="stream")
    with pytest.raises(ProviderError, match="cannot be read") as caught:
        replay.invoke(given)
    assert caught.value.kind == "configuration"


@pytest.mark.parametrize("name", ["link", "loop", "fifo"])
def test_a_planted_home_is_reported_and_not_used(tmp_path, name):
    given = invocation(tmp_path)
    plants(victim(tmp_path))[name](given.scratch / "home")
    with pytest.raises(ProviderError, match="Earlier commands must not create that name"):
        agent("codex", "codex", Level.LANDLOCK).invoke(given)


def test_a_rename_elsewhere_refuses_no_path_with_dots(tmp_path):
    """The kernel answers EAGAIN to `..` while anything is renamed: without a further try, one open in a hundred fails."""
    (tmp_path / "root/folder").mkdir(parents=True)
    (tmp_path / "root/file").touch()
    (tmp_path / "here").touch()
    rename = "import os\nwhile True: os.rename('here', 'there'); os.rename('there', 'here')"
    with subprocess.Popen([sys.executable, "-c", rename], cwd=tmp_path) as renaming:
        try:
            until((tmp_path / "there").exists)
            for _ in range(40_000):
                os.close(open_beneath(tmp_path / "root", "folder/../file", os.O_RDONLY))
        finally:
            renaming.kill()
