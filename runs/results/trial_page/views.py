"""Views of one trial and its files; its commands, and two trials side by side, as CSV."""

from __future__ import annotations

from dataclasses import replace

from csp.constants import HEADER
from csp.utils import build_policy
from django.http import FileResponse, Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from evalhub.teams.access import ProjectRequest, project_page
from evalhub.web.csv_export import Cell, Table, chosen_table
from evalhub.web.middleware import error_page
from evalhub.web.paging import key_of
from evaluators.redaction import redact_patterns
from evaluators.transcripts.asciicast import RecordingStep, cast_lines, recording_steps
from runs.compare.shown_changes import measure_table
from runs.models import Artifact, CommandRecord, Trial
from runs.results.drafts import draft_scenarios
from runs.results.files.artifacts import StoredFileUnavailable, open_kept, open_stored
from runs.results.files.workspace_archive import UNREADABLE, kept_file
from runs.results.run_page.reassess import rerun_query
from runs.results.trial_page.citations import Citations
from runs.results.trial_page.side_by_side import DoneCommand, TwoTrials, two_trials
from runs.results.trial_page.trial_page import find_shown_trial, trial_page
from runs.results.trial_page.workspace_changes import ARTIFACT as WORKSPACE
from runs.results.trial_page.workspace_changes import workspace_changes

COLUMNS = (
    "n",
    "command",
    "subcommand",
    "exit_code",
    "failed",
    "help",
    "retry_of",
    "failure",
    "end",
    "at_least",
    "seconds",
)


def command_table(trial: Trial) -> Table:
    """Return the tool's commands in their order; `retry_of` is the number of the failed one. One query."""
    commands = CommandRecord.objects.filter(trial=trial).order_by("n")
    return Table(
        f"trial-{trial.pk}-commands", COLUMNS, commands.values_list("n", "line", *COLUMNS[2:]).iterator()
    )


def aligned_table(two: TwoTrials) -> Table:
    """Return both trials' calls as they are aligned; `same` is whether subcommand and flags are."""
    header = (
        *("n", "base_command", "base_exit_code", "base_failed"),
        *("new_command", "new_exit_code", "new_failed", "same"),
    )
    rows = (
        (number, *_call(pair.base), *_call(pair.new), not (pair.parts_ways or None in pair))
        for number, pair in enumerate(two.pairs, 1)
    )
    return Table(f"{_name(two)}-commands", header, rows)


def _call(done: DoneCommand | None) -> tuple[Cell, ...]:
    return (done.line, done.exit_code, done.failed) if done else (None, None, None)


def gate_table(two: TwoTrials) -> Table:
    """Return the gates of both trials."""
    header = ("layer", "gate", "base_passed", "base_message", "new_passed", "new_message")
    rows = (
        (
            *(pair.gate["layer"], pair.gate["name"]),
            *(
                value
                for side in (pair.base, pair.new)
                for value in ((side.get("passed"), side.get("message") or None) if side else (None, None))
            ),
        )
        for pair in two.gates
    )
    return Table(f"{_name(two)}-gates", header, rows)


def measured_table(two: TwoTrials) -> Table:
    """Return the measures of both trials, with the judge's criteria."""
    criteria = [replace(each, label=f"Judge: {each.label}") for each in two.criteria]
    return measure_table(f"{_name(two)}-measures", [*two.measures, *criteria], tested=False)


def _name(two: TwoTrials) -> str:
    return f"trials-{two.base.trial.pk}-{two.new.trial.pk}"


WASM = {"script-src": ["'wasm-unsafe-eval'"]}
"""The player's terminal is WebAssembly; no other page may compile any."""


def _replay_steps(request: ProjectRequest, pk: int) -> tuple[Trial, list[RecordingStep]]:
    trial = find_shown_trial(request.access.project, pk)
    record = getattr(trial, "transcript", None)
    if trial is None or record is None:
        raise Http404
    return trial, recording_steps(record.unpack())


@require_safe
@project_page()
def trial_replay(request: ProjectRequest, pk: int) -> HttpResponseBase:
    """Play a trial's calls, one after the other."""
    trial, steps = _replay_steps(request, pk)
    failed = next((place for place, step in enumerate(steps) if step.failed), None)
    response = render(
        request, "results/trial/replay.html", {"trial": trial, "steps": steps, "first_failure": failed}
    )
    response.headers[HEADER] = build_policy(update=WASM)
    return response


@require_safe
@project_page()
def trial_cast(request: ProjectRequest, pk: int) -> HttpResponse:
    """Send the recording as asciicast v2."""
    trial, steps = _replay_steps(request, pk)
    title = f"{trial.scenario.key}, trial {trial.pk}"
    began = int(trial.started.timestamp()) if trial.started else None
    response = HttpResponse("".join(cast_lines(steps, title, began)), content_type="application/x-asciicast")
    response["Content-Disposition"] = f'attachment; filename="trial-{trial.pk}.cast"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


PARTS = ("commands", "messages", "files", "raw")


def _trial(request: ProjectRequest, pk: int) -> Trial:
    trial = find_shown_trial(request.access.project, pk)
    if trial is None:
        raise Http404
    return trial


@require_safe
@project_page()
def trial_detail(request: ProjectRequest, pk: int) -> HttpResponseBase:
    """Show what the agent did, and why the trial passed or failed."""
    trial = _trial(request, pk)
    if table := chosen_table(request, {"commands": lambda: command_table(trial)}):
        return table
    requested = request.GET.get("part", "")
    part = requested if requested in PARTS else PARTS[0]
    start = key_of(request.GET.get("from", "")) or 0
    page = trial_page(trial, start)
    may_run = request.access.may("run")
    context = {
        "page": page,
        "part": part,
        "citations": Citations(page.timeline.every, start if part == PARTS[0] else None),
        "files": workspace_changes(page.trial, page.artifacts) if part == "files" else None,
        "start": start,
        "rerun_query": rerun_query(page.trial.run, [page.trial.scenario.key]) if may_run else "",
        "failing_stretch": any(each.failed for each in page.commands),
        "may_download": request.access.may("read unredacted"),
        "may_review": request.access.may("review"),
    }
    target = request.htmx.target if request.htmx else None
    fragments = {"transcript": "results/trial/_transcript.html", "more-steps": "results/trial/_steps.html"}
    return render(request, fragments.get(target or "", "results/trial/trial.html"), context)


@require_safe
@project_page("read unredacted")
def artifact(request: ProjectRequest, pk: int, name: str) -> HttpResponseBase:
    """Send a stored file unredacted as a download, which no browser shows as a page of this site."""
    stored = get_object_or_404(Artifact, trial=_trial(request, pk), name=name)
    try:
        file = open_kept(stored.sha256)
    except StoredFileUnavailable as error:
        return error_page(404, "This file cannot be downloaded", str(error), error.id)
    response = FileResponse(file, as_attachment=True, filename=f"trial-{pk}-{stored.name}")
    response["Content-Type"] = "application/octet-stream"
    return response


@require_safe
@project_page("read unredacted")
def workspace_file(request: ProjectRequest, pk: int, number: int) -> HttpResponse:
    """Send one file of the stored workspace unredacted as a download."""
    stored = get_object_or_404(Artifact, trial=_trial(request, pk), name=WORKSPACE)
    try:
        with open_stored(stored.sha256) as archive:
            file_and_content = kept_file(archive, number)
    except StoredFileUnavailable as error:
        return error_page(404, "This file cannot be downloaded", str(error), error.id)
    except UNREADABLE as error:
        raise Http404 from error
    if file_and_content is None:
        raise Http404
    file, content = file_and_content
    disposition = (
        content_disposition_header(
            True, "".join(each if each.isprintable() else "_" for each in file.path.rpartition("/")[2])
        )
        or "attachment"
    )
    headers = {"Content-Disposition": disposition}
    return HttpResponse(content, content_type="application/octet-stream", headers=headers)


@require_safe
@project_page()
def transcript_text(request: ProjectRequest, pk: int) -> HttpResponse:
    """Send the whole raw transcript as text; redacted unless the user may read it unredacted."""
    page = trial_page(_trial(request, pk))
    if page.transcript is None:
        raise Http404
    text = page.transcript.text
    if not request.access.may("read unredacted"):
        text = redact_patterns(text)
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="trial-{pk}-transcript.txt"'
    return response


@require_safe
@project_page()
def trial_draft(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show a draft of a scenario from a failing stretch of a trial, or send it as a file."""
    trial = _trial(request, pk)
    drafts = draft_scenarios(trial)
    if not drafts:
        raise Http404
    chosen = min((key_of(request.GET.get("stretch", "")) or 1), len(drafts)) - 1
    draft = drafts[chosen]
    if "download" in request.GET:
        response = HttpResponse(draft.text, content_type="application/yaml; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{draft.name}.yaml"'
        return response
    context = {"trial": trial, "draft": draft, "drafts": drafts, "chosen": chosen + 1}
    context["may_upload"] = request.access.may("upload")
    return render(request, "results/trial/draft.html", context)


@require_safe
@project_page()
def trial_against(request: ProjectRequest, pk: int, base: int) -> HttpResponseBase:
    """Compare a trial with any other, such as the baseline's."""
    compared = two_trials(request.access.project, base, pk)
    if compared is None:
        raise Http404
    tables = {
        "commands": lambda: aligned_table(compared),
        "gates": lambda: gate_table(compared),
        "measures": lambda: measured_table(compared),
    }
    if table := chosen_table(request, tables):
        return table
    return render(request, "results/trial/side_by_side.html", {"compared": compared})


@require_safe
@project_page()
def trial_against_any(request: ProjectRequest, pk: int) -> HttpResponseBase:
    """Lead to the comparison of a trial with the one whose number is given."""
    trial, number = _trial(request, pk), request.GET.get("base", "").strip()
    base = find_shown_trial(request.access.project, key_of(number) or 0)
    if base is None or base == trial:
        reason = "That is the same trial." if base else f"There is no trial “{number[:20]}” in this project."
        sentence = f"{reason} Enter another trial's number, as on its page."
        return error_page(404, "These trials cannot be compared", sentence, "trial/unknown")
    return redirect("trial-against", request.access.project.slug, pk, base.pk)
