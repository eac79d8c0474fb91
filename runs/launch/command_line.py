"""Build the command line that starts the same runs as the page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from evalhub.teams.access import DEFAULT_PROJECT
from runs.launch.request import Request
from runs.launch.run_request import RunRequest, asked_fields
from runs.models.run_options import AMOUNT, COMPARISON, JUDGE, LABELS, OUTPUT, SCENARIOS, TARGETS
from scenarios.models import Guidance

FILES = {
    "--seed-manifest": "seed",
    "--snapshot": "snapshot",
    "--tool-registry": "registry",
    "--tool-descriptions": "descriptions",
}
"""Options that name a file with the option's value."""
ORDER = (TARGETS, SCENARIOS, AMOUNT, JUDGE, COMPARISON, LABELS, OUTPUT)


def as_command(asked: RunRequest, request: Request, guidance: Sequence[Guidance], document: str = "") -> str:
    """Return the `run_scenarios` line for what was asked of one suite, quoted for a POSIX shell.

    `document` is a guidance document's file, as FILE or PATH=FILE, whose version is not stored yet. `guidance` has all versions of the suite: the line must identify one of them. The suite is named, so a file of
    that name in the working directory takes precedence.
    """
    suite = request.suite_versions[0].suite
    words = [*_other_words(request, guidance, document), *_asked_words(asked)]
    return shlex.join(["manage.py", "run_scenarios", suite.slug, *words])


def _other_words(request: Request, guidance: Sequence[Guidance], document: str) -> Iterator[str]:
    slug = request.suite_versions[0].suite.project.slug
    yield from _option("--project", "" if slug == DEFAULT_PROJECT else slug)
    # With --lift, the other arms follow from the skill.
    for version in request.guidance[1:2] if request.options.lift else request.guidance:
        yield from _option("--guidance", _unambiguous(version, guidance) if version.pk else "")
    yield from _option("--guidance", document)
    # Their values are in the form, so the files have to be written first.
    for flag, name in FILES.items():
        if getattr(request.options, name) is not None:
            yield from _option(flag, f"{name}.yaml" if name == "descriptions" else f"{name}.json")


def _asked_words(asked: RunRequest) -> Iterator[str]:
    """Yield the options whose values differ from the default."""
    for field in sorted(asked_fields(), key=lambda option: ORDER.index(option.asked.group)):
        value = getattr(asked, field.name)
        if value == field.default:
            continue
        if field.kind is bool:
            yield field.flag
            continue
        for entry in value if field.kind is list else [value]:
            yield from _option(
                field.flag, str(entry).removesuffix(".0") if field.kind is float else str(entry)
            )


def _option(name: str, value: str) -> list[str]:
    if not value:
        return []
    # A value that begins with a dash would be read as an option.
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _unambiguous(chosen: Guidance, among: Sequence[Guidance]) -> str:
    """Return a guidance version's number, or its hash if another is named like the number."""
    number = str(chosen.number)
    return chosen.sha256 if any(each.name == number for each in among) else number
