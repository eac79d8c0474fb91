"""Several `--guidance` in one launch: each later one is compared with the first, and the last one decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalhub.teams.access import default_project
from runs.models import Alert, Run
from tests.commands.calling import call
from tests.runs.carrying import shell_target

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

SCENARIO = (
    "name: {name}\ntemplate_folder: t\ntask: {{prompt: 'grep -q good AGENTS.md && touch done.txt'}}\n"
    "evaluation:\n  gates: [{{type: file_exists, path: done.txt}}]\n"
)


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a suite whose agent does its task with good advice only, in the working directory, beside bad advice."""
    shell_target(default_project(), guidance_file="AGENTS.md")
    folder = tmp_path / "suite"
    (folder / "templates" / "t").mkdir(parents=True)
    for number in range(5):
        (folder / f"c{number}.yaml").write_text(SCENARIO.format(name=f"c{number}"))
    (folder / "templates" / "t" / "AGENTS.md").write_text("This is good advice.\n")
    (tmp_path / "AGENTS.main.md").write_text("Bad idea.\n")
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "outputs"))
    monkeypatch.chdir(tmp_path)
    return folder


GOOD, BAD = "suite/templates/t/AGENTS.md", "AGENTS.main.md"


def launched(*guidance: str, more: tuple[str, ...] = ("--trials", "3")):
    arms = [word for each in guidance for word in ("--guidance", each)]
    given = ("run_scenarios", "suite", "--target", "shell", *arms, "--fail-on-regression", "--now")
    return call(*given, *more, "--summary-file", "summary.md")


@pytest.mark.parametrize(
    "more",
    [("--trials", "3"), pytest.param(("--until-decided",), marks=pytest.mark.slow)],
    ids=["once", "in looks"],
)
@pytest.mark.parametrize(
    ("arms", "code", "verdict", "rate"),
    [
        pytest.param((BAD, GOOD), 0, "improved", "1.0000", id="better"),
        pytest.param((GOOD, BAD), 3, "regressed", "0.0000", id="worse", marks=pytest.mark.slow),
    ],
)
def test_the_last_arm_decides_against_the_first(suite, arms, code, verdict, rate, more):
    ended = launched(*arms, more=(*more, "--json"))
    assert ended.code == code, ended.err
    old, new = Run.objects.order_by("pk")
    assert (old.baseline, old.verdict, new.baseline, new.verdict) == (None, "", old, verdict)
    assert Path("summary.md").read_text().startswith(f"### {verdict.capitalize()}: ")
    outputs = dict(line.split("=") for line in Path("outputs").read_text().splitlines())
    assert (outputs["verdict"], outputs["pass_rate"]) == (verdict, rate)
    assert [document["run"]["id"] for document in ended.document["runs"]] == [new.pk, old.pk]
    assert (old.is_experiment, new.is_experiment, Alert.objects.count()) == (True, True, 0)


@pytest.mark.slow
def test_of_three_arms_each_is_compared_with_the_first_by_target(suite, tmp_path):
    shell_target(default_project(), name="other", guidance_file="AGENTS.md")
    (tmp_path / "better.md").write_text("This is good advice, too.\n")
    ended = launched(GOOD, BAD, "better.md", more=("--target", "other"))
    assert ended.code == 0, ended.err
    runs = list(Run.objects.order_by("pk"))
    assert len(runs) == 6
    for name in ("shell", "other"):
        first, middle, last = (run for run in runs if run.target.name == name)
        assert (first.baseline, middle.baseline, last.baseline) == (None, first, first)
    text = Path("summary.md").read_text()
    assert "guidance `better.md over AGENTS.md` against `guidance 1`" in text.splitlines()[0]
    assert "The other versions of guidance in this launch are compared with this run." in text


@pytest.mark.slow
def test_arms_join_no_line(suite):
    launched(BAD, GOOD)
    assert call("run_scenarios", "suite", "--target", "shell", "--now").code == 0
    assert Run.objects.latest("pk").baseline is None


def test_an_old_arm_that_measured_nothing_is_said(suite):
    scenario = suite / "c0.yaml"
    for path in suite.glob("c[1-4].yaml"):
        path.unlink()
    prompt = "grep -q good AGENTS.md && touch done.txt"
    scenario.write_text(scenario.read_text().replace(prompt, f"{prompt} || kill -9 $$"))
    ended = launched(BAD, GOOD)
    old, new = Run.objects.order_by("pk")
    assert (new.outcome, new.baseline) == ("pass", None)
    assert (ended.code, ended.err.splitlines()[-1].startswith(f"Run {old.pk} has no verdict")) == (4, True)


def test_several_versions_with_a_baseline_are_refused(suite):
    ended = launched(BAD, GOOD, more=("--baseline", "last-pass"))
    assert (ended.code, Run.objects.count()) == (2, 0)
    assert "are compared with the first of them. Leave out the baseline" in ended.err
