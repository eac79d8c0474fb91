"""Suites as a list: the newest version and run of each, narrowed by text, format and tag."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, OuterRef, Q, Subquery

from evalhub.teams.models import Project
from evalhub.web.states import FORMATS
from runs.models import Run
from runs.warehouse.address_filters import AddressFilters
from runs.warehouse.no_match import no_match
from runs.warehouse.run_list import RunRow, rows
from runs.warehouse.run_rows import listed_runs
from scenarios.models import Suite, SuiteEntry, SuiteVersion

LAYERS = {
    "interaction": "tool",
    "gates": "gates",
    "assertions": "expect",
    "evaluators": "evaluators",
    "judge": "judge",
}
"""What of a scenario's criteria makes a layer look at its trials."""


@dataclass(frozen=True)
class SuiteFilters(AddressFilters):
    """What the address asks for; an empty text is no condition."""

    q: str = ""
    """Part of a suite's name, of a scenario's key, or of a tag."""
    format: str = ""
    tag: str = ""

    @property
    def in_force(self) -> list[tuple[str, str]]:
        """Name and value of every condition, as people call them."""
        named = (("text", self.q), ("format", FORMATS.get(self.format, self.format)), ("tag", self.tag))
        return [(name, value) for name, value in named if value]


@dataclass(frozen=True)
class SuiteRow:
    """A suite in the list."""

    suite: Suite
    version: SuiteVersion | None
    scenarios: int
    layers: tuple[str, ...]
    """Those that look at trials of any of the version's scenarios."""
    latest: RunRow | None

    @property
    def format(self) -> str:
        """The format's name for people."""
        return FORMATS.get(self.suite.format, self.suite.format)


@dataclass(frozen=True)
class SuiteList:
    """The suites that the filters leave, and what there is to choose from among all."""

    rows: list[SuiteRow]
    total: int
    formats: list[tuple[str, str]]
    tags: list[str]

    def no_match(self, filters: SuiteFilters) -> str:
        """Return the sentence of a list that these filters have emptied."""
        return no_match("suite", [(name, value, None) for name, value in filters.in_force])


def suite_list(project: Project, filters: SuiteFilters) -> SuiteList:
    """Return a project's suites with their newest version and run. Six queries, one more for a text."""
    newest_version = SuiteVersion.objects.filter(suite=OuterRef("pk")).order_by("-number").values("pk")[:1]
    newest_run = Run.objects.filter(suite=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    found = Suite.objects.filter(project=project)
    suites = list[Suite](found.annotate(newest=Subquery(newest_version), last_run=Subquery(newest_run)))
    newest = _known(suites, "newest")
    tags = _tags(newest)
    with_text = _with_text(suites, newest, tags, filters.q)
    chosen = [suite for suite in suites if suite.pk in with_text and _fits(suite, tags[suite.pk], filters)]
    formats = sorted({(suite.format, FORMATS.get(suite.format, suite.format)) for suite in suites})
    known = sorted({tag for each in tags.values() for tag in each})
    return SuiteList(_rows(chosen), len(suites), formats, known)


def _known(suites: Iterable[Suite], name: str) -> list[int]:
    """Return what the query has found besides, where it has found something."""
    return [key for suite in suites if (key := vars(suite)[name]) is not None]


def _tags(versions: list[int]) -> defaultdict[int, Counter[str]]:
    """Return the tags of each suite by its key, as they are in these versions. One query."""
    rows = SuiteEntry.objects.filter(suite_version__in=versions).order_by()
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for suite, tags in rows.values_list("suite_version__suite", "scenario_version__content__tags").distinct():
        found[suite].update(str(tag) for tag in tags or ())
    return found


def _with_text(
    suites: list[Suite], versions: list[int], tags: defaultdict[int, Counter[str]], text: str
) -> set[int]:
    """Return the keys of the suites that have the text in their name, a tag or a scenario's key."""
    if not text:
        return {suite.pk for suite in suites}
    entries = SuiteEntry.objects.filter(
        suite_version__in=versions, scenario_version__scenario__key__icontains=text
    )
    found = set(entries.order_by().values_list("suite_version__suite", flat=True).distinct())
    wanted = text.casefold()
    return found | {
        suite.pk
        for suite in suites
        if any(wanted in each.casefold() for each in (suite.name, suite.slug, *tags[suite.pk]))
    }


def _fits(suite: Suite, tags: Counter[str], filters: SuiteFilters) -> bool:
    return (not filters.format or suite.format == filters.format) and (not filters.tag or filters.tag in tags)


def _rows(suites: list[Suite]) -> list[SuiteRow]:
    versions = (
        SuiteVersion.objects.select_related("created_by")
        .defer("targets_text", "config", "lints")
        .annotate(size=Count("entries"), **{f"with_{layer}": _with(key) for layer, key in LAYERS.items()})
    )
    newest = {each.pk: each for each in versions.filter(pk__in=_known(suites, "newest"))}
    latest = {row.run.id: row for row in rows(listed_runs(_known(suites, "last_run")))}
    found = [(suite, vars(suite)) for suite in suites]
    return [_row(suite, newest.get(had["newest"]), latest.get(had["last_run"])) for suite, had in found]


def _with(key: str) -> Count:
    """Count a version's scenarios whose criteria have this; a judge that is switched off is none.

    A content holds no defaults, so what is on does not say it.
    """
    criteria = "entries__scenario_version__content__criteria"
    is_on = Q(**{f"{criteria}__{key}__enabled__isnull": True})
    return Count("entries", filter=is_on & Q(**{f"{criteria}__has_key": key}))


def _row(suite: Suite, version: SuiteVersion | None, latest: RunRow | None) -> SuiteRow:
    known = vars(version) if version else {}
    layers = tuple(layer for layer in LAYERS if known.get(f"with_{layer}"))
    return SuiteRow(suite, version, known.get("size", 0), layers, latest)
