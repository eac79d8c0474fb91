"""`doctor`: what of an installation works, and what to do about the rest."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from evalhub.web.commands import FAILED, HelpfulCommand, print_text

MARKS = {"ok": "✓", "missing": "–", "warning": "!", "problem": "✗"}


class Command(HelpfulCommand):
    help = (
        "Check database, clock, broker, workers, sandbox, agents, keys, disk and stored files, and say what to do. "
        "Exits with 1 if something is broken."
    )
    examples = ("", "--json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    def handle(self, **options: Any) -> None:
        # Imported here because it loads what workers need, and Django loads this module to list commands.
        from evalhub.doctor import State, run_checks

        findings = []
        for finding in run_checks():
            findings.append(finding)
            if not options["json"]:
                advice = f" {finding.advice}" if finding.advice else ""
                line = f"{MARKS[finding.state]} {finding.part:<9} {finding.sentence}{advice}"
                print_text(self.stdout, line)
        healthy = all(each.state is not State.PROBLEM for each in findings)
        if options["json"]:
            document = {"ok": healthy, "findings": [asdict(each) for each in findings]}
            print_text(self.stdout, json.dumps(document))
        if not healthy:
            sys.exit(FAILED)
