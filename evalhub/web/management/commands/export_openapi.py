"""The OpenAPI document as a file, for programs and for the test that holds it in step."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from evalhub.web.commands import HelpfulCommand


class Command(HelpfulCommand):
    help = "Print the OpenAPI document of the REST interface."
    examples = ("",)

    def add_arguments(self, parser: ArgumentParser) -> None:
        # Taken because every command takes it; without it the document is JSON all the same.
        parser.add_argument("--json", action="store_true", help="print one JSON document, as without it")

    def handle(self, **options: Any) -> None:
        from evalhub.api import openapi_document

        self.stdout.write(json.dumps(openapi_document(), indent=1, sort_keys=True))
