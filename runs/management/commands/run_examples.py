"""`run_examples`: run the examples and compare their outcomes with the expected ones."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from evalhub.teams.access import default_project, local_owner
from runs.compare.guidance.lift_findings import lifts_of_launch
from runs.exchange.examples import (
    EXAMPLES,
    expected_outcomes,
    find_unexpected,
    http_agent,
    run_example,
)
from runs.exchange.exports.console import MOST_TRIALS, print_digest, terminal_of
from runs.exchange.exports.document import run_digest, run_document
from scenarios.commands import FAILED, EvalhubCommand, Result


class Command(EvalhubCommand):
    help = "Run the example suites and compare their outcomes with scenarios/examples/expected.yaml."
    examples = ("--now",)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--now", action="store_true", help="run in this process, without workers")
        parser.add_argument("--again", action="store_true", help="rerun examples that already ran")

    def work(self, options: dict[str, Any]) -> Result:
        project, owner, expected = default_project(), local_owner(), expected_outcomes()
        with http_agent():
            runs = [
                run
                for example in EXAMPLES
                for run in run_example(example, project, by=owner, now=options["now"], again=options["again"])
            ]
        documents = [run_document(run.pk) for run in runs]
        differences = [line for document in documents for line in find_unexpected(document, expected)]
        digests = [run_digest(run.pk, most=MOST_TRIALS) for run in runs]
        text = [print_digest(digest, terminal_of(self.stdout)) for digest in digests]
        lifts = [
            lift for launch in sorted({run.launch_id for run in runs}) for lift in lifts_of_launch(launch)
        ]
        text += [each.sentence for each in lifts]
        text += differences or ["All examples had the expected outcomes."]
        document = {"runs": documents, "differences": differences}
        return Result("\n".join(text), document, FAILED if differences else 0)
