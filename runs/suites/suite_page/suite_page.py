"""Read a suite for its page: scenarios with their last trials, versions, changes, guidance and targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode

from django.db.models import Count, OuterRef, Q, Subquery

from evalhub.teams.models import Project
from evalhub.web.chips import Chip
from evalhub.web.states import FORMATS, look_of_state
from evaluators.grading.evaluate import Criteria
from evaluators.statistics.comparability import Standard
from evaluators.statistics.scenario_classes import ScenarioClass
from runs.compare.guidance.lift_findings import MeasuredLift, latest_lifts, without_bare_arms
from runs.launch.lift import has_skill
from runs.models import Run, Target
from runs.results.outcome_history import OutcomeHistory, read_histories
from runs.results.validations import ScenarioValidation, count_validations, validations_of
from runs.suites.suite_page.proofs import ShownProof, newest_target, shown_proof, targets_of
from scenarios.differences import SuiteDifference, compare_suites, contents_of
from scenarios.models import Guidance, Scenario, Suite, SuiteEntry, SuiteVersion, Upload

MOST = 30
"""Versions on a suite's page."""


@dataclass(frozen=True)
class VersionChange:
    """A suite's versions, newest first, and the changes between two of them."""

    versions: Sequence[SuiteVersion]
    before: SuiteVersion | None = None
    after: SuiteVersion | None = None
    difference: SuiteDifference | None = None
    """None for the first version."""
    standards: Mapping[int, Mapping[str, Standard]] = field(default_factory=dict)
    """Those of both versions' scenarios, by version and key."""


def change_between(suite: Suite, before: str, after: str) -> VersionChange | None:
    """Return the changes between any two versions, with the scenarios' contents; None if one is missing. Two queries."""
    numbers = [int(each) for each in (before, after) if each.isdecimal() and len(each) < 9]
    rows = suite.versions.select_related("created_by").defer("targets_text", "solutions", "config")
    by_number = {str(each.number): each for each in rows.filter(number__in=numbers)}
    if before == after or before not in by_number or after not in by_number:
        return None
    pair = by_number[before], by_number[after]
    return VersionChange((), *pair, compare_suites(*contents_of(*pair)))


def version_change(suite: Suite, number: str = "", *, whole: bool = False) -> VersionChange:
    """Return a suite's last versions, and the changes of the one with this number, by default the newest.

    `whole` also loads the scenarios' contents to compare their lines. Two queries, one for the first version.
    """
    rows = suite.versions.select_related("created_by").defer("targets_text", "solutions", "config")
    versions = list(rows.annotate(run_count=Count("runs")).order_by("-number")[: MOST + 1])
    index = next((place for place, each in enumerate(versions[:MOST]) if str(each.number) == number), 0)
    if len(versions) < index + 2:
        return VersionChange(versions)
    after, before = versions[index : index + 2]
    contents = contents_of(before, after, whole=whole)
    standards = {
        version.pk: {key: each.parts for key, each in scenarios.items()}
        for version, scenarios in zip((before, after), contents, strict=True)
    }
    return VersionChange(versions[:MOST], before, after, compare_suites(*contents), standards)


Value = TypeVar("Value")


@dataclass(frozen=True)
class Named:
    """A named content and its hash."""

    name: str
    sha256: str


@dataclass(frozen=True)
class SuiteFacts:
    """Unique values in the order of the scenarios."""

    fixtures: tuple[Named, ...] = ()
    """Fixtures of the workspaces."""
    rubrics: tuple[Named, ...] = ()
    """Rubrics of enabled judges."""
    patterns: tuple[str, ...] = ()
    """Patterns that match the tool's calls among commands."""
    tools: tuple[str, ...] = ()
    """Programs that are matched by name, without a pattern."""
    thresholds: tuple[float, ...] = ()
    """The lowest passing scores of scenarios with evaluators, ascending."""


def entries_of(version: SuiteVersion) -> list[SuiteEntry]:
    """Return a version's scenarios with the columns that `suite_facts` needs. One query."""
    entries = version.entries.select_related(
        "scenario_version__scenario", "scenario_version__fixture", "scenario_version__rubric"
    )
    # A fixture's archive is large and would be loaded again for every scenario.
    heavy = ("fixture__archive", "fixture__files", "rubric__content")
    return list(entries.defer(*(f"scenario_version__{each}" for each in heavy)))


def suite_facts(entries: Sequence[SuiteEntry], criteria: Sequence[Criteria]) -> SuiteFacts:
    """Return the facts of scenarios; `criteria` has theirs in the same order."""
    pairs = [
        (entry.scenario_version, own_criteria) for entry, own_criteria in zip(entries, criteria, strict=True)
    ]
    tools = [own_criteria.tool for _, own_criteria in pairs if own_criteria.tool]
    return SuiteFacts(
        fixtures=_unique(
            Named(str(version.content["fixture"]), version.fixture.sha256)
            for version, _ in pairs
            if version.fixture and version.content.get("fixture")
        ),
        rubrics=_unique(
            Named(version.rubric.name, version.rubric.sha256)
            for version, own_criteria in pairs
            if version.rubric and own_criteria.judge and own_criteria.judge.enabled
        ),
        patterns=_unique(tool.command_pattern for tool in tools if tool.command_pattern),
        tools=_unique(tool.title for tool in tools if (tool.binary or tool.mcp) and not tool.command_pattern),
        thresholds=tuple(sorted({each.threshold for each in criteria if each.evaluators})),
    )


def _unique(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))


CLASSES = tuple(ScenarioClass)
MOST_TAGS = 8


@dataclass(frozen=True)
class ScenarioLine:
    """A scenario of a suite's newest version with its last trials."""

    scenario: Scenario
    tier: int
    tags: tuple[str, ...]
    checks: int
    """Gates, assertions and evaluators."""
    judged: bool
    strip: OutcomeHistory
    seal: ScenarioValidation

    @property
    def kind(self) -> ScenarioClass:
        return self.strip.kind


@dataclass(frozen=True)
class Shown:
    """Filters of a query string; an empty text isn't a filter."""

    show: str = ""
    """A class of scenarios."""
    tier: str = ""
    tag: str = ""
    target: str = ""
    version: str = ""
    """Number of the version whose changes are shown. Default: the newest."""

    @property
    def query(self) -> str:
        """Return the filters as a query string."""
        return urlencode({name: value for name, value in vars(self).items() if value})

    def at(self, version: int) -> str:
        """Return the query string for another version's changes."""
        return replace(self, version=str(version)).query


NOTHING_CHOSEN = Shown()


class StoppedRun(NamedTuple):
    """A run whose tool never started."""

    run: int
    sentence: str


@dataclass(frozen=True)
class SuitePage:
    """Content of a suite's page."""

    suite: Suite
    change: VersionChange
    lines: list[ScenarioLine]
    guidance: Sequence[Guidance]
    default_guidance: Guidance | None
    """Guidance of runs that choose none: the last upload's, which may not be the newest."""
    targets: list[Target]
    target: Target | None
    facts: SuiteFacts
    proof: ShownProof
    has_skill: bool
    """Whether a lift says what the suite's skill adds."""
    lifts: Sequence[MeasuredLift] = ()
    """The newest lift of the suite's skill, on each target and model."""
    stopped: StoppedRun | None = None
    """The newest closed run on the target, if its tool never started."""

    @property
    def version(self) -> SuiteVersion | None:
        """Return the newest version."""
        return next(iter(self.change.versions), None)

    @property
    def format(self) -> str:
        """Return the format's label."""
        return FORMATS.get(self.suite.format, self.suite.format)

    def chips(self, shown: Shown) -> list[Chip]:
        """Return the chips that filter by class, tier, tag and target, without empty ones."""
        whole = replace(shown, show="", tag="", tier="")
        return [
            Chip("All", len(self.lines), whole.query, shown == whole),
            *self._choices(shown, "show", Counter(line.kind for line in self.lines)),
            *self._choices(shown, "tier", Counter(str(line.tier) for line in self.lines), "Tier"),
            *self._choices(shown, "tag", Counter(tag for line in self.lines for tag in line.tags), "Tags"),
            *(
                Chip(
                    target.name,
                    None,
                    replace(shown, target=target.name).query,
                    target == self.target,
                    "" if index else "Targets",
                )
                for index, target in enumerate(self.targets if len(self.targets) > 1 else [])
            ),
        ]

    def _choices(self, shown: Shown, name: str, counts: Counter[str], group: str = "") -> list[Chip]:
        if name == "tier" and len(counts) < 2:
            return []
        choices = counts.most_common(MOST_TAGS) if name == "tag" else _sort_counts(name, counts)
        return [
            Chip(
                look_of_state(value)[1].capitalize() if name == "show" else value,
                n,
                replace(shown, **{name: value}).query,
                getattr(shown, name) == value,
                "" if index else group,
                look_of_state(value)[0] if name == "show" else "",
            )
            for index, (value, n) in enumerate(choices)
        ]

    def chosen(self, shown: Shown) -> list[ScenarioLine]:
        """Return the lines that match the filters."""
        return [
            line
            for line in self.lines
            if (not shown.show or line.kind == shown.show)
            and (not shown.tier or str(line.tier) == shown.tier)
            and (not shown.tag or shown.tag in line.tags)
        ]


def _sort_counts(name: str, counts: Counter[str]) -> list[tuple[str, int]]:
    values = CLASSES if name == "show" else sorted(counts, key=int)
    return [(value, counts[value]) for value in values if counts[value]]


def find_shown_suite(project: Project, slug: str) -> Suite | None:
    """Return a project's suite with its number of retired scenarios and its last upload's guidance. One query."""
    last = Upload.objects.filter(suite=OuterRef("pk")).order_by("-pk").values("guidance")[:1]
    retired = Count("scenarios", filter=Q(scenarios__retired=True))
    suites = Suite.objects.filter(project=project, slug=slug).select_related("project")
    return suites.annotate(retired=retired, last_guidance=Subquery(last)).first()


def suite_page(suite: Suite, shown: Shown = NOTHING_CHOSEN) -> SuitePage:
    """Return a suite's newest version, its scenarios' last trials on a target, and its history.

    `suite` comes from `find_suite_or_404`; of `shown` only target and version are read. Up to ten queries, two more
    for a skill.
    """
    change = version_change(suite, shown.version)
    targets = list(targets_of(suite))
    # Trials of several targets can't be compared, so the page opens with the target of the newest run.
    chosen = next((target for target in targets if target.name == shown.target), newest_target(targets))
    entries = entries_of(change.versions[0]) if change.versions else []
    criteria = [
        Criteria.model_validate(entry.scenario_version.content.get("criteria", {})) for entry in entries
    ]
    last = read_histories(
        suite,
        target=chosen.pk if chosen else None,
        version=change.versions[0].pk if change.versions else None,
        known=_standards(change, entries),
    )
    guidance = list(
        suite.guidance.select_related("created_by").annotate(run_count=Count("runs")).order_by("-number")[:30]
    )
    keys = {entry.scenario_version_id: entry.scenario_version.scenario.key for entry in entries}
    validations, proof = validations_of(change.versions[0], keys) if change.versions else ({}, None)
    default = _default_guidance(suite, guidance)
    skilled = has_skill(suite, default)
    return SuitePage(
        suite=suite,
        change=change,
        lines=[_line(*entry, last, validations) for entry in zip(entries, criteria, strict=True)],
        guidance=without_bare_arms(guidance, default),
        default_guidance=default,
        targets=targets,
        target=chosen,
        facts=suite_facts(entries, criteria),
        proof=shown_proof(count_validations(validations.values()), len(entries), proof),
        has_skill=skilled,
        lifts=latest_lifts(Run.objects.filter(suite=suite)) if skilled else (),
        stopped=_stopped_run(chosen),
    )


def _stopped_run(target: Target | None) -> StoppedRun | None:
    """Return the newest closed run on a target of `targets_of` if its tool never started."""
    read = vars(target) if target else {}
    return StoppedRun(read["closed"], read["not_started"]) if read.get("not_started") else None


def _standards(change: VersionChange, entries: Sequence[SuiteEntry]) -> dict[int, dict[int, Standard]]:
    """Return the standards that were read already, by version and scenario."""
    keys = {each.scenario_version.scenario.key: each.scenario_version.scenario_id for each in entries}
    return {
        version: {keys[key]: standard for key, standard in by_key.items() if key in keys}
        for version, by_key in change.standards.items()
    }


def _default_guidance(suite: Suite, loaded: Sequence[Guidance]) -> Guidance | None:
    pk: int | None = vars(suite)["last_guidance"]
    guidance = next((each for each in loaded if each.pk == pk), None)
    return guidance or (suite.guidance.filter(pk=pk).first() if pk else None)


def _line(
    entry: SuiteEntry,
    criteria: Criteria,
    last: dict[int, OutcomeHistory],
    validations: dict[int, ScenarioValidation],
) -> ScenarioLine:
    version = entry.scenario_version
    content = version.content
    return ScenarioLine(
        scenario=version.scenario,
        tier=int(content.get("tier", 0)),
        tags=tuple(content.get("tags", ())),
        checks=criteria.checks,
        judged=criteria.asks_model,
        strip=last.get(version.scenario_id, OutcomeHistory()),
        seal=validations[version.pk],
    )
