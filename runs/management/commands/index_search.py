"""`index_search`: make stored trials searchable."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalhub.lib.numbers import counted
from runs.results.search.search_index import index_missing
from scenarios.commands import EvalhubCommand, Result, add_project_argument, chosen_project


class Command(EvalhubCommand):
    help = "Index the trials that the search does not find yet: those of releases before it, and of imported data."
    examples = ("", "--project tools")

    def arguments(self, parser: ArgumentParser) -> None:
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project = chosen_project(options["project"]) if options["project"] else None
        done = index_missing(project)
        return Result(f"Indexed {counted(done, 'trial')}.", {"indexed": done})
