"""`import_results`: import other programs' results as runs."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from evalhub.teams.models import Project
from runs.errors import NotWritable, RequestError
from runs.exchange.exports.document import run_json
from runs.exchange.exports.exports import has_regressed, why_not_measured
from runs.exchange.exports.files import check_summary_file, write_summary
from runs.exchange.exports.results_preview import preview_document, preview_lines
from runs.exchange.exports.summary_markdown import RELATED, run_summary
from runs.exchange.imports.import_results import import_merged, import_results
from runs.exchange.imports.preview_results import preview_merged, preview_results
from runs.exchange.results_files.importers import READ, pack_folder
from runs.models import Run
from scenarios.commands import (
    NOT_MEASURED,
    PASSED,
    REGRESSED,
    EvalhubCommand,
    Refused,
    Result,
    acting_user,
    add_project_argument,
    add_summary_argument,
    chosen_project,
    read_bytes,
)


class Command(EvalhubCommand):
    help = (
        "Import other programs' results as runs: EvalSuiteResult files, AgentV's JSON lines, promptfoo's JSON, "
        "llm-tool-test's results.jsonl, run folders and results folders (also as zip), skill-creator's benchmark.json, "
        "grading.json and workspace folders, JUnit XML, surefire's folders and logs of Inspect; and runs of another evalhub (export_run --format evalhub), each once."
    )
    examples = (
        "results/*.json --dry-run",
        "results.jsonl --project tools",
        "llm-tool-test-results",
        "my-skill-workspace",
        "shard-*.zip --merge --fail-on-regression --summary-file -",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="file or folder of results")
        add_project_argument(parser)
        parser.add_argument("--dry-run", action="store_true", help="show what would be stored; store nothing")
        parser.add_argument(
            "--merge", action="store_true", help="make one run of the shards of a run (run_scenarios --shard)"
        )
        parser.add_argument(
            "--fail-on-regression",
            action="store_true",
            help="exit with 3 if a run regressed, with 4 if one measured nothing",
        )
        add_summary_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project = chosen_project(options["project"])
        try:
            if options["dry_run"]:
                return _preview(project, options)
            check_summary_file(options["summary_file"])
            runs = _import(project, options, acting_user())
            if options["summary_file"]:
                related = Run.objects.select_related(*RELATED).filter(pk__in=[run.pk for run in runs])
                write_summary(options["summary_file"], [run_summary(run) for run in related.order_by("pk")])
        except (RequestError, NotWritable) as error:
            raise Refused(str(error), id=error.id) from error
        lines = [
            f"run {run.pk}: {run.suite.slug} on {run.target.name}, {run.passed}/{run.trials} passed"
            for run in runs
        ]
        code = self._code([run_json(run) for run in runs]) if options["fail_on_regression"] else PASSED
        return Result("\n".join(lines), {"runs": [run.pk for run in runs]}, code)

    def _code(self, documents: list[dict[str, Any]]) -> int:
        """Return the exit code; say on stderr why nothing was measured."""
        if any(map(has_regressed, documents)):
            return REGRESSED
        reasons = [*filter(None, map(why_not_measured, documents))]
        for reason in reasons:
            self.stderr.write(reason)
        return NOT_MEASURED if reasons else PASSED


def _preview(project: Project, options: dict[str, Any]) -> Result:
    if options["merge"]:
        previews = [preview_merged(project, _files(options))]
    else:
        previews = [preview_results(project, content, file) for file, content in _files(options)]
    lines = [line for preview in previews for line in preview_lines(preview)]
    return Result(
        "\n".join(lines), {"runs": [], "previews": [preview_document(preview) for preview in previews]}
    )


def _files(options: dict[str, Any]) -> list[tuple[str, bytes]]:
    return [(Path(path).resolve().name, _content(path)) for path in options["paths"]]


def _import(project: Project, options: dict[str, Any], by: User | None) -> list[Run]:
    if options["merge"]:
        return list(import_merged(project, _files(options), by=by))
    runs: list[Run] = []
    for path in options["paths"]:
        runs += import_results(project, _content(path), Path(path).resolve().name, by=by)
    return runs


def _content(path: str) -> bytes:
    """Return a file's content, or a folder's results as an archive. Raises `Refused`."""
    if not Path(path).is_dir():
        return read_bytes(path, "The results")
    content = pack_folder(Path(path))
    if not content:
        raise Refused(
            f"{path}: no {', '.join(READ)} or TEST-*.xml in this folder. Name a results folder of llm-tool-test, AgentV or surefire, or a workspace of skill-creator.",
            id="command/unreadable",
        )
    return content
