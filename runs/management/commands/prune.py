"""`prune`: delete old transcripts and files."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from datetime import timedelta
from itertools import islice
from typing import Any

from django.utils import timezone

from evalhub.lib.numbers import format_count, format_file_size
from evalhub.web.commands import number_of_days
from runs.results.files.artifacts import store_error_reason, store_errors
from runs.results.files.retention import FILES, Pruned, prune_files, prune_runs, space_taken
from scenarios.commands import EvalhubCommand, Refused, Result, acting_user

MOST_TABLES = 12
"""How many tables the dry run lists with their size."""


class Command(EvalhubCommand):
    help = (
        "Delete transcripts and artifacts of old runs, and files that no run uses anymore. "
        "Results stay: outcomes, scores, judgings, commands and trends."
    )
    examples = (
        "--older-than 90 --dry-run",
        "--older-than 90",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than",
            type=number_of_days,
            metavar="DAYS",
            help="prune runs older than this many days (default: none)",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="print what would be deleted and what takes the space, delete nothing",
        )

    def work(self, options: dict[str, Any]) -> Result:
        days, dry_run = options["older_than"], options["dry_run"]
        before = timezone.now() - timedelta(days=days) if days is not None else None
        done = prune_runs(before, by=acting_user(), dry_run=dry_run) if before else Pruned()
        # In a dry run the old runs still name the files that a real one would delete.
        try:
            done += prune_files(dry_run=dry_run, let_go=before if dry_run else None)
        except store_errors() as error:
            raise Refused(
                f"The unused files could not be deleted: {store_error_reason(error)}. Check EVALHUB_STORE, and prune again.",
                id="prune/failed",
            ) from error
        verb = "Would delete" if dry_run else "Deleted"
        text = (
            f"{verb} {format_count(done.transcripts, 'transcript')} ({format_file_size(done.transcript_bytes)} in the database) and "
            f"{format_count(done.artifacts, 'artifact')} of {format_count(done.runs, 'run')}, "
            f"and {format_count(done.files, 'unused file')} ({format_file_size(done.bytes)})."
        )
        document = {**asdict(done), "dry_run": dry_run}
        if not dry_run:
            return Result(text, document)
        taken = space_taken()
        tables = islice(((name, size) for name, size in taken.items() if name != FILES), MOST_TABLES)
        largest = [
            f"  {format_file_size(size):>9}  {name}" for name, size in ((FILES, taken[FILES]), *tables)
        ]
        return Result("\n".join([text, "Space is taken by:", *largest]), {**document, "space": taken})
