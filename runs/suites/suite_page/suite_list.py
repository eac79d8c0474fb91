"""List suites with their newest version and run, filtered by text, format and tag."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, Subquery

from evalhub.teams.models import Project
from evalhub.web.states import FORMATS
from runs.models import Run
from runs.results.address_filters import AddressFilters, no_match
from runs.results.outcome_history import runs_of_suite_state
from runs.results.run_list import RunRow, rows
from runs.results.run_rows import listed_runs
from scenarios.models import Suite, SuiteEntry, SuiteVersion

LAYERS = {
    "interaction": "tool",
    "gates": "gates",
    "assertions": "expect",
    "evaluators": "evaluators",
    "judge": "judge",
}
"""Key of a scenario's criteria that enables each layer."""


@dataclass(frozen=True)
class SuiteFilters(AddressFilters):
    """Filters of a query string; an empty text isn't a filter."""

    q: str = ""
    """Part of a suite's name, a scenario's key or a tag."""
    format: str = ""
    tag: str = ""

    @property
    def in_force(self) -> list[tuple[str, str]]:
        """Return label and value of the active filters."""
        named = (("text", self.q), ("format", FORMATS.get(self.format, self.format)), ("tag", self.tag))
        return [(name, value) for name, value in named if value]


@dataclass(frozen=True)
class SuiteRow:
    """A suite in the list."""

    suite: Suite
    version: SuiteVersion | None
    scenarios: int
    layers: tuple[str, ...]
    """Layers that any of the version's scenarios uses."""
    latest: RunRow | None
    """Its newest run, without experiments."""
    ran: bool
    """Whether it has any run, experiments included."""

    @property
    def format(self) -> str:
        """Return the format's label."""
        return FORMATS.get(self.suite.format, self.suite.format)


@dataclass(frozen=True)
class SuiteList:
    """The matching suites, and the filters' choices."""

    rows: list[SuiteRow]
    total: int
    formats: list[tuple[str, str]]
    tags: list[str]

    def no_match(self, filters: SuiteFilters) -> str:
        """Return the sentence for filters that match nothing."""
        return no_match("suite", [(name, value, None) for name, value in filters.in_force])


def list_suites_of_project(project: Project, filters: SuiteFilters) -> SuiteList:
    """Return a project's matching suites with their newest version and run. Six queries, one more with a text."""
    newest_version = SuiteVersion.objects.filter(suite=OuterRef("pk")).order_by("-number").values("pk")[:1]
    newest_run = runs_of_suite_state(OuterRef("pk")).values("pk")[:1]
    ran = Exists(Run.objects.filter(suite=OuterRef("pk")))
    rows = Suite.objects.filter(project=project)
    suites = list[Suite](
        rows.annotate(newest=Subquery(newest_version), last_run=Subquery(newest_run), ran=ran)
    )
    newest = _known_values(suites, "newest")
    tags = _tags(newest)
    with_text = _with_text(suites, newest, tags, filters.q)
    chosen = [suite for suite in suites if suite.pk in with_text and _fits(suite, tags[suite.pk], filters)]
    formats = sorted({(suite.format, FORMATS.get(suite.format, suite.format)) for suite in suites})
    known = sorted({tag for suite_tags in tags.values() for tag in suite_tags})
    return SuiteList(_rows(chosen), len(suites), formats, known)


def _known_values(suites: Iterable[Suite], name: str) -> list[int]:
    """Return an annotation's values, without None."""
    return [key for suite in suites if (key := vars(suite)[name]) is not None]


def _tags(versions: list[int]) -> defaultdict[int, Counter[str]]:
    """Return the tags of these versions by their suite's key. One query."""
    rows = SuiteEntry.objects.filter(suite_version__in=versions).order_by()
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for suite, tags in rows.values_list("suite_version__suite", "scenario_version__content__tags").distinct():
        counts[suite].update(str(tag) for tag in tags or ())
    return counts


def _with_text(
    suites: list[Suite], versions: list[int], tags: defaultdict[int, Counter[str]], text: str
) -> set[int]:
    """Return the keys of the suites with the text in their name, a tag or a scenario's key."""
    if not text:
        return {suite.pk for suite in suites}
    entries = SuiteEntry.objects.filter(
        suite_version__in=versions, scenario_version__scenario__key__icontains=text
    )
    by_key = set(entries.order_by().values_list("suite_version__suite", flat=True).distinct())
    folded = text.casefold()
    return by_key | {
        suite.pk
        for suite in suites
        if any(folded in each.casefold() for each in (suite.name, suite.slug, *tags[suite.pk]))
    }


def _fits(suite: Suite, tags: Counter[str], filters: SuiteFilters) -> bool:
    return (not filters.format or suite.format == filters.format) and (not filters.tag or filters.tag in tags)


def _rows(suites: list[Suite]) -> list[SuiteRow]:
    versions = (
        SuiteVersion.objects.select_related("created_by")
        .defer("targets_text", "solutions", "config", "lints")
        .annotate(size=Count("entries"), **{f"with_{layer}": _with(key) for layer, key in LAYERS.items()})
    )
    newest = {each.pk: each for each in versions.filter(pk__in=_known_values(suites, "newest"))}
    latest = {row.run.id: row for row in rows(listed_runs(_known_values(suites, "last_run")))}
    annotated = [(suite, vars(suite)) for suite in suites]
    return [
        _row(suite, newest.get(values["newest"]), latest.get(values["last_run"]), ran=values["ran"])
        for suite, values in annotated
    ]


def _with(key: str) -> Count:
    """Count a version's scenarios whose criteria have this key, without disabled judges.

    Stored contents omit defaults, so an enabled judge has no `enabled`.
    """
    criteria = "entries__scenario_version__content__criteria"
    is_on = Q(**{f"{criteria}__{key}__enabled__isnull": True})
    return Count("entries", filter=is_on & Q(**{f"{criteria}__has_key": key}))


def _row(suite: Suite, version: SuiteVersion | None, latest: RunRow | None, *, ran: bool) -> SuiteRow:
    known = vars(version) if version else {}
    layers = tuple(layer for layer in LAYERS if known.get(f"with_{layer}"))
    return SuiteRow(suite, version, known.get("size", 0), layers, latest, ran)
