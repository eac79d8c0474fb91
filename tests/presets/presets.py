"""Each way in which runs start, carried out once; each returns what people read afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalhub.teams.access import default_project
from evalhub.teams.models import Project
from runs.engine.run_here import run_here
from runs.models import Alert, Launch, Run
from runs.models.run import OPEN
from scenarios.models import Upload
from tests.builders import make_guidance, make_suite
from tests.commands.calling import Called, call
from tests.presets.reading import Reader
from tests.runs.carrying import shell_target
from tests.runs.confirming import WANTED, answers
from tests.runs.yard import install, make_yard

EXAMPLES = Path(__file__).parents[2] / "scenarios/examples"
KEYS = ("add", "create", "export", "list", "remove")
Document = dict[str, Any]


def show_plain_run(folder: Path) -> Document:
    """Run an example with gates, a rubric and layer 1 on its scripted agent."""
    printed = _run(EXAMPLES / "stock", *_examples_target(), "--trials", "2")
    return _show(Reader(default_project()), printed)


def show_several_targets(folder: Path) -> Document:
    """Run a suite on a target that does its tasks, and on one that does nothing."""
    project = _project_with_shell()
    shell_target(project, name="idle", command_template="true {PROMPT}")
    printed = _run(make_yard(folder), "--target", "shell", "--target", "idle", "--trials", "2")
    reader = Reader(project)
    return {**_show(reader, printed), "compared": _compare(reader, 0, 1)}


def show_guidance_ab(folder: Path) -> Document:
    """Run two versions of guidance in one launch: the later one names an option that the tool lacks."""
    reader = Reader(_project_with_shell())
    printed = _run(install(make_yard(folder), "--distance"), *_SHELL, *_guidances(folder, "good", "poor"))
    return {**_show(reader, printed), "guidance": _compare_guidance(reader, *reader.runs)}


def show_guidances_across_launches(folder: Path) -> Document:
    """Run two versions of guidance in launches of their own."""
    reader = Reader(_project_with_shell())
    yard = install(make_yard(folder), "--distance")
    _run(yard, *_SHELL, *_guidances(folder, "poor"))
    printed = _run(yard, *_SHELL, *_guidances(folder, "good"))
    return {**_show(reader, printed), "guidance": _compare_guidance(reader, *reader.runs)}


def show_lift(folder: Path) -> Document:
    """Run a skill, no skill and its previous version until decided."""
    return _show_lift(folder)


def show_short_lift(folder: Path) -> Document:
    """Run one trial of each case with a skill and without it."""
    return _show_lift(folder, "--trials", "1", "--max-trials", "1", "--previous", "none")


def show_until_decided(folder: Path) -> Document:
    """Run a target that got worse, in looks, after a run that it is compared with."""
    project = default_project()
    slug = make_suite(project, KEYS[:4], name="Basics", **WANTED).suite.slug
    answers(project, "done", cost_usd=0.01)
    _run(slug, "--trials", "6")
    answers(project, "I can't.", cost_usd=0.01)
    return _show(Reader(project), _run(slug, "--until-decided", "--fail-on-regression"))


def show_undecided(folder: Path) -> Document:
    """Run an unchanged target, in looks, until there is little hope of a verdict."""
    project = default_project()
    slug = make_suite(project, KEYS[:4], name="Basics", **WANTED).suite.slug
    answers(project, "done")
    _run(slug, "--trials", "8")
    return _show(Reader(project), _run(slug, "--until-decided", "--max-trials", "8"))


def show_retest(folder: Path) -> Document:
    """Run a suite whose tool renamed an option since the run before: the scenario that breaks runs again."""
    reader = Reader(_project_with_shell())
    yard = make_yard(folder)
    _run(yard, *_SHELL)
    printed = _run(install(yard, "--distance"), *_SHELL, "--fail-on-regression")
    return {**_show(reader, printed), "alert": _show_alert(reader)}


def show_more_trials(folder: Path) -> Document:
    """Run more trials of two runs for their comparison."""
    reader, given = _compare_targets()
    plan = reader.read_page(f"{_compare_page(reader)}more/?runs={given['runs']}")
    _start(reader, f"{_compare_page(reader)}more/", {**given, "trials": "4", "planned": "16"})
    return {"plan": plan, "compared": _compare(reader, 0, 1), "runs": _show_runs(reader)}


def show_more_trials_until_decided(folder: Path) -> Document:
    """Run more trials of two runs in looks."""
    reader, given = _compare_targets()
    more = {"trials": "8", "until_decided": "yes", "planned": "8"}
    _start(reader, f"{_compare_page(reader)}more/", {**given, **more})
    return {"compared": _compare(reader, 0, 1), "runs": _show_runs(reader)}


def show_causes(folder: Path) -> Document:
    """Find the cause of a regression since which target and guidance changed."""
    reader = _get_worse(with_guidance=True)
    address = reader.runs[-1].get_absolute_url()
    before = reader.read_page(address)
    _start(reader, f"{address}separate/", {})
    return {"before": before, "page": reader.read_page(address), "runs": _show_runs(reader)}


def show_confirmation(folder: Path) -> Document:
    """Confirm an alert: its new and its old configuration run in turn."""
    reader = _get_worse()
    before = _show_alert(reader)
    alert = Alert.objects.get()
    address = f"/p/{reader.project.slug}/regressions/{alert.pk}/confirm/"
    plan = reader.read_page(address)
    _start(reader, address, {})
    return {"before": before, "plan": plan, "alert": _show_alert(reader), "runs": _show_runs(reader)}


PRESETS: dict[str, Callable[[Path], Document]] = {
    "plain-run": show_plain_run,
    "several-targets": show_several_targets,
    "guidance-ab": show_guidance_ab,
    "guidances-across-launches": show_guidances_across_launches,
    "lift": show_lift,
    "short-lift": show_short_lift,
    "until-decided": show_until_decided,
    "undecided": show_undecided,
    "retest": show_retest,
    "more-trials": show_more_trials,
    "more-trials-until-decided": show_more_trials_until_decided,
    "causes": show_causes,
    "confirmation": show_confirmation,
}
_SHELL = ("--target", "shell", "--trials", "3")


def _run(suite: Path | str, *words: str) -> Called:
    ended = call("run_scenarios", str(suite), *words, "--now", "--quiet")
    assert ended.code != 2, ended.err
    return ended


def _examples_target() -> tuple[str, ...]:
    return ("--targets", str(EXAMPLES / "targets.yaml"), "--target", "scripted-agent")


def _project_with_shell() -> Project:
    project = default_project()
    shell_target(project)
    return project


def _guidances(folder: Path, *names: str) -> list[str]:
    """Return the options for guidance whose command is right or wrong."""
    options = {"good": "--distance", "poor": "--miles"}
    words = []
    for name in names:
        path = folder / f"{name}.md"
        path.write_text(f"./yard return blue {options[name]} 12\n")
        words += ["--guidance", str(path)]
    return words


def _get_worse(*, with_guidance: bool = False) -> Reader:
    """Run a suite on a target before and after it got worse, with the same or with another guidance."""
    project = default_project()
    version = make_suite(project, KEYS, name="Basics", **WANTED)
    suite = version.suite
    for n, response in enumerate(("done", "I can't.")):
        answers(project, response)
        if with_guidance:
            guidance = make_guidance(suite, f"v{n + 1}")
            Upload.objects.create(suite=suite, suite_version=version, guidance=guidance)
        _run(suite.slug, "--trials", "2")
    return Reader(project)


def _compare_targets() -> tuple[Reader, Document]:
    """Run a suite on a good and on a poor target; return what a form sends for more trials of two scenarios."""
    project = default_project()
    slug = make_suite(project, KEYS, name="Basics", **WANTED).suite.slug
    answers(project, "done", name="good")
    answers(project, "I can't.", name="poor")
    _run(slug, "--target", "good", "--target", "poor", "--trials", "2")
    reader = Reader(project)
    numbers = ",".join(str(run.pk) for run in reader.runs)
    return reader, {"runs": numbers, "scenario": ["", *KEYS[:2]], "start": "1"}


def _start(reader: Reader, address: str, given: Document) -> None:
    """Press a button that queues runs, and carry these out in this process."""
    response = reader.client.post(address, given)
    assert response.status_code == 302, response.content
    for launch in Launch.objects.filter(runs__state__in=OPEN).distinct():
        run_here(launch)


def _show_runs(reader: Reader) -> list[Document]:
    return [reader.read_run(run) for run in reader.runs]


def _show(reader: Reader, printed: Called) -> Document:
    """Return what the last command printed, each run, and the newest one's page."""
    return {
        "exit code": printed.code,
        "printed": reader.read_lines(printed.out),
        "runs": _show_runs(reader),
        "page": reader.read_page(reader.runs[-1].get_absolute_url()),
    }


def _compare_page(reader: Reader) -> str:
    return f"/p/{reader.project.slug}/compare/"


def _compare(reader: Reader, *which: int) -> Document:
    numbers = ",".join(str(reader.runs[n].pk) for n in which)
    document = reader.get(f"/compare?runs={numbers}")
    page = reader.read_page(f"{_compare_page(reader)}?runs={numbers}")
    return {"scenarios": document["scenarios"], "comparisons": document["comparisons"], "page": page}


def _compare_guidance(reader: Reader, base: Run, new: Run) -> Document:
    """Return the comparison of two runs' guidance."""
    address = f"guidance/{base.guidance_id}/against/{new.guidance_id}"
    document = reader.get(f"/{address}")
    for side in ("before", "after"):
        del document[side]
    return {**document, "page": reader.read_page(f"/p/{reader.project.slug}/{address}/")}


def _show_alert(reader: Reader) -> Document:
    alert = Alert.objects.get()
    page = reader.read_page(f"/p/{reader.project.slug}/regressions/?state={alert.state}")
    return {**reader.get(f"/alerts/{alert.pk}"), "page": page}


def _show_lift(folder: Path, *words: str) -> Document:
    suite = folder / "stock-keeping"
    shutil.copytree(EXAMPLES / "stock-keeping", suite)
    if not words:
        older = folder / "older"
        older.mkdir()
        lines = (suite / "SKILL.md").read_text().splitlines(keepends=True)
        (older / "SKILL.md").write_text("".join(line for line in lines if "export items" not in line))
        words = ("--previous", str(older))
    printed = _run(suite, *_examples_target(), "--lift", *words)
    reader = Reader(default_project())
    return {**_show(reader, printed), "lift": _compare_guidance(reader, *reader.runs[:2])}
