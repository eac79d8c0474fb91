"""`run_scenarios`: run suites from the command line."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from pydantic import ValidationError

from evalhub.lib.numbers import format_count
from evalhub.teams.management.commands.signin_link import port_in_use
from evalhub.teams.models import Project
from evaluators.statistics.looks import PASS_RATE_SHARE
from evaluators.statistics.power import RateTestLevel, can_reach
from runs.compare.guidance.lift_findings import describe_stopped_arms, lift_json, lifts_of_launch
from runs.compare.retests import describe_lost_together
from runs.engine import run_here
from runs.errors import NoJudge, RequestError
from runs.exchange.exports.console import MOST_TRIALS, print_digest, terminal_of
from runs.exchange.exports.document import run_digest, run_document
from runs.exchange.exports.exports import (
    VERDICT,
    has_regressed_as_printed,
    rule_for,
    why_no_baseline,
    why_not_measured,
)
from runs.exchange.exports.files import (
    DOCUMENT_FILES,
    RESULT_FILES,
    broken_scenarios,
    check_places,
    scenario_files,
    write_atomically,
    write_files,
    write_outputs,
    write_suite_result,
    write_summary,
    write_traces,
    write_transcripts,
)
from runs.exchange.exports.measure_table import plain_lift
from runs.exchange.exports.progress import ProgressDisplay
from runs.exchange.exports.result_formats import suite_run
from runs.exchange.exports.run_archive import run_archive
from runs.exchange.exports.summary_markdown import RELATED, run_summary, transcript_link
from runs.launch import inputs
from runs.launch.baseline_choice import chosen_baseline
from runs.launch.estimate import estimates_of, warn_over_budget
from runs.launch.further_trials import look_plan, retest_plan
from runs.launch.inputs import apply_config, given_sources
from runs.launch.lift import deciding_runs
from runs.launch.request import PlannedRun, Request, find_unjudged_trials, plan, request_runs
from runs.launch.run_arguments import add_run_arguments
from runs.launch.run_request import RunRequest, asked_fields
from runs.launch.selection import with_looks
from runs.models import Launch, Run
from runs.models.run import Trigger
from runs.results.run_list import MET
from runs.workers.worker_registry import any_judges, find_own_judge, judges_of_workers
from scenarios.annotations import shows_annotations
from scenarios.commands import (
    FAILED,
    NOT_MEASURED,
    PASSED,
    REGRESSED,
    EvalhubCommand,
    Refused,
    Result,
    acting_user,
    chosen_project,
)

TRANSCRIPTS = "transcripts"
"""The folder of failed trials' transcripts in that of results."""


class Command(EvalhubCommand):
    help = "Run scenario files or stored suites on targets, and print the results."
    examples = (
        "my-suite/ --targets targets.yaml --target my-agent --trials 3 --wait",
        "my-suite --guidance AGENTS.md --fail-on-regression --now",
        "my-skill/ --lift --target my-agent --now",
        "my-suite --dry-run",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        add_run_arguments(parser)

    def work(self, options: dict[str, Any]) -> Result:
        try:
            project = chosen_project(options["project"])
            if options["dry_run"]:
                return _dry_run(project, options)
            _refuse_without_results(options)
            check_places(options)
            request = _request(project, options)
            if options["fail_on_regression"] or options["fail_on_release_rule"]:
                self._warn(plan(project, request), options, with_looks(request.options).max_trials or 0)
            planned = plan(project, request)
            if warning := warn_over_budget(project, planned, request.options):
                self.stderr.write(warning)
            here = options["now"]
            workers = find_own_judge if here else judges_of_workers
            if (
                unjudged := find_unjudged_trials(project, planned, request.options, workers)
            ) and unjudged.warning:
                self.stderr.write(unjudged.warning)
            launch = request_runs(project, request, by=acting_user(), trigger=Trigger.CLI, wake=not here)
            for warnings in launch.runs.order_by("pk").values_list("warnings", flat=True):
                for warning in warnings:
                    self.stderr.write(warning)
            return self._execute(launch, options)
        except RequestError as error:
            raise Refused(str(error), id=error.id) from error

    def _warn(self, planned: tuple[PlannedRun, ...], options: Mapping[str, Any], most: int) -> None:
        """Say on stderr which of the planned runs are too small for a verdict or for their release rule.

        `most` are the most trials of each scenario of runs until a verdict, 0 for others.
        Raises `Refused` for a suite without the release rule that the exit code needs.
        """
        rule = options["regression_rule"]
        for each in planned:
            scenarios, suite = len(each.scenarios), each.run.suite
            if options["fail_on_release_rule"] and suite.release_k is None:
                raise Refused(
                    f"{suite.slug} has no release rule. Set one on the suite's page or run without --fail-on-release-rule.",
                    id="run/no-release-rule",
                )
            if options["fail_on_release_rule"] and each.release_problem:
                self.stderr.write(each.release_problem)
            if not options["fail_on_regression"]:
                continue
            trials = [max(each.trials, most)] * scenarios
            level = RateTestLevel(PASS_RATE_SHARE)
            if rule_for(suite.format, rule) == VERDICT and not can_reach(trials, trials, level):
                self.stderr.write(
                    f"{suite.slug}: {format_count(scenarios, 'scenario')} with {format_count(trials[0], 'trial')} each"
                    " can't show a regression, whatever the results are. Use more --trials or scenarios, or"
                    " --regression-rule pass-fail."
                )

    def _execute(self, launch: Launch, options: dict[str, Any]) -> Result:
        if not options["now"] and not options["wait"]:
            ids = list(launch.runs.order_by("pk").values_list("pk", flat=True))
            return Result("\n".join(f"run {pk} is queued." for pk in ids), {"launch": launch.pk, "runs": ids})
        code = 0
        with run_here.interruptible():
            try:
                self._follow(launch, options)
            except KeyboardInterrupt as interrupt:
                code = run_here.exit_code_of(interrupt)
                self._note_interruption(launch, options)
            result = self._report(launch, options)
        return replace(result, code=code) if code else result

    def _note_interruption(self, launch: Launch, options: Mapping[str, Any]) -> None:
        numbers = ", ".join(f"run {pk}" for pk in launch.runs.order_by("pk").values_list("pk", flat=True))
        if options["now"]:
            self.stderr.write(f"Interrupted: {numbers} cancelled. Finished trials are kept and reported.")
        else:
            self.stderr.write(f"Interrupted: workers go on with {numbers}. cancel_run ends a run.")

    def _report(self, launch: Launch, options: dict[str, Any]) -> Result:
        """Write the files and return what is printed."""
        runs = list(Run.objects.select_related(*RELATED).filter(launch=launch).order_by("pk"))
        deciding = deciding_runs(runs)
        # The arms that decide come first: they are the headline.
        runs.sort(key=lambda run: run not in deciding)
        whole = options["json"] or shows_annotations() or any(options[name] for name in DOCUMENT_FILES)
        documents = [run_document(run.pk, traces=options["include_trace"]) for run in runs] if whole else []
        files = scenario_files(runs, options["suites"]) if whole else {}
        write_files(documents, options, _without_lines(files))
        for run in runs if options["dump_traces"] else ():
            write_traces(Path(options["dump_traces"]), run)
        if options["archive_file"]:
            _write_archive(Path(options["archive_file"]), runs)
        links, together = _transcript_links(runs, options), describe_lost_together(runs)
        if options["summary_file"]:
            write_summary(
                options["summary_file"], [*together, *(run_summary(run, links.get(run.pk)) for run in runs)]
            )
        for document in documents[: len(deciding)] if shows_annotations() else ():
            for broken in broken_scenarios(document, files[document["run"]["id"]]):
                self._note(str(broken))
        digests = [run_digest(run.pk, most=MOST_TRIALS) for run in runs]
        text = "\n".join([*(print_digest(digest, terminal_of(self.stdout)) for digest in digests), *together])
        write_outputs(digests, len(deciding))
        code = self._code(deciding, digests, options)
        answer: dict[str, Any] = {"launch": launch.pk, "runs": documents}
        if options["lift"]:
            lifts = lifts_of_launch(launch.pk)
            text = "\n".join([text, *describe_stopped_arms(launch.pk), *map(plain_lift, lifts)])
            answer["lift"] = [lift_json(lift) for lift in lifts]
        return Result(text, answer, code)

    def _code(self, deciding: list[Run], digests: list[dict[str, Any]], options: dict[str, Any]) -> int:
        """Return the exit code by the runs that decide, the first of all; say on stderr why nothing was measured."""
        runs, others, digests = deciding, digests[len(deciding) :], digests[: len(deciding)]
        if options["fail_on_regression"] and _has_regressed(runs, digests, options["regression_rule"]):
            return REGRESSED
        # Without its skill, an agent may lack the tool, too.
        beside = others if options["fail_on_regression"] and not options["lift"] else []
        reasons = [
            *_not_measured(digests, options),
            *filter(None, (why_not_measured(each["run"]) for each in beside)),
        ]
        for reason in reasons:
            self.stderr.write(reason)
        return NOT_MEASURED if reasons else _exit_code(runs, digests, options)

    def _note(self, text: str) -> None:
        """Print a line on stderr that isn't an error."""
        self.stderr.write(text, style_func=str)

    def _follow(self, launch: Launch, options: dict[str, Any]) -> None:
        """Run the launch here or wait for workers, and show the progress on stderr."""
        ended = _writer(options["output_dir"])
        progress: AbstractContextManager[ProgressDisplay | None] = nullcontext()
        if not options["quiet"]:
            for run in launch.runs.select_related("suite_version__suite", "target").order_by("pk"):
                self._note(_address(run))
            terminal, verbose = self.stderr.isatty(), options["verbose"]
            progress = ProgressDisplay(launch, self._note, terminal=terminal, verbose=verbose)
        with progress as shown:
            polled = shown.update if shown else None
            if options["now"]:
                run_here.run_here(launch, ended, polled)
            else:
                limit = options["wait_limit"] or None
                run_here.wait_for(launch, ended, limit_seconds=limit, notify=self.stderr.write, polled=polled)


def _write_archive(path: Path, runs: list[Run]) -> None:
    """Write closed runs as an archive. Raises `RequestError`."""
    closed = [run.pk for run in runs if not run.is_open]
    if closed:
        write_atomically(path, run_archive(closed))


def _without_lines(files: Mapping[int, Mapping[str, tuple[str, int]]]) -> dict[int, dict[str, str]]:
    return {run: {key: file for key, (file, _) in own.items()} for run, own in files.items()}


def _transcript_links(runs: list[Run], options: Mapping[str, Any]) -> dict[int, dict[str, str]]:
    """Write transcripts of failed trials beside the results, and return them as Markdown, by run and scenario key."""
    if not options["output_dir"] or not options["summary_file"]:
        return {}
    folder = Path(options["output_dir"]) / TRANSCRIPTS
    return {
        run.pk: {
            key: transcript_link(path, options["summary_file"])
            for key, path in write_transcripts(folder, run).items()
        }
        for run in runs
    }


def _address(run: Run) -> str:
    """Return a line with a run and the address of its page."""
    base = f"http://127.0.0.1:{port_in_use()}" if settings.EMBEDDED else settings.PUBLIC_URL
    return f"run {run.pk}: {run.suite_version} on {run.target.name}: {base}/runs/{run.pk}/"


def _refuse_without_results(options: dict[str, Any]) -> None:
    """Refuse files of results where the command doesn't wait for any. Raises `Refused`."""
    unwritten = next((name for name in RESULT_FILES if options[name]), None)
    if unwritten and not options["now"] and not options["wait"]:
        raise Refused(f"--{unwritten.replace('_', '-')} needs finished runs. Add --now or --wait.")


def _writer(folder: str | None) -> run_here.Ended | None:
    """Return a function that writes a finished run's EvalSuiteResult; None without a folder."""

    if not folder:
        return None

    def write(run_id: int) -> None:
        related = ("suite", "suite_version", "target")
        write_suite_result(folder, suite_run(Run.objects.select_related(*related).get(pk=run_id)))

    return write


def _has_regressed(runs: list[Run], digests: list[dict[str, Any]], rule: str | None) -> bool:
    pairs = zip(runs, digests, strict=True)
    return any(has_regressed_as_printed(run, digest["run"], rule) for run, digest in pairs)


def _not_measured(digests: list[dict[str, Any]], options: dict[str, Any]) -> list[str]:
    """Return why a run says nothing that the options ask for, a sentence for each such run."""
    rule = options["regression_rule"]
    reasons = [
        (options["fail_on_regression"] and why_not_measured(digest["run"]))
        or (options["require_baseline"] and why_no_baseline(digest["run"], rule))
        or ""
        for digest in digests
    ]
    return [*filter(None, reasons)]


def _exit_code(runs: list[Run], digests: list[dict[str, Any]], options: dict[str, Any]) -> int:
    if options["fail_on_release_rule"]:
        # The rule decides, not single trials: it lets some of them fail.
        rules = [digest["run"]["release_rule"] for digest in digests]
        return PASSED if all(rule and rule["state"] == MET for rule in rules) else FAILED
    return run_here.exit_code(runs)


def _request(project: Project, options: dict[str, Any]) -> Request:
    by = acting_user()
    apply_config(project, options)
    if options["targets_file"]:
        inputs.import_targets_file(project, Path(options["targets_file"]), by=by)
    versions = inputs.suite_versions(project, options["suites"], by=by, strict=options["strict"])
    previous = inputs.read_previous(options["previous"])
    baseline, note = chosen_baseline(
        project, options["baseline"], versions, by=by, folder=options["output_dir"]
    )
    return _read_options({**options, "baseline": baseline}).resolve(
        versions,
        inputs.select_guidance(versions, options["guidance"], by=by),
        strict=options["strict"],
        shard=options["shard"],
        benchmarks=inputs.read_benchmarks(options["suites"], versions) if options["lift"] else {},
        previous_files=previous if isinstance(previous, tuple) else (),
        baseline_note=note,
        fail_on_regression=options["fail_on_regression"],
        **given_sources(options),
    )


def _read_options(options: dict[str, Any]) -> RunRequest:
    """Return the options that REST and the form have, too. Raises `Refused`."""
    fields = {each.name: each for each in asked_fields()}
    try:
        return RunRequest(**{name: options[name] for name in fields})
    except ValidationError as error:
        first = error.errors()[0]
        flag = fields[str(first["loc"][0])].flag
        raise Refused(f"{flag} is {first['input']}: {first['msg'].lower()}.") from error


@transaction.atomic
def _dry_run(project: Project, options: dict[str, Any]) -> Result:
    """Return what would run; reads files as a run does, and stores nothing."""
    request = _request(project, options)
    runs = plan(project, request)
    # A dry run shows what --now and the workers would do.
    unjudged = find_unjudged_trials(project, runs, request.options, any_judges)
    if unjudged and unjudged.refusal:
        raise NoJudge(unjudged.refusal)
    planned = _with_further_trials(_show_plan(runs), project, runs, request)
    transaction.set_rollback(True)
    if unjudged is None:
        return planned
    return Result(f"{planned.text}\n{unjudged.warning}", {**planned.document, "unjudged": unjudged.warning})


def _with_further_trials(
    result: Result, project: Project, planned: tuple[PlannedRun, ...], request: Request
) -> Result:
    """Return the result with the trials that looks and retests may add, and their cost."""
    estimates = [
        run
        for estimate in estimates_of(project, planned, judged=request.options.judge)
        for run in estimate.runs
    ]
    looks = look_plan(estimates, request)
    added = {"looks": looks, "retests": retest_plan(estimates, request, looks)}
    for name, each in added.items():
        if each is not None:
            result = Result(f"{result.text}\n{each.sentence}", {**result.document, name: each.to_json()})
    return result


def _show_plan(planned: tuple[PlannedRun, ...]) -> Result:
    rows = [
        {
            "suite": each.run.suite.slug,
            "suite_version": each.run.suite_version.number,
            "target": each.run.target.name,
            "model": each.run.model or None,
            "guidance": str(each.run.guidance) if each.run.guidance else None,
            "scenarios": [scenario.key for scenario in each.scenarios],
            "trials": each.trial_count,
            "release_problem": each.release_problem or None,
        }
        for each in planned
    ]
    lines = [
        f"{row['suite']} v{row['suite_version']} on {row['target']}"
        + (f", {row['model']}" if row["model"] else "")
        + (f", {row['guidance']}" if row["guidance"] else "")
        + f": {format_count(each.trial_count, 'trial')}"
        + (f"\n  {row['release_problem']}" if row["release_problem"] else "")
        for row, each in zip(rows, planned, strict=True)
    ]
    return Result("\n".join(lines), {"runs": rows})
