"""`--summary-file`: a run's verdict as Markdown, for job summaries and pull requests."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import LazySettings

from evalhub.teams.access import default_project
from runs.compare.comparison import compare_with_baseline
from runs.exchange.exports.console import verdict_lines
from runs.exchange.exports.document import run_json
from runs.exchange.exports.summary_markdown import comparison_summary, format_code, run_summary
from runs.models import CommandRecord, Run
from tests.builders import close, make_compared, make_run, make_suite, make_target, make_trial
from tests.commands.calling import call

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
KEYS = tuple(f"s{n}" for n in range(10))


def runs_of(before: str, after: str, *, trials: int = 5) -> tuple[Run, Run]:
    """Return a run and a later one compared with it, with these outcomes for every scenario."""
    version = make_suite(default_project(), KEYS, name="tools")
    base = make_compared(version, dict.fromkeys(KEYS, before), trials=trials)
    new = make_compared(version, dict.fromkeys(KEYS, after), trials=trials)
    assert new.baseline == base
    return base, new


def test_a_regression_leads_with_its_verdict_and_interval() -> None:
    version = make_suite(default_project(), KEYS, name="tools")
    base = make_compared(version, dict.fromkeys(KEYS, "pass"), trials=5)
    new = make_compared(version, {**dict.fromkeys(KEYS, "fail"), "s9": "pass"}, trials=5)
    text = run_summary(new)
    assert text.startswith("### Regressed: `tools` v1 on `local`")
    assert f"**Regressed** against run {base.pk}: Pass rate −90 points (95 % interval −" in text
    assert "9 of 10 comparable scenarios worse." in text
    (row,) = (line for line in text.splitlines() if line.startswith("| Pass rate"))
    cells = [cell.strip().replace("\xa0", " ") for cell in row.split("|")[2:5]]
    assert cells == ["100 %", "10 %", "−90 points"]
    assert "10 scenarios, 50 and 50 trials" in row


def test_it_lists_what_passes_less_often_with_reasons() -> None:
    _, new = runs_of("pass", "fail")
    text = run_summary(new)
    assert "- `s0`: 5 of 5 → 0 of 5 trials passed\n  - Fails now: `out.txt does not exist.`" in text


def test_it_shows_the_first_commands_that_differ() -> None:
    base, new = runs_of("pass", "fail")
    for run, second in ((base, "deploy --env test"), (new, "deploy --prod")):
        trial = run.trial_set.filter(scenario__key="s3").first()
        assert trial is not None
        for n, line in enumerate(("login", second, "logout")):
            CommandRecord.objects.create(trial=trial, n=n, line=line)
    section = run_summary(new).split("- `s3`")[1].split("\n- ")[0]
    assert "First different command (2), base: `deploy --env test`\n  - New: `deploy --prod`" in section
    assert "does not exist" not in section


def test_an_undecided_run_says_what_it_could_have_shown() -> None:
    _, new = runs_of("pass", "pass", trials=1)
    assert new.verdict in ("too_little", "no_evidence")
    assert "This comparison could only have shown a change of " in run_summary(new)


@pytest.mark.slow
def test_an_undecided_loss_of_the_smallest_effect_leads_with_it() -> None:
    version = make_suite(default_project(), KEYS, name="tools")
    make_compared(version, dict.fromkeys(KEYS, "pass"), trials=1)
    new = make_compared(version, {**dict.fromkeys(KEYS, "pass"), "s9": "fail"}, trials=1)
    assert new.verdict == "too_little"
    text, (line, *_) = run_summary(new), verdict_lines(run_json(new))
    assert text.startswith("### Worse by 10 points, undecided: `tools` v1")
    assert "**Worse by 10 points, undecided** against run" in text
    assert line.startswith("Worse by 10 points, undecided compared with run")
    new.project.smallest_effect = 0.11
    new.project.save()
    compare_with_baseline(new)
    assert run_summary(new).startswith("### Too little data: ")


def test_without_a_baseline_it_lists_what_fails() -> None:
    run = make_run(make_suite(default_project(), ["one", "two"], name="small"))
    make_trial(run, "one", outcome="fail")
    make_trial(run, "two")
    text = run_summary(close(run))
    assert "No baseline to compare with." in text
    assert "- `one`: 0 of 1 trial passed\n  - Fails now: `out.txt does not exist.`" in text
    assert "`two`" not in text


def test_it_holds_warnings_error_cost_and_counts() -> None:
    run = make_run(
        make_suite(default_project(), ["one"], name="small"),
        warnings=["The tool is older."],
        error="No such target.",
        cost_usd=1.25,
    )
    text = run_summary(run)
    assert "⚠ The run did not start: `No such target.`" in text
    assert "⚠ `The tool is older.`" in text
    assert f"0 of 0 trials passed · cost $1.25 · run {run.pk}" in text


def test_it_links_the_run_where_the_server_has_a_name(settings: LazySettings) -> None:
    settings.PUBLIC_URL = "https://evals.example"
    run = make_run(make_suite(default_project(), ["one"], name="small"))
    assert f"[run {run.pk}](https://evals.example/runs/{run.pk}/)" in run_summary(run)


def test_foreign_text_cannot_become_markup() -> None:
    base, new = runs_of("pass", "fail")
    bad = "![x](http://evil/x.png) <img src=x> @team | `a``b`\n\n# Heading token=abcdef123456"
    new.trial_set.update(scores=[{"layer": "gates", "name": "g", "passed": False, "message": bad}])
    text = comparison_summary(base, new)
    shown = "```![x](http://evil/x.png) <img src=x> @team | `a``b` # Heading token=[REDACTED]```"
    assert text.count(shown) == len(KEYS)
    assert text.count("@team") == len(KEYS)
    assert "\n# Heading" not in text


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("a b", "`a b`"),
        ("", "` `"),
        ("`", "`` ` ``"),
        ("a\u202eb\x1b[31m\r\nc", "`ab[31m c`"),
        ("x" * 300, "`" + "x" * 199 + "…`"),
    ],
)
def test_a_code_span_holds_any_text_on_one_line(text: str, span: str) -> None:
    assert format_code(text) == span


@pytest.mark.django_db(transaction=True)
def test_the_command_overwrites_a_file(tmp_path: Path) -> None:
    make_target(default_project(), name="one")
    make_suite(default_project(), ["one"], name="small")
    place = tmp_path / "new" / "summary.md"
    for _ in range(2):
        call("run_scenarios", "small", "--target", "one", "--now", "--summary-file", str(place))
    assert place.read_text().count("### ") == 1


def test_a_dash_appends_to_the_job_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, new = runs_of("pass", "fail")
    place = tmp_path / "summary"
    place.write_text("From an earlier step.")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place))
    for _ in range(2):
        call("compare_runs", str(base.pk), str(new.pk), "--summary-file", "-")
    assert place.read_text().startswith("From an earlier step.\n### Regressed: ")
    assert place.read_text().count("### Regressed: ") == 2


def test_a_dash_needs_a_job_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    make_target(default_project(), name="one")
    make_suite(default_project(), ["one"], name="small")
    ended = call("run_scenarios", "small", "--target", "one", "--now", "--summary-file", "-")
    assert ended.code == 2
    assert "$GITHUB_STEP_SUMMARY names, but it isn't set" in ended.err
    assert not Run.objects.exists()


def test_result_files_need_results(tmp_path: Path) -> None:
    make_target(default_project(), name="one")
    make_suite(default_project(), ["one"], name="small")
    ended = call("run_scenarios", "small", "--target", "one", "--summary-file", str(tmp_path / "x.md"))
    assert (ended.code, ended.err.strip()) == (2, "--summary-file needs finished runs. Add --now or --wait.")
