"""A project with some history, for pages to show."""

from __future__ import annotations

import json
from typing import Any

from django.utils import timezone

from evalhub.teams import audit
from evalhub.teams.models import ApiToken, Project
from evaluators.model import Event
from runs.compare.comparison import compare_with_baseline
from runs.models import (
    Artifact,
    Baseline,
    Channel,
    Delivery,
    ModelPrice,
    Notification,
    Run,
    Target,
    TargetCheck,
    Trial,
    Worker,
)
from runs.results.files.artifacts import keep_content
from scenarios.formats.parsed import FixtureFile
from scenarios.storing import store_fixture
from tests.builders import (
    close,
    interaction_scores,
    make_guidance,
    make_member,
    make_run,
    make_suite,
    make_target,
    make_trial,
    make_version,
    scores_of,
    used,
)
from tests.shell_events import shell
from tests.trial_parts import make_command, make_judging, make_transcript, make_workspace

KEYS = (
    "create-task",
    "export-json",
    "recover-after-interrupted-bulk-import-with-partial-duplicates",
    "list-open",
)
HOSTILE = "</script><script>alert(1)</script> \u202egpj.exe \x1b[31m"
LINT = {
    "file": "export.yaml",
    "line": 8,
    "where": "evaluation.gates",
    "what": "One gate decides alone.",
    "fix": "Add a second one.",
    "id": "lint/single-gate",
    "lint": True,
}


def fill(project: Project) -> dict[str, Any]:
    """Store six finished runs, one that runs and one that could not be prepared; return what pages need of them."""
    version = make_suite(project, KEYS, name="Taskmgr basics", lints=[LINT], tags=["export", "smoke"], tier=1)
    target = make_target(project, "claude-code · sonnet")
    guidance = [_guidance(version, name) for name in ("AGENTS.md v11", "AGENTS.md v12")]
    runs = [
        _finished(version, number, target=target, guidance=guidance[number > 1], tool_version=_tool(number))
        for number in range(1, 7)
    ]
    runs[-1].baseline = runs[2]
    runs[-1].warnings = ["The judge judge-1 is the model under test; models tend to favour themselves."]
    runs[-1].save()
    runs[-1].fingerprint = {**runs[-1].fingerprint, "staleness": {"stale": True}}
    runs[-1].save()
    _compared(runs[2], runs[-1])
    _checked_targets(project, target)
    ApiToken.issue(project, make_member(project, "author", "grace"), name="ci-main", role="runner")
    prices = {"input_per_million": 1.25, "output_per_million": 10.0}
    ModelPrice.objects.create(project=project, model="openai/gpt-5-mini", **prices)
    reworded = {
        key: {"prompt": f"Do {key}.\nThen stop. {HOSTILE}", "tier": n, "tags": ["smoke"]}
        for n, key in enumerate(KEYS)
    }
    newest = make_version(version.suite, **reworded)
    newest.lints = [LINT]
    newest.save()
    broken = "The target 'codex' cannot start: no executable 'codex' on PATH. Install it on the worker."
    failed = make_run(version, target=target, error=broken, outcome="error")
    _broken(runs[1])
    return {
        "version": version,
        "runs": runs,
        "running": _running(version, target),
        "unprepared": failed,
        "trial": failed_trial(runs[-1]),
        "errored": runs[1].trial_set.get(outcome="error"),
        "channel": _channel(project),
    }


def _guidance(version: Any, name: str) -> Any:
    """Return a version whose document says everything that Markdown can."""
    guidance = make_guidance(version.suite, name)
    text = f"# Use taskmgr {name}\n\n- export: `taskmgr export --format json`\n\n[more](https://example.org/) {HOSTILE}\n"
    guidance.files = [{"path": "AGENTS.md", "content": text + "\n|a|b|\n|-|-|\n|1|2|\n\n    code\n"}]
    guidance.laid_file, guidance.laid_path = "good.md", "AGENTS.md"
    guidance.save()
    return guidance


def _channel(project: Project) -> Channel:
    """Return a channel with a log of every state."""
    address = f"https://hooks-{'x' * 50}.example.org/token"
    channel = Channel.objects.create(
        project=project, name=f"CI bot {HOSTILE}", kind="webhook", address=address, events=["regression"]
    )
    for number, state in enumerate(("sent", "failed", "skipped", "queued", "sending")):
        sent = Notification.objects.create(project=project, event="test", key=f"log {number}")
        Delivery.objects.create(
            notification=sent,
            channel=channel,
            state=state,
            attempts=number,
            status=500,
            response=f"{HOSTILE} {'y' * 300}",
        )
    return channel


def _compared(baseline: Run, run: Run) -> None:
    Baseline.objects.create(suite=run.suite, target=run.target, run=baseline)
    compare_with_baseline(run)
    audit.append_event(
        run.project, None, "baseline.set", f"run {baseline.pk}", suite=run.suite.slug, branch=""
    )


def _checked_targets(project: Project, ready: Target) -> None:
    now, broken = timezone.now(), make_target(project, "gemini-flash", workers=8)
    TargetCheck.objects.create(target=ready, at=now, worker="eval-1", available=True, version="2.1.197")
    sentence = "The target 'gemini-flash' needs the variable GEMINI_API_KEY, and it is not set. Set it on the worker."
    TargetCheck.objects.create(target=broken, at=now, worker="eval-2", available=False, sentence=sentence)
    make_target(project, "proposed-by-an-author-with-quite-a-long-name", accepted=False)
    Worker.objects.create(name="eval-1", lanes=4, sandbox="bubblewrap", version="0.1.0")


def _tool(number: int) -> str:
    return "taskmgr 2.4.0" if number > 3 else "taskmgr 2.3.1"


def _finished(version: Any, number: int, **changes: Any) -> Run:
    fingerprint = {"suite_version": 7, "tool": _tool(number), "guidance": "a41f7d20", "judge": "judge-1"}
    run = make_run(version, tags=["nightly"], cost_usd=6.84, fingerprint=fingerprint, **changes)
    for place, key in enumerate(KEYS):
        for index in range(3):
            worse = number > 5 and place < 2
            outcome = "fail" if worse else "error" if (place, index, number) == (3, 2, 2) else "pass"
            detail = _used(number, first=(place, index) == (0, 0))
            trial = make_trial(
                *(run, key), outcome=outcome, index=index, cost_usd=0.12, **_measured(outcome, detail)
            )
            if outcome != "error":
                make_judging(trial)
    close(run)
    return run


def _used(number: int, *, first: bool) -> dict[str, Any]:
    """Return the detail of a trial that called some subcommands, one of them more in vain from run to run."""
    counts = [("export", 9, 2 + number), ("list", 12, 7 - number), ("create", 11, 1)]
    # So few calls in a run that their rates say little.
    seldom = [("undo", 3, 1)] if first else []
    attempts = {"tries": {"1": 1, "3": 2}, "errors": {f"unexpected argument '--all' {HOSTILE}": number}}
    return used(*(_called(*each) for each in (*counts, *seldom)), export=attempts)


def _measured(outcome: str, detail: dict[str, Any]) -> dict[str, Any]:
    """Return a trial's detail, and its scores, which agree with it; an error has neither."""
    if outcome == "error":
        return {}
    others = [score for score in scores_of(outcome) if score["layer"] != "interaction"]
    return {"detail": detail, "scores": [*interaction_scores(detail["interaction"]), *others]}


def _called(name: str, calls: int, errors: int) -> dict[str, Any]:
    """Return the counts of a subcommand each of whose failures is followed by a retry, or by another failure."""
    retries = min(errors, calls - errors)
    return {
        "name": name,
        "calls": calls,
        "errors": errors,
        "first_tries": calls - errors - retries,
        "helps": 1,
        "retries_after_failure": retries,
    }


def _running(version: Any, target: Any) -> Run:
    run = make_run(version, target=target, state="running")
    make_trial(run, KEYS[0], outcome="pass")
    make_trial(run, KEYS[1], outcome="fail")
    activity = "taskmgr import --resume " + "x" * 175
    make_trial(
        run,
        KEYS[2],
        outcome="",
        state="running",
        started=timezone.now(),
        worker="eval-1.example:4711",
        activity=activity,
        calls_so_far=14,
        activity_exit_code=1,
    )
    make_trial(run, KEYS[3], outcome="")
    return run


def _broken(run: Run) -> None:
    """Say of a run's error what went wrong, at length."""
    trial = run.trial_set.get(outcome="error")
    trial.error = f"The provider answered “overloaded” three times. {HOSTILE}\n" + "HTTP 529 " * 40
    trial.error_kind, trial.starts = "provider", 3
    trial.detail = {"traceback": "Traceback (most recent call last):\n" * 3, "notes": ["Waited 20 s."]}
    trial.save()


def _leave_files(trial: Trial) -> None:
    """Let the trial have changed one file of its fixture, added two, and removed one."""
    log = "".join(f"{n} list --tag infra\n" for n in range(40))
    start = (FixtureFile("history.log", log.encode()), FixtureFile("draft.txt", b"Not yet.\n"))
    version = trial.scenario_version
    version.fixture = store_fixture(trial.run.project, start)
    version.save()
    added = json.dumps([{"id": 7, "title": f"Rotate the token {HOSTILE}"}] * 3, indent=1)
    left = {
        "history.log": (log + "41 export\n").encode(),
        f"infra {HOSTILE}.json": (added + "z" * 50_000).encode(),
        "picture.png": bytes(range(256)) * 4,
    }
    make_workspace(trial, left)
    files: list[dict[str, Any]] = [
        {"path": path, "change": "added", "size": len(content)} for path, content in left.items()
    ]
    files[0] |= {"change": "changed", "added": 1, "removed": 0}
    files[1] |= {"added": 11, "removed": 0}
    files.append({"path": "draft.txt", "change": "removed", "size": None, "added": 0, "removed": 1})
    counts = {"added": 2, "changed": 1, "removed": 1, "left_out": []}
    trial.detail = {**trial.detail, "workspace": {**counts, "files": files}}


def failed_trial(run: Run) -> Any:
    """Return a failed trial of a run, with a transcript, commands and everything a trial can have."""
    trial = run.trial_set.filter(outcome="fail").first()
    assert trial is not None
    lines = (
        ("cat AGENTS.md", "# Working with taskmgr\n" * 70, 0),
        ("taskmgr export --output-format json", "error: unexpected argument '--output-format' found", 2),
        ("taskmgr export --help", "Usage: taskmgr export [OPTIONS]", 0),
        ("taskmgr export --format json --file infra.json", f"Exported 14 tasks to infra.json {HOSTILE}", 0),
        ("echo " + "x" * 20_000, "y" * 50_000, 0),
    )
    events = [Event("message", role="assistant", text="I'll export the tasks as JSON.")]
    for number, (line, output, code) in enumerate(lines):
        events += shell(line, output, code, number)
    make_transcript(trial, events, text=json.dumps({"raw": HOSTILE}) * 400)
    make_command(trial, 1, lines[1][0], subcommand="export", exit_code=2, failed=True, event=3)
    make_command(trial, 2, lines[2][0], subcommand="export", exit_code=0, help=True, event=5)
    make_command(trial, 3, lines[3][0], subcommand="export", exit_code=0, retry_of=1, event=7)
    evidence = ["The one error is about --output-format."]
    sentence = "The agent believes it knows the syntax; likely an example in the guidance is wrong."
    called = {"name": "export", "calls": 2, "errors": 1, "helps": 1, "retries_after_failure": 1}
    for name, value in _measured("fail", used(called)).items():
        setattr(trial, name, value)
    _leave_files(trial)
    trial.detail = {
        **trial.detail,
        "diagnosis": [{"pattern": "high_error_rate", "sentence": sentence, "evidence": evidence}],
    }
    trial.answer = f"I exported 14 tasks. {HOSTILE}"
    trial.save()
    kept = keep_content("transcript", b"raw bytes")
    Artifact.objects.create(
        trial=trial, name=kept.name, sha256=kept.sha256, size=kept.size, media_type=kept.media_type
    )
    return trial
