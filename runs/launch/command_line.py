"""Builds the command line that starts the same runs as the page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from evalhub.teams.access import DEFAULT_PROJECT
from evaluators.model import Json
from runs.launch.request import Request
from scenarios.models import Guidance


def as_command(request: Request, guidance: Sequence[Guidance], document: str = "") -> str:
    """Return the `run_scenarios` line for a request of one suite, quoted for a POSIX shell.

    `document` is a guidance document's file, as FILE or PATH=FILE, whose version is not stored yet. `guidance` has all versions of the suite: the line must identify one of them. The suite is named, so a file of
    that name in the working directory takes precedence.
    """
    suite = request.suite_versions[0].suite
    return shlex.join(["manage.py", "run_scenarios", suite.slug, *_arguments(request, guidance, document)])


def _arguments(request: Request, guidance: Sequence[Guidance], document: str) -> Iterator[str]:
    slug = request.suite_versions[0].suite.project.slug
    yield from _option("--project", "" if slug == DEFAULT_PROJECT else slug)
    for name, values in (
        ("--target", request.targets),
        ("--model", request.models),
        ("--guidance", [_unambiguous(each, guidance) for each in request.guidance if each.pk]),
        ("--guidance", [document]),
        ("--tags", request.selection.tags),
        ("--tier", _known(request.selection.tier)),
        ("--only", request.selection.only),
        ("--trials", [str(request.options.trials)]),
        ("--max-trials", _known(request.options.max_trials)),
        ("--concurrency", _known(request.options.concurrency)),
        ("--timeout-seconds", _seconds(request.options.timeout_seconds)),
        ("--max-usd", _seconds(request.options.max_usd)),
        ("--baseline", [request.options.baseline]),
        ("--run-tag", request.tags),
        ("--priority", [request.priority.label] if request.priority else []),
        ("--judge-model", [request.options.judge_model]),
        ("--threshold", _seconds(request.options.threshold)),
        ("--tool-version", [request.tool_version]),
        ("--branch", [request.branch]),
        ("--commit", [request.commit]),
        # Their values are in the form, so the files have to be written first.
        ("--seed-manifest", _file("seed", request.options.seed)),
        ("--snapshot", _file("snapshot", request.options.snapshot)),
        ("--tool-registry", _file("registry", request.options.registry)),
        ("--tool-descriptions", ["descriptions.yaml"] if request.options.descriptions else []),
    ):
        for value in values:
            yield from _option(name, value)
    if not request.options.judge:
        yield "--no-judge"
    if request.options.until_decided:
        yield "--until-decided"
    if request.options.use_cache:
        yield "--use-cache"
    if request.options.experiment:
        yield "--experiment"


def _file(name: str, value: Json) -> list[str]:
    return [] if value is None else [f"{name}.json"]


def _known(number: int | None) -> list[str]:
    return [] if number is None else [str(number)]


def _seconds(limit: float | None) -> list[str]:
    return [] if limit is None else [str(limit).removesuffix(".0")]


def _option(name: str, value: str) -> list[str]:
    if not value:
        return []
    # A value that begins with a dash would be read as an option.
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _unambiguous(chosen: Guidance, among: Sequence[Guidance]) -> str:
    """Return a guidance version's number, or its hash if another is named like the number."""
    number = str(chosen.number)
    return chosen.sha256 if any(each.name == number for each in among) else number
