"""`remove_sessions`: remove imported sessions that never called their tool."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalhub.lib.numbers import counted
from runs.exchange.imports.removing_sessions import BACKUPS, RunWithout, remove_from, runs_without_tool
from scenarios.commands import EvalhubCommand, Result, acting_user, add_project_argument, chosen_project


class Command(EvalhubCommand):
    help = (
        "List imported sessions that never called their tool, which earlier releases stored by mistake; "
        "with --remove, delete them and everything stored of them."
    )
    examples = ("", "--remove", "--project tools --remove")

    def arguments(self, parser: ArgumentParser) -> None:
        add_project_argument(parser)
        parser.add_argument("--remove", action="store_true", help="delete them (default: only list them)")

    def work(self, options: dict[str, Any]) -> Result:
        project = chosen_project(options["project"]) if options["project"] else None
        runs = runs_without_tool(project)
        document = {
            "removed": options["remove"],
            "runs": [each._asdict() for each in runs],
            "sessions": sum(each.sessions for each in runs),
        }
        if not runs:
            return Result("Every imported session called its tool.", document)
        lines = [_line(each) for each in runs]
        if options["remove"]:
            document["sessions"] = sum(remove_from(each.run, by=acting_user()) for each in runs)
        total = counted(document["sessions"], "session")
        lines.append(
            f"Removed {total}, also from search and usage. {BACKUPS}"
            if options["remove"]
            else f"{total} never called the tool. Remove with --remove. {BACKUPS}"
        )
        return Result("\n".join(lines), document)


def _line(row: RunWithout) -> str:
    return f"{row.project}: run {row.run}, {row.suite}: {counted(row.sessions, 'session')} without the tool"
