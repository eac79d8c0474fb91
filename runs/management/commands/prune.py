"""Retention: what is old enough goes, on request."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.utils import timezone

from evalhub.web.commands import number_of_days
from evalhub.web.numbers import file_size
from runs.warehouse.retention import Pruned, prune_files, prune_runs
from scenarios.commands import EvalhubCommand, Result, acting_user


class Command(EvalhubCommand):
    help = (
        "Remove transcripts and kept files of old runs, and files that no run names any more. "
        "Results stay: outcomes, scores, judgings, commands and every trend."
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than",
            type=number_of_days,
            metavar="DAYS",
            help="of runs from before so many days (default: of none)",
        )
        parser.add_argument("--dry-run", action="store_true", help="only say what would go")

    def work(self, options: dict[str, Any]) -> Result:
        days, dry_run = options["older_than"], options["dry_run"]
        before = timezone.now() - timedelta(days=days) if days is not None else None
        done = prune_runs(before, by=acting_user(), dry_run=dry_run) if before else Pruned()
        # What a dry run would have let go of runs is named by them still.
        done += prune_files(dry_run=dry_run, let_go=before if dry_run else None)
        would = "Would remove" if dry_run else "Removed"
        text = (
            f"{would} {done.transcripts} transcripts and {done.artifacts} artifacts of {done.runs} runs, "
            f"and {done.files} files of {file_size(done.bytes)} that no run names."
        )
        return Result(text, {**asdict(done), "dry_run": dry_run})
