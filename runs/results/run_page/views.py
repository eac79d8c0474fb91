"""Views of one run: its page with its looks and retests, its progress and its MCP servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    QueryDict,
)
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from evalhub.lib.numbers import format_count
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.web.chips import rows_of_kind
from evalhub.web.csv_export import chosen_table
from evalhub.web.middleware import STOP_POLLING, page_or_fragment
from evalhub.web.paging import key_of
from evalhub.web.states import sign_of_state
from evaluators.statistics.comparability import Reasons
from evaluators.statistics.looks import LookDecision, StoredLook
from evaluators.statistics.measure_change import ChangeVerdict
from evaluators.statistics.retest import Retest, describe_reference, describe_retest
from evaluators.statistics.verdict_sentences import p_text
from runs.compare.comparison import find_incomparable
from runs.compare.differences import fingerprint_parts
from runs.compare.looks import looks_of
from runs.compare.lost_scenarios import stored_changes
from runs.compare.retests import retests_of
from runs.compare.shown_changes import (
    ShownReference,
    ShownVerdict,
    alert_title,
    shown_reference,
    shown_verdict,
)
from runs.engine.retrying import RetryKind, retryable_counts
from runs.exchange.exports.exports import EXPORTS
from runs.labels import waiting_message
from runs.models import Alert, Run, Trial
from runs.models.run import Arm, Trigger
from runs.models.run_options import RunOptions
from runs.models.usage import surface_hash, surfaces_of
from runs.results.digests import Digest, DigestedTrial, RunTrials, trials_of
from runs.results.find_run import find_shown_run
from runs.results.outcome_history import recent_runs
from runs.results.progress import counted_from, is_due, progress_key, progress_of
from runs.results.rates import rates_of
from runs.results.run_list import ReleaseResult, RunAnswer, answer_of_run, by_rule
from runs.results.run_page.first_screen import (
    against_baseline,
    find_earlier,
    first_screen,
    pins_of,
    shown_causes,
)
from runs.results.run_page.layers import layers_of
from runs.results.run_page.reassess import partial_rerun_links, rerun_query
from runs.results.run_page.scenarios import (
    FACETS,
    ScenarioRow,
    columns_of,
    count_facets,
    part_of,
    scenario_rows,
    scenario_table,
)
from runs.results.run_page.subcommands import (
    call_columns,
    count_subcommands,
    failing_calls,
    shown_findings,
    total_row,
)
from runs.results.validations import passing_without_agent
from runs.review.calibrations import uncalibrated_judges
from runs.workers.claims import holder_of, is_abandoned
from runs.workers.worker_registry import workers_online


@dataclass(frozen=True)
class ShownRetest:
    """One row of the table."""

    retest: Retest

    @property
    def sentence(self) -> str:
        said = describe_retest(self.retest)
        return said[0].upper() + said[1:]

    @property
    def look(self) -> str:
        return sign_of_state(self.retest.outcome or "")[1] or "muted"

    @property
    def note(self) -> str:
        """That there are few earlier trials, and why fewer ran than planned; empty if neither."""
        return " ".join(filter(None, (describe_reference(self.retest), self.retest.stopped)))


def shown_retests(run: Run) -> list[ShownRetest]:
    """Return what the run's page shows of scenarios that ran again. No query."""
    return [ShownRetest(each) for each in retests_of(run)]


LABELS = {
    LookDecision.GO_ON: "Undecided",
    LookDecision.DECIDED: "Decided",
    LookDecision.FUTILE: "Stopped: little hope of a verdict",
    LookDecision.LIMIT: "Stopped at the limit",
}
MOST_NAMED = 5
"""Scenarios that a row names."""


@dataclass(frozen=True)
class ShownLook:
    """One row of the table."""

    look: StoredLook

    @property
    def decision(self) -> str:
        return LABELS[self.look.decision]

    @property
    def note(self) -> str:
        """Which scenarios got trials next, or why none did."""
        keys = self.look.undecided
        if not keys:
            return self.look.reason
        if len(keys) == self.look.scenarios:
            return "More trials of every scenario"
        rest = len(keys) - MOST_NAMED
        named = ", ".join(keys[:MOST_NAMED]) + (f" and {format_count(rest, 'other')}" if rest > 0 else "")
        return f"More trials of {named}"

    @property
    def tests(self) -> list[tuple[str, str]]:
        """The p of the pass rate and of the scenario with the lowest, each with its level."""
        look = self.look
        return [(p_text(look.p), p_text(look.level)), (p_text(look.table_p), p_text(look.table_level))]


def shown_looks(run: Run) -> dict[str, Any]:
    """Return what the run's page shows of its looks; nothing for a run without a plan. No query."""
    options = RunOptions.model_validate(run.options)
    if not options.until_decided:
        return {}
    return {
        "looks": [ShownLook(each) for each in looks_of(run)],
        "most_trials": options.max_trials,
        "looked_with": _looked_with(run),
    }


def _looked_with(run: Run) -> int | None:
    """Return the run that shows the looks of another arm; None for the arm that keeps them. One query for these."""
    if run.arm not in (Arm.REFERENCE, Arm.PREVIOUS):
        return None
    beside = Run.objects.filter(reference=run if run.arm == Arm.REFERENCE else run.reference, arm=Arm.NEW)
    return beside.values_list("pk", flat=True).first()


MOST_SESSIONS = 100


@require_safe
@project_page()
def run_detail(request: ProjectRequest, pk: int) -> HttpResponseBase:
    """Show a run in three layers, or its progress."""
    run = find_shown_run(request, pk)
    subcommand = request.GET.get("failing", "")
    failing = {"failing": failing_calls(run.pk, subcommand)} if subcommand else {}
    target = request.htmx.target if request.htmx else None
    if target == "failing" and failing:
        return render(request, "results/run/_failing_calls.html", failing)
    recent = recent_runs(run.suite_id, target=run.target_id, up_to=run.pk)
    read = trials_of(run)
    left_out = find_incomparable(run.baseline, run) if run.baseline else {}
    rows = scenario_rows(read, recent, left_out, run.suite_version_id, retests_of(run))
    chosen = rows_of_kind(rows, request.GET.get("show", ""), FACETS)
    if table := chosen_table(request, {"scenarios": lambda: scenario_table(run, chosen)}):
        return table
    release = None if run.is_open else by_rule(run.suite, read.digest.outcomes)
    context = {"run": run, "facets": count_facets(rows), **_page_of_scenarios(request, rows), **failing}
    if target == "trials":
        return render(request, "results/run/_scenarios.html", context)
    used = count_subcommands(run, read)
    answer, verdict = answer_of_run(run, release), _verdict(run)
    line = shown_reference(run)
    earlier = find_earlier(run, line)
    context |= {
        **_progress(run, read),
        **_layers(run, read, verdict, earlier),
        "sessions": weakest_sessions(read.digest) if run.suite.has_sessions else (),
        "subcommands": used,
        "all_calls": total_row(used),
        "call_columns": call_columns(used),
        "diagnosis": shown_findings(run, read.digest),
        "thresholds": read.digest.thresholds,
        "may_review": request.access.may("review"),
        **_compare_with_line(run, read, rows, left_out, answer, release, verdict, line, earlier),
        "shared_error": _shared_error(run, read),
        "release": release,
        "retests": shown_retests(run),
        "answer": answer,
        "may_run": request.access.may("run"),
        "tampered": [each for each in read.digest.trials if each.pk in set(read.digest.tampered)],
        "fingerprint": fingerprint_parts(run),
        "pins": pins_of(run) if vars(run)["is_pinned"] else [],
        "exports": {
            reverse("run-download", args=[run.project.slug, run.pk, name]): export.title
            for name, export in EXPORTS.items()
        },
        "passing_without_agent": passing_without_agent(run) if vars(run)["has_no_agent_seals"] else [],
        "may_triage": request.access.may("triage"),
        "may_confirm": request.access.may("run"),
        **_alerts(run),
        "confirms": confirmed_run(run),
        **(_again(run, rows) if request.access.may("run") else {}),
    }
    return render(request, "results/run/run.html", context)


def _alerts(run: Run) -> dict[str, Any]:
    """Return the run's alerts with what each is called, and the one that can be confirmed. One query."""
    alerts = list(run.alerts.order_by("pk"))
    for alert in alerts:
        alert.run = run
    return {
        "alerts": [(alert, alert_title(alert)) for alert in alerts],
        "confirmable": next((alert for alert in alerts if alert.is_confirmable), None),
    }


def _compare_with_line(
    run: Run,
    read: RunTrials,
    rows: Sequence[ScenarioRow],
    left_out: Mapping[str, Reasons],
    answer: RunAnswer,
    release: ReleaseResult | None,
    verdict: ShownVerdict | None,
    line: ShownReference | None,
    earlier: Sequence[Run],
) -> dict[str, Any]:
    """Return the run's comparison with its line or baseline for the page; an open run has little of it."""
    shown: dict[str, Any] = {"causes": shown_causes(run), **shown_looks(run)}
    if run.is_open:
        return shown
    change = verdict.headline[0].change if verdict else None
    against = against_baseline(
        run, read, rows, left_out, (change.broke, change.mended) if change else ((), ())
    )
    is_apart = run.verdict == ChangeVerdict.NOT_COMPARABLE
    shown |= {
        "verdict": verdict,
        "reference": line,
        "against": against,
        "apart": rates_of(run.baseline, run) if run.baseline and is_apart else [],
    }
    if run.trials and not (run.error or run.suite.has_sessions):
        rule = release.sentence if release else ""
        shown["screen"] = first_screen(
            run, answer, read, rows, verdict=verdict, against=against, line=line, earlier=earlier, rule=rule
        )
    return shown


def _shared_error(run: Run, read: RunTrials) -> str:
    """Return the error that all trials share; empty if they differ, or if a warning names it already."""
    errors = {each.lost for each in read.digest.trials if each.is_finished}
    if run.is_open or run.errors < 2 or run.passed or run.failed or len(errors) != 1:
        return ""
    error = "".join(errors.pop()[:1])
    return "" if any(error in warning for warning in run.warnings) else error


def confirmed_run(run: Run) -> int | None:
    """Return the run whose regression a run confirms. One query for a confirmation, else none."""
    if run.trigger != Trigger.CONFIRM:
        return None
    return Alert.objects.filter(pk=run.launch.request.get("alert") or 0).values_list("run", flat=True).first()


def _verdict(run: Run) -> ShownVerdict | None:
    """Return the run's stored comparison; None if it is open, has no baseline or can't have a verdict."""
    if run.is_open or run.baseline_id is None or run.is_unusable:
        return None
    return shown_verdict(stored_changes(run.pk), dollars_a_trial=run.cost_of_trial)


def _again(run: Run, rows: list[ScenarioRow]) -> dict[str, Any]:
    """Return the rerun links; for parts of a run once it is finished."""
    outcomes = {} if run.is_open else {row.key: row.now for row in rows if row.went_wrong}
    return {
        "rerun_query": rerun_query(run),
        "offers": _offers(run),
        "partly": list(partial_rerun_links(run, outcomes)),
    }


def _offers(run: Run) -> dict[str, int]:
    """Return the trials that may run again by kind; where only judgings are missing, nothing has to run again."""
    counts = retryable_counts(run)
    if run.unjudged and run.unjudged >= run.errors:
        counts.pop(RetryKind.RETRY, None)
    return counts


def _page_of_scenarios(request: HttpRequest, rows: list[ScenarioRow]) -> dict[str, Any]:
    """Return the requested page of scenarios."""
    show, opened = request.GET.get("show", ""), request.GET.get("open", "")
    begin = key_of(request.GET.get("from", "")) or 0
    part = part_of(rows_of_kind(rows, show, FACETS), begin, opened)
    shown = {"rows": part.rows, "following": part.following, "columns": columns_of(rows)}
    return {**shown, "begin": begin, "show": show, "open": opened}


@require_safe
@project_page()
def run_progress(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show a run's progress; at its end stop htmx's polling and reload the page.

    Polling gets the layers and trials too if they changed, and else the running trials alone.
    """
    run = find_shown_run(request, pk)
    if run.is_open and request.htmx and "seen" in request.GET:
        return _live(request, run)
    context = {"run": run, **_progress(run)}
    if run.is_open:
        return page_or_fragment(request, "results/run/progress.html", "results/run/_progress.html", context)
    if not request.htmx:
        return redirect(run)
    response = render(request, "results/run/_progress.html", context, status=STOP_POLLING)
    response["HX-Refresh"] = "true"
    return response


def _live(request: ProjectRequest, run: Run) -> HttpResponse:
    """Return what changed since the counts that the page shows, so that all its parts agree."""
    progress = progress_of(run, limits=True)
    if not is_due(run, progress, request.GET["seen"]):
        context = {"run": run, "progress": progress, "swaps": True}
        response = render(request, "results/run/_running.html", context)
        response["HX-Reswap"] = "none"
        return response
    # The page's address has the opened scenario and the selected chip.
    request.GET = QueryDict(urlsplit(request.htmx.current_url or "").query)
    read, recent = trials_of(run), recent_runs(run.suite_id, target=run.target_id, up_to=run.pk)
    left_out = find_incomparable(run.baseline, run) if run.baseline else {}
    rows = scenario_rows(read, recent, left_out, run.suite_version_id, retests_of(run))
    context = {
        "run": run,
        "facets": count_facets(rows),
        **_page_of_scenarios(request, rows),
        **_progress(run, read),
    }
    return render(request, "results/run/_live.html", context | _layers(run, read, None))


def _layers(
    run: Run, read: RunTrials, verdict: ShownVerdict | None, earlier: Sequence[Run] = ()
) -> dict[str, Any]:
    """Return the panels, and the judges that decide without being calibrated."""
    layers = layers_of(run, read, verdict, earlier)
    return {"layers": layers, "uncalibrated": uncalibrated_judges(run) if layers.digest.judged else []}


def _progress(run: Run, read: RunTrials | None = None) -> dict[str, Any]:
    """Return a run's progress and, while it is open, the number of workers that have its target's labels.

    The counts are those of `read` if given.
    """
    labels = run.target.labels
    workers, problem = workers_online(labels) if run.is_open else (0, "")
    missing = waiting_message(labels) if labels and run.is_open and not workers else ""
    progress = progress_of(run, limits=True)
    if read is not None and run.is_open:
        progress = counted_from(progress, read.trials, read.digest.retests)
    return {
        "progress": progress,
        "seen": progress_key(run, progress),
        "holder": holder_of(run.launch),
        "abandoned": run.is_open and is_abandoned(run.launch),
        "workers": workers,
        "missing_labels": missing,
        "storage_problem": problem,
    }


@require_safe
def short_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Redirect a short URL to the run, for its project's members only."""
    run = (
        Run.objects.select_related("project")
        .filter(pk=pk, project__memberships__user=request.user.pk)
        .first()
    )
    if run is None:
        raise Http404
    return redirect(run)


@require_safe
def short_trial(request: HttpRequest, pk: int) -> HttpResponse:
    """Redirect a short URL to the trial, for its project's members only."""
    mine = Trial.objects.select_related("run__project").filter(
        run__project__memberships__user=request.user.pk
    )
    trial = mine.filter(pk=pk).first()
    if trial is None:
        raise Http404
    return redirect("trial-detail", trial.run.project.slug, trial.pk)


@require_safe
@project_page()
def run_tools(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show instructions and tools with their tokens."""
    run = find_shown_run(request, pk)
    (surfaces,) = surfaces_of(run.project_id, [surface_hash(run)])
    baseline = run.baseline
    context = {
        "run": run,
        "hash": surface_hash(run),
        "tokens": sum(each.tokens for each in surfaces),
        "surfaces": surfaces,
        "overridden": bool(run.options.get("descriptions")),
        "packages": sum((run.options.get("packages") or {}).values()),
        "differs": baseline is not None and surface_hash(baseline) not in ("", surface_hash(run)),
    }
    return render(request, "results/run/tools.html", context)


def weakest_sessions(digest: Digest) -> list[DigestedTrial]:
    """Return the sessions with the lowest first-try success first."""
    return sorted(digest.trials, key=lambda session: 1.0 if session.first_try is None else session.first_try)[
        :MOST_SESSIONS
    ]
