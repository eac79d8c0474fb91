"""`set_seed_manifest`: store a project's seed values."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from evalhub.teams import audit
from runs.errors import RequestError
from runs.launch.inputs import read_json_file
from scenarios.commands import (
    EvalhubCommand,
    Refused,
    Result,
    acting_user,
    add_project_argument,
    chosen_project,
)


class Command(EvalhubCommand):
    help = "Store a project's seed manifest, for suites without their own. Without FILE, remove it."
    examples = (
        "seed.json",
        "--project tools",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", metavar="FILE", help="JSON with the values of {{seed:…}}")
        add_project_argument(parser)

    def work(self, options: dict[str, Any]) -> Result:
        project, file = chosen_project(options["project"]), options["file"]
        try:
            project.seed_manifest = read_json_file(Path(file), "The seed manifest") if file else None
        except RequestError as error:
            raise Refused(str(error), id=error.id) from error
        project.save(update_fields=["seed_manifest"])
        audit.append_event(project, acting_user(), "project.seed-manifest", file or "none")
        done = f"Stored {file} as" if file else "Removed"
        text = f"{done} the seed manifest of {project.name}."
        return Result(text, {"project": project.slug, "seed_manifest": project.seed_manifest})
