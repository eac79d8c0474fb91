"""What a page answers is seen before anything is scrolled."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, Page

from evalhub.teams.models import Membership, Project
from runs.compare.guidance.guidance_matrix import guidance_strip
from runs.models import FlagConfusion, Launch, Run, SubcommandMeasure
from scenarios.adopted_guidance import adopt_guidance
from tests.builders import (
    close,
    make_compared,
    make_guidance,
    make_project,
    make_run,
    make_suite,
    make_target,
    make_trial,
    make_trials,
)
from tests.shell_events import shell
from tests.trial_parts import make_command, make_transcript

SIZES = ((1280, 900), (390, 844))
KEYS = ("create", "export")
LONG = "a-name-of-forty-characters-" + "x" * 13


def fill(project: Project) -> Run:
    """Store three lines that are as before; return the last run of a fourth, in which eight scenarios broke."""
    for line in range(3):
        other = make_suite(project, KEYS, name=f"Suite {line}")
        for _ in range(3):
            make_compared(other, dict.fromkeys(KEYS, "pass"), trials=3)
    keys = [f"{LONG[:-2]}{n:02}" for n in range(20)]
    version = make_suite(project, keys, name=LONG)
    given = {"trials": 3, "target": make_target(project, LONG), "model": LONG}
    for _ in range(4):
        make_compared(version, dict.fromkeys(keys, "pass"), tool_version="parcel 2.3.1", **given)
    outcomes = {key: "fail" if n < 8 else "pass" for n, key in enumerate(keys)}
    return make_compared(version, outcomes, tool_version="parcel 2.4.0", **given)


def assert_seen(page: Page, *parts: Locator) -> None:
    """Assert that parts of a page lie wholly inside its window."""
    size = page.viewport_size
    assert size
    for part in parts:
        box = part.bounding_box()
        assert box, part
        assert box["y"] >= 0 and box["y"] + box["height"] <= size["height"], (part, box)
        assert box["x"] >= 0 and box["x"] + box["width"] <= size["width"], (part, box)


def check_home(page: Page, run: Run, *, wide: bool) -> None:
    card = page.get_by_role("article").first
    picture = card.get_by_role("img", name="Pass rate of the last").filter(visible=True)
    assert_seen(page, page.get_by_role("heading", level=1, name="lines is worse"), picture)
    assert (picture.bounding_box() or {})["height"] >= 120
    if wide:
        now = page.get_by_role("list", name="Now")
        broken = card.get_by_role("row", name=run.suite.name[:20]).first
        assert_seen(page, now, card, broken, card.get_by_role("link", name="See what broke"))
    else:
        assert_seen(page, page.get_by_role("link", name="New run…"), card.get_by_role("heading"))


def check_run(page: Page, run: Run, *, wide: bool) -> None:
    heading = page.get_by_role("heading", level=1)
    sentence = page.get_by_role("heading", name="8 of 20 scenarios pass less often")
    picture = page.get_by_role("img", name="earlier runs and of this one").filter(visible=True)
    assert "regressed" in heading.inner_text()
    assert_seen(page, heading, sentence, picture)
    assert (picture.bounding_box() or {})["height"] >= 120
    if wide:
        broken = page.get_by_role("list", name="What broke").get_by_role("listitem")
        assert broken.count() == 3
        assert_seen(page, *broken.all(), page.get_by_role("heading", name="Likely cause"))
    full = page.evaluate("document.documentElement.scrollHeight")
    assert full <= (1800 if wide else 2500)


def check_comparison(page: Page, run: Run, *, wide: bool) -> None:
    lead = page.get_by_role("region", name="Verdict").get_by_text("against run")
    rows = page.get_by_role("table", name="Changes in points").get_by_role("row")
    assert_seen(page, page.get_by_role("heading", level=1), lead)
    if wide:
        assert_seen(page, page.get_by_role("list", name="What differs"), *rows.all())
    else:
        assert_seen(page, rows.nth(1))


def check_trends(page: Page, run: Run, *, wide: bool) -> None:
    lead = page.get_by_text(f"of {run.suite.name} fell")
    chart = page.get_by_role("group", name="Pass rate, 5 runs")
    assert run.finished and f"with parcel 2.4.0 on {run.finished:%-d %b}" in lead.inner_text()
    assert_seen(page, *([lead, chart] if wide else [lead]))
    if not wide:
        box, size = chart.bounding_box(), page.viewport_size
        assert box and size and box["y"] + box["height"] <= size["height"]
        assert box["x"] + box["width"] * 2 / 3 >= 0 and box["x"] + box["width"] <= size["width"]


def check_regressions(page: Page, run: Run, *, wide: bool) -> None:
    card = page.get_by_role("article").first
    strips = card.get_by_role("list", name="What broke in run").get_by_role("img")
    assert strips.count() == 6
    assert_seen(page, *strips.all(), card.get_by_text("comparable scenarios worse").first)
    if wide:
        buttons = [card.get_by_role("button", name=name) for name in ("Acknowledge", "Not a regression")]
        assert_seen(page, *buttons, card.get_by_role("link", name="Confirm…"))


def test_what_a_page_answers_is_seen_at_once(
    page: Page, live_server: Any, as_admin: Page, project: Project
) -> None:
    run = fill(project)
    checks = {
        "": check_home,
        f"runs/{run.pk}/": check_run,
        f"compare/?runs={run.baseline_id},{run.pk}": check_comparison,
        "trends/": check_trends,
        "regressions/": check_regressions,
    }
    for path, check in checks.items():
        page.goto(f"{live_server.url}/p/{project.slug}/{path}")
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            check(page, run, wide=width == 1280)


def test_why_a_trial_failed_is_seen_at_once(
    page: Page, live_server: Any, as_admin: Page, project: Project
) -> None:
    trial = make_trial(make_run(make_suite(project, [LONG])), outcome="fail")
    commands = [("cat AGENTS.md", 0), ("parcel label 17 --to Oslo", 2), ("parcel label 17 Oslo", 0)]
    events = [each for n, (line, code) in enumerate(commands) for each in shell(line, "out", code, n)]
    make_transcript(trial, events)
    for n, (line, code) in enumerate(commands[1:]):
        make_command(
            trial,
            n,
            line,
            subcommand="label",
            exit_code=code,
            failed=bool(code),
            event=2 + 2 * n,
            retry_of=0 if n else None,
        )
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{live_server.url}/p/tools/trials/{trial.pk}/")
        heading = page.get_by_role("heading", level=1)
        why = page.get_by_role("region", name="Why it failed")
        assert "failed" in heading.inner_text()
        assert_seen(page, heading, why.get_by_text("out.txt does not exist"))
        assert_seen(page, *(why.get_by_text(text) for text in ("Expected", "a file", "Actual", "none")))
        if width == 1280:
            row = page.locator("#c2")
            assert_seen(page, row, row.get_by_role("img", name="failed").last)
            assert_seen(page, page.get_by_text("2 attempts at label, succeeded at attempt 2"))


@pytest.mark.slow
def test_the_subcommand_that_fails_most_is_seen_at_once(
    page: Page, live_server: Any, as_admin: Page, project: Project
) -> None:
    run = make_run(make_suite(project))
    for name, calls, errors in (("list", 40, 3), ("export", 20, 9), ("add", 5, 0)):
        SubcommandMeasure.objects.create(run=run, subcommand=name, calls=calls, errors=errors)
    FlagConfusion.objects.create(
        run=run, subcommand="export", kind="near_miss", typed="--fmt", meant="--format", calls=4, trials=2
    )
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{live_server.url}/p/tools/usage/")
        row = page.get_by_role("table", name="Calls and failures").locator("tbody tr").first
        text = " ".join(row.inner_text().split())
        assert text.startswith("export 20 ✕ 9") and "45" in text and "--fmt for --format 4×" in text
        assert_seen(page, row, row.get_by_role("img", name="20 calls, 9 failed"))


@pytest.mark.slow
def test_which_guidance_is_best_is_seen_at_once(page: Page, live_server: Any, as_admin: Page) -> None:
    project = make_project("written")
    Membership.objects.create(project=project, user=User.objects.get(username="ada"), role="admin")
    version = make_suite(project, [f"scenario-{n}" for n in range(5)], name="Ledger bookkeeping")
    versions = [make_guidance(version.suite, f"v{8 + n}, which has a longer name") for n in range(6)]
    adopt_guidance(versions[4], by=None)
    launch = Launch.objects.create(project=project, trigger="web")
    for guidance, passed in zip(versions, (1, 1, 5, 5, 1, 5), strict=True):
        outcomes = ["pass"] * passed + ["fail"] * (5 - passed)
        run = make_run(version, guidance=guidance, launch=launch, tool_version="3.0.0")
        make_trials(run, {f"scenario-{n}": outcomes for n in range(5)}, cost_usd=0.05)
        close(run)
    # The first visit computes and stores ten comparisons.
    guidance_strip(version.suite)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{live_server.url}/p/written/guidance/")
        heading = page.get_by_role("heading", level=1)
        assert "is the best guidance so far" in heading.inner_text()
        step = page.get_by_role("button", name="Adopt v")
        assert_seen(page, heading, page.get_by_text("pass, against 20"), step)
        if width == 1280:
            table = page.get_by_role("table", name="Versions")
            verdicts = table.get_by_role("row").first
            picture = table.get_by_role("img", name="Pass rate")
            assert verdicts.get_by_text("improved").count() == 2 and verdicts.get_by_text("regressed").count()
            assert_seen(page, verdicts, picture)
            assert (picture.bounding_box() or {})["height"] >= 100
