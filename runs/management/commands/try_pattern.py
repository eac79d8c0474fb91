"""`try_pattern`: see what a command pattern finds in a transcript."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evaluators.model import Command as FoundCommand
from evaluators.model import Transcript
from evaluators.patterns import PatternError
from evaluators.tool_use.interaction import result_of, total_of, try_pattern
from evaluators.tool_use.tool import Tool
from evaluators.transcripts.reading import decode_text
from runs.models import TranscriptRecord
from scenarios.commands import (
    EvalhubCommand,
    Refused,
    Result,
    add_project_argument,
    chosen_project,
    read_bytes,
)


class Command(EvalhubCommand):
    help = (
        "Print the commands that a pattern or a program's name finds in a transcript, with subcommand and exit code, "
        "as layer 1 counts them."
    )
    examples = (
        "--pattern '^git\\\\s+(?P<sub>\\\\S+)' --trial 41",
        "--binary git --file transcript.txt",
        "--binary git --file - --json",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        add_project_argument(parser)
        tool = parser.add_mutually_exclusive_group(required=True)
        tool.add_argument("--pattern", default="", help="command_pattern; the group `sub` is the subcommand")
        tool.add_argument("--binary", default="", help="the tool's program, as in target.binary")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--trial", type=int, metavar="TRIAL", help="number of a stored trial")
        source.add_argument("--file", metavar="FILE", help="text of a transcript; - reads standard input")

    def work(self, options: dict[str, Any]) -> Result:
        tool = Tool(binary=options["binary"], command_pattern=options["pattern"])
        try:
            trial = try_pattern(_transcript(options), tool)
        except PatternError as error:
            raise Refused(str(error), id="pattern/refused") from error
        rows = [_row(each) for each in trial.commands]
        lines = [f"{row['subcommand'] or '–':<16} {row['result']:<10} {row['line']}" for row in rows] or [
            "No command matches."
        ]
        return Result(
            "\n".join([*lines, total_of(trial)]),
            {"commands": rows, "source": trial.source},
        )


def _transcript(options: dict[str, Any]) -> Transcript:
    if options["file"]:
        name = "/dev/stdin" if options["file"] == "-" else options["file"]
        text = decode_text(read_bytes(name, "the transcript"), "replace")
        return Transcript(text=text, source="transcript")
    project = chosen_project(options["project"])
    records = TranscriptRecord.objects.filter(trial__run__project=project, trial=options["trial"])
    record = records.first()
    if record is None:
        raise Refused(f"There is no transcript of trial {options['trial']}.", id="trial/unknown")
    return record.unpack()


_SHOWN = ("line", "subcommand", "exit_code", "failed", "help", "retry_of")


def _row(command: FoundCommand) -> dict[str, Any]:
    return {
        **{name: getattr(command, name) for name in _SHOWN},
        "result": result_of(command),
    }
