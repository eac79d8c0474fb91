"""Suites with what was run of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Count, OuterRef, Subquery

from evalhub.teams.models import Project
from evalhub.web.states import FORMATS, look
from evaluators.criteria import Criteria
from runs.models import Run, Target
from runs.warehouse.history import RunRow, rows, runs_of
from runs.warehouse.strips import Strip, strips
from scenarios.models import Guidance, Scenario, Suite, SuiteEntry, SuiteVersion

CLASSES = ("solid", "flaky", "broken", "few")


@dataclass(frozen=True)
class SuiteRow:
    """A suite in the list."""

    suite: Suite
    version: SuiteVersion | None
    scenarios: int
    latest: RunRow | None

    @property
    def format(self) -> str:
        """The format's name for people."""
        return FORMATS.get(self.suite.format, self.suite.format)


def suite_rows(project: Project) -> list[SuiteRow]:
    """Return a project's suites with their newest version and run. Six queries."""
    newest_version = SuiteVersion.objects.filter(suite=OuterRef("pk")).order_by("-number").values("pk")[:1]
    newest_run = Run.objects.filter(suite=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    found = Suite.objects.filter(project=project)
    suites = list(found.annotate(newest=Subquery(newest_version), last_run=Subquery(newest_run)))
    versions = (
        SuiteVersion.objects.select_related("created_by")
        .defer("targets_text", "config", "lints")
        .annotate(size=Count("entries"))
    )
    newest = {
        version.pk: version for version in versions.filter(pk__in=_known(each.newest for each in suites))
    }
    runs = list(runs_of(project).filter(pk__in=_known(each.last_run for each in suites)))
    latest = {row.run.pk: row for row in rows(runs)}
    return [_row(suite, newest.get(suite.newest), latest.get(suite.last_run)) for suite in suites]


def _known(keys: Iterable[int | None]) -> list[int]:
    return [key for key in keys if key is not None]


def _row(suite: Suite, version: SuiteVersion | None, latest: RunRow | None) -> SuiteRow:
    return SuiteRow(suite, version, getattr(version, "size", 0), latest)


@dataclass(frozen=True)
class ScenarioLine:
    """A scenario of a suite's newest version, with its last trials."""

    scenario: Scenario
    tier: int
    tags: tuple[str, ...]
    checks: int
    """Gates, assertions and evaluators."""
    judged: bool
    strip: Strip

    @property
    def steadiness(self) -> str:
        return self.strip.rate.steadiness


@dataclass(frozen=True)
class Choice:
    """A chip: its words, how many scenarios it leaves, where it leads."""

    label: str
    n: int | None
    query: str
    on: bool
    group: str = ""


def _query(**chosen: str) -> str:
    return urlencode({name: value for name, value in chosen.items() if value})


@dataclass(frozen=True)
class SuitePage:
    """Everything a suite's page shows."""

    suite: Suite
    version: SuiteVersion | None
    lines: list[ScenarioLine]
    versions: Sequence[SuiteVersion]
    guidance: Sequence[Guidance]
    default_guidance: Guidance | None
    """What a run takes that asks for none: that of the last upload, which need not be the newest."""
    retired: int
    targets: list[Target]
    target: Target | None

    @property
    def format(self) -> str:
        """The format's name for people."""
        return FORMATS.get(self.suite.format, self.suite.format)

    def chips(self, show: str, tag: str) -> list[Choice]:
        """Return the ways to narrow the table by class, tag and target; those that would leave none are not offered."""
        target = self.target.name if self.target else ""
        classes = Counter(line.steadiness for line in self.lines)
        tags = Counter(each for line in self.lines for each in line.tags).most_common(8)
        found = [Choice("All", len(self.lines), _query(target=target), not show and not tag)]
        found += [
            Choice(look(name)[1], classes[name], _query(show=name, tag=tag, target=target), show == name)
            for name in CLASSES
            if classes[name]
        ]
        found += [
            Choice(name, n, _query(show=show, tag=name, target=target), tag == name, "" if index else "Tags")
            for index, (name, n) in enumerate(tags)
        ]
        if len(self.targets) > 1:
            found += [
                Choice(
                    each.name,
                    None,
                    _query(show=show, tag=tag, target=each.name),
                    each == self.target,
                    "" if index else "Targets",
                )
                for index, each in enumerate(self.targets)
            ]
        return found

    def chosen(self, show: str, tag: str) -> list[ScenarioLine]:
        """Return the lines of a class and a tag; an empty word is any."""
        return [
            line
            for line in self.lines
            if (not show or line.steadiness == show) and (not tag or tag in line.tags)
        ]


def suite_page(suite: Suite, target: str = "") -> SuitePage:
    """Return a suite's newest version, its scenarios' last trials on a target, and its history. Eight queries."""
    versions = list(
        suite.versions.select_related("created_by").annotate(run_count=Count("runs")).order_by("-number")[:30]
    )
    targets = list(Target.objects.filter(runs__suite=suite).distinct())
    chosen = next((each for each in targets if each.name == target), None)
    entries: list[SuiteEntry] = []
    if versions:
        entries = list(versions[0].entries.select_related("scenario_version__scenario"))
    last = strips(suite, target=chosen.pk if chosen else None)
    upload = suite.uploads.select_related("guidance").first()
    return SuitePage(
        suite=suite,
        version=versions[0] if versions else None,
        lines=[_line(entry, last) for entry in entries],
        versions=versions,
        guidance=list(
            suite.guidance.select_related("created_by")
            .annotate(run_count=Count("runs"))
            .order_by("-number")[:30]
        ),
        default_guidance=upload.guidance if upload else None,
        retired=suite.scenarios.filter(retired=True).count(),
        targets=targets,
        target=chosen,
    )


def _line(entry: SuiteEntry, last: dict[int, Strip]) -> ScenarioLine:
    version = entry.scenario_version
    content = version.content
    criteria = Criteria.model_validate(content.get("criteria", {}))
    return ScenarioLine(
        scenario=version.scenario,
        tier=int(content.get("tier", 0)),
        tags=tuple(content.get("tags", ())),
        checks=criteria.checks,
        judged=criteria.asks_model,
        strip=last.get(version.scenario_id, Strip()),
    )
