"""`import_sessions`: import the sessions that people had with an agent."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from evalhub.lib.numbers import format_count
from runs.errors import RequestError
from runs.exchange.exports.sessions import session_lines, sessions_document
from runs.exchange.imports.import_sessions import counted_once, session_tool, sort_sessions, store_sessions
from runs.exchange.imports.session_files import read_paths
from scenarios.commands import (
    EvalhubCommand,
    Refused,
    Result,
    acting_user,
    add_project_argument,
    chosen_project,
)


class Command(EvalhubCommand):
    help = "Import people's sessions with Claude Code, Codex, opencode and other agents as a run."
    examples = (
        "~/.claude/projects --tool mytool --dry-run",
        "~/.codex/sessions session.json --tool mytool --keep-transcript",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="session file, or a folder of them")
        parser.add_argument("--tool", required=True, help="program whose commands are kept")
        parser.add_argument("--pattern", default="", help="regular expression that finds its commands")
        parser.add_argument(
            "--keep-transcript",
            action="store_true",
            help="keep whole transcripts, redacted (default: only the tool's commands and their errors)",
        )
        parser.add_argument("--dry-run", action="store_true", help="show what would be kept; store nothing")
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project = chosen_project(options["project"])
        try:
            tool = session_tool(options["tool"], options["pattern"])
            paths = [Path(path).expanduser() for path in options["paths"]]
            read = counted_once(read_paths(paths, tool, whole=options["keep_transcript"]), project, tool)
            if options["dry_run"]:
                sorting, run = sort_sessions(project, tool, read.sessions), None
            else:
                run, sorting = store_sessions(project, tool, read.sessions, read.problems, by=acting_user())
        except RequestError as error:
            raise Refused(str(error), id=error.id) from error
        if not sorting.to_store and not sorting.known and not read.copied:
            problems = "".join(f"\n{each}" for each in read.problems)
            without = (
                f" {format_count(read.without, 'session')} without {tool.binary}." if read.without else ""
            )
            if read.mentions:
                hint = "If they run it, find its calls with --pattern."
                without += f" In them, {format_count(read.mentions, 'command')} mentioned it. {hint}"
            raise Refused(f"No session with {tool.binary} found.{without}{problems}", id="sessions/none")
        document = sessions_document(sorting, read, run)
        return Result(
            "\n".join(session_lines(sorting, read, run, shows_commands=options["dry_run"])), document
        )
