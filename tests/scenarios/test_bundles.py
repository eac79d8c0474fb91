import json
import os
import shutil
from pathlib import Path

import pytest

from runs.management.commands.check_scenarios import check_paths
from scenarios.archives import MAX_FILE_BYTES
from scenarios.bundles import read_folder, read_path
from scenarios.formats import parse_files
from scenarios.formats.parsed import ScenarioFileError

SCENARIO = """\
name: a
template_folder: x
target: {binary: t}
task: Do it.
evaluation:
  gates: [{type: file_exists, path: f}]
  judge: {rubric: rubrics/r.yaml, pass_threshold: 0.5}
"""
RUBRIC = "criteria: [{id: a, weight: 1}]\n"


@pytest.fixture
def folder(tmp_path):
    """A suite on disk."""
    root = tmp_path / "tasks"
    for name, text in {
        "a.yaml": SCENARIO,
        "rubrics/r.yaml": RUBRIC,
        "templates/x/f": "1",
        "other.yaml": "a: [",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def id_of(path):
    with pytest.raises(ScenarioFileError) as caught:
        read_path(path)
    return caught.value.problems[0].id


def test_a_folder_is_read_with_its_name(folder):
    (folder / "templates/x/f").chmod(0o755)
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("x")
    bundle = read_path(folder)
    assert (bundle.name, sorted(bundle.files)) == (
        "tasks",
        ["a.yaml", "other.yaml", "rubrics/r.yaml", "templates/x/f"],
    )
    assert bundle.executables == {"templates/x/f"}


def test_a_single_file_brings_its_referenced_files(folder):
    bundle = read_path(folder / "a.yaml")
    assert (bundle.name, sorted(bundle.files)) == ("a", ["a.yaml", "rubrics/r.yaml", "templates/x/f"])


def test_a_link_inside_is_followed(folder):
    (folder / "CLAUDE.md").symlink_to("templates/x/f")
    (folder / "skills").symlink_to("templates")
    files = read_path(folder).files
    assert (files["CLAUDE.md"], files["skills/x/f"]) == (b"1", b"1")


@pytest.mark.parametrize("target", ["/etc/passwd", "/etc", "../.."])
def test_a_link_out_is_refused(folder, target):
    (folder / "templates/x/link").symlink_to(target)
    assert id_of(folder) == "bundle/link"


def test_a_link_in_a_circle_is_refused(folder):
    (folder / "templates/x/link").symlink_to("..")
    assert id_of(folder) == "bundle/link"


def test_a_file_alone_takes_nothing_from_outside(folder, tmp_path):
    (tmp_path / "secret.yaml").write_text(RUBRIC)
    scenario = folder / "a.yaml"
    scenario.write_text(SCENARIO.replace("rubrics/r.yaml", "../secret.yaml"))
    assert not any("secret" in path for path in read_path(scenario).files)
    (folder / "inside.yaml").symlink_to(tmp_path / "secret.yaml")
    scenario.write_text(SCENARIO.replace("rubrics/r.yaml", "inside.yaml"))
    assert "inside.yaml" not in read_path(scenario).files


def test_a_pipe_is_refused_without_waiting(folder):
    os.mkfifo(folder / "pipe")
    assert id_of(folder) == "bundle/not-regular"


def test_a_large_file_is_refused(folder):
    with (folder / "big.yaml").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert id_of(folder) == "bundle/large-file"
    assert id_of(folder / "big.yaml") == "bundle/large-file"


def test_a_missing_path_is_refused(tmp_path):
    assert id_of(tmp_path / "none") == "bundle/unreadable"


def test_an_empty_folder_is_refused(tmp_path):
    assert id_of(tmp_path) == "bundle/no-files"


def test_checking_reports_every_problem_of_every_path(folder, tmp_path):
    (folder / "rubrics/r.yaml").write_text("criteria: [{id: a, weight: 2}]\n")
    problems, _ = check_paths([folder / "a.yaml", folder, tmp_path / "none"])
    assert {problem.id for problem in problems} == {
        "format/rubric-weights",
        "format/not-yaml",
        "bundle/unreadable",
    }
    assert problems == sorted(problems)


def test_checking_finds_nothing_in_a_good_file(folder):
    assert check_paths([folder / "a.yaml"])[0] == []


def test_a_script_in_an_uploaded_folder_is_executable():
    files = [
        ("notes/tool", b"#!/bin/sh\necho hi\n"),
        ("notes/a.txt", b"# no script"),
        ("notes/b/run.py", b"#!/x"),
    ]
    bundle = read_folder(files)
    assert (bundle.name, bundle.executables) == ("notes", {"tool", "b/run.py"})


CASE = Path(__file__).parents[1] / "files/cases/55"


@pytest.fixture
def evals(tmp_path):
    """Return AgentV's own layout, in a folder of other things: evals/ beside graders/."""
    shutil.copytree(CASE, tmp_path / "notes")
    (tmp_path / "notes/README.md").write_text("Not named.")
    return tmp_path / "notes/evals"


@pytest.mark.parametrize("called", ["evals/dataset.eval.yaml", "evals"])
def test_a_command_reads_what_an_eval_file_names_above(evals, called):
    bundle = read_path(evals.parent / called)
    assert sorted(bundle.files) == ["evals/dataset.eval.yaml", "graders/clear.md"]
    (suite,) = parse_files(bundle.files, name=bundle.name)
    assert (suite.name, [each.key for each in suite.scenarios]) == ("notes", ["milk"])


def name_grader(evals, path):
    file = evals / "dataset.eval.yaml"
    file.write_text(file.read_text().replace("../graders/clear.md", path))
    return read_path(evals / "dataset.eval.yaml").files


def test_what_is_named_above_lies_in_the_repository(evals, tmp_path):
    (tmp_path / "clear.md").write_text("{{output}}")
    assert list(name_grader(evals, "../../clear.md")) == ["dataset.eval.yaml"]
    (tmp_path / ".git").mkdir()
    assert sorted(name_grader(evals, "../../clear.md")) == ["clear.md", "notes/evals/dataset.eval.yaml"]
    (evals / ".git").mkdir()
    assert list(name_grader(evals, "../../clear.md")) == ["dataset.eval.yaml"]


@pytest.mark.parametrize("link", ["clear.md", "graders"])
def test_no_link_is_followed_above(evals, tmp_path, link):
    graders = evals.parent / "graders"
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/clear.md").write_text("secret")
    shutil.rmtree(graders)
    if link == "graders":
        graders.symlink_to(tmp_path / "secrets")
    else:
        graders.mkdir()
        (graders / link).symlink_to(tmp_path / "secrets/clear.md")
    files = read_path(evals).files
    assert list(files) == ["dataset.eval.yaml"]
    with pytest.raises(ScenarioFileError, match="Upload the folder above"):
        parse_files(files, name="evals")


@pytest.mark.parametrize(
    "command", ["python3 ../scripts/check.py --fast", ["python3", "../scripts/check.py"]]
)
def test_scripts_above_are_read(evals, command):
    (evals.parent / "scripts").mkdir()
    (evals.parent / "scripts/check.py").write_text("print(1)")
    grader = {"type": "code-grader", "command": command}
    case = {"id": "a", "input": "Hi", "criteria": "Hi.", "assertions": [grader]}
    (evals / "dataset.eval.yaml").write_text(json.dumps({"name": "n", "tests": [case]}))
    bundle = read_path(evals)
    assert sorted(bundle.files) == ["evals/dataset.eval.yaml", "scripts/check.py"]
    (suite,) = parse_files(bundle.files, name=bundle.name)
    assert not suite.lints


def test_a_folder_above_is_read_without_its_links(evals, tmp_path):
    (tmp_path / "secret.yaml").write_text("- {id: b}")
    (evals.parent / "cases").mkdir()
    (evals.parent / "cases/a.yaml").write_text("- {id: a, input: Hi, criteria: Says hi.}")
    (evals.parent / "cases/b.yaml").symlink_to(tmp_path / "secret.yaml")
    (evals / "dataset.eval.yaml").write_text("name: n\ntests: ../cases/*.yaml\n")
    assert sorted(read_path(evals).files) == ["cases/a.yaml", "evals/dataset.eval.yaml"]
