"""The form of a new run: what a project can run, and what people choose by name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django import forms
from django.db.models import OuterRef, QuerySet, Subquery
from pydantic_core import PydanticCustomError

from evalhub.lib.numbers import format_count
from evalhub.teams.models import Project
from evalhub.web.rest.request_body import validate_json
from evaluators.model import Json
from runs.launch.run_history import RunHistory
from runs.launch.run_request import AskedField
from runs.launch.selection import ChosenScenario
from runs.models import Run
from runs.models.run import RunState
from runs.targets.providers.registry import JUDGES
from runs.targets.target_list import CheckedTarget, startable_targets
from scenarios.archives import MAX_FILE_BYTES
from scenarios.formats.parsed import ScenarioFileError
from scenarios.models import SESSIONS, Guidance, Suite, SuiteVersion, Upload
from scenarios.tool_descriptions import ToolDescriptions, read_descriptions

NUMBER = {
    "invalid": "Enter a whole number, such as 3.",
    "min_value": "Enter %(limit_value)s or more.",
    "max_value": "Enter %(limit_value)s or less.",
}
LEAST = 0.0001
"""The least of a number that must be more than 0."""


def unique_names(values: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the unique names of a field: known ones as they are, typed ones split at commas."""
    names = (
        name
        for value in values
        for name in ([value] if value in known else map(str.strip, value.split(",")))
        if name
    )
    return list(dict.fromkeys(names))


class NamesInput(forms.Widget):
    """Every value of a name: of its checkboxes, and of a field for names that the list lacks."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return list(data.getlist(name))


class NamesField(forms.Field):
    """Names that are chosen from a list, or typed."""

    def __init__(self, **more: Any) -> None:
        super().__init__(required=False, widget=NamesInput, **more)
        self.known: list[NamedChoice] = []

    def names(self, values: Iterable[str]) -> list[str]:
        """Return the chosen names."""
        return unique_names(values, {each.name for each in self.known})

    def clean(self, value: list[str]) -> list[str]:
        return self.names(value)

    def offered(self, values: Iterable[str]) -> list[NamedChoice]:
        """Return the list's choices, with names that were typed at its end."""
        known = {each.name for each in self.known}
        return [*self.known, *(NamedChoice(name) for name in self.names(values) if name not in known)]


class JsonField(forms.CharField):
    """JSON that is typed in; None if it is empty."""

    def __init__(self, **more: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})
        super().__init__(required=False, max_length=MAX_FILE_BYTES, widget=widget, **more)

    def clean(self, value: Any) -> Json:
        text = super().clean(value)
        if not text:
            return None
        try:
            return validate_json(json.loads(text))
        except PydanticCustomError as error:
            raise forms.ValidationError(error.message()) from error
        except (ValueError, RecursionError) as error:
            place = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            raise forms.ValidationError(f"This is not JSON{place}. Correct it or leave it empty.") from error


class DescriptionsField(forms.CharField):
    """Descriptions for an MCP server's tools, as a file has them; None if it is empty."""

    def __init__(self, **more: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})
        super().__init__(required=False, strip=False, max_length=MAX_FILE_BYTES, widget=widget, **more)

    def clean(self, value: Any) -> ToolDescriptions | None:
        text = super().clean(value)
        try:
            return read_descriptions(text.encode(), "") if text.strip() else None
        except ScenarioFileError as error:
            raise forms.ValidationError(
                [f"Line {each.line}: {each.what} {each.fix}" for each in error.problems]
            ) from error


def form_field(field: AskedField) -> forms.Field:
    """Return the form's field for one of `RunRequest`."""
    asked = field.asked
    shared: dict[str, Any] = {"label": asked.label or None, "help_text": asked.hint}
    if field.kind is bool:
        return forms.BooleanField(required=False, initial=field.default, **shared)
    if field.kind is list:
        return NamesField(**shared)
    if field.kind is str:
        return forms.CharField(required=False, max_length=field.longest, **shared)
    shared |= {
        "min_value": LEAST if field.above == 0 else field.least,
        "max_value": field.most,
        "required": field.default is not None,
        "initial": field.default,
    }
    if field.kind is int:
        return forms.IntegerField(error_messages=NUMBER, **shared)
    return forms.FloatField(error_messages={**NUMBER, "invalid": f"Enter {asked.example}."}, **shared)


RECENT = 100
"""Newest runs of the project whose models and tags are offered."""
SHOWN_CARDS = 6
"""Guidance versions in sight; older ones are folded away."""


@dataclass(frozen=True)
class NamedChoice:
    """A name to choose, with words beside it."""

    name: str
    note: str = ""


@dataclass(frozen=True)
class GuidanceCard:
    """A version of a suite's guidance to choose."""

    value: str
    """Its key; empty for that of the latest upload, whichever it is."""
    name: str
    created: datetime | None = None
    run: Run | None = None
    """Its newest finished run, with a rate."""


@dataclass(frozen=True)
class RecentlyUsed:
    """What the newest runs of a project used."""

    models: Sequence[str] = ()
    tags: Sequence[str] = ()
    by_guidance: Mapping[int, Run] = field(default_factory=dict)
    """The newest finished run of each version of guidance."""


def read_recently_used(project: int) -> RecentlyUsed:
    """Return what a project's newest runs used. One query."""
    columns = ("pk", "model", "tags", "guidance", "state", "passed", "failed", "pass_rate")
    runs = list(Run.objects.filter(project=project).only(*columns).order_by("-pk")[:RECENT])
    tags = Counter(tag for run in runs for tag in run.tags)
    done = [run for run in runs if run.state == RunState.FINISHED and run.passed + run.failed]
    return RecentlyUsed(
        sorted({run.model for run in runs if run.model}),
        [tag for tag, _ in tags.most_common()],
        {run.guidance_id: run for run in reversed(done) if run.guidance_id},
    )


def scenario_choices(scenarios: Sequence[ChosenScenario], failed: Collection[int]) -> list[NamedChoice]:
    """Return a suite's scenarios in order, with their tags and whether they failed in their last run."""
    return [
        NamedChoice(
            scenario.key,
            ", ".join([*(["failed last time"] if scenario.scenario_id in failed else []), *scenario.tags]),
        )
        for scenario in scenarios
    ]


def tag_choices(scenarios: Iterable[ChosenScenario]) -> list[NamedChoice]:
    """Return the scenarios' tags, the most frequent first, with their numbers of scenarios."""
    counts = Counter(tag for scenario in scenarios for tag in set(scenario.tags))
    # A request lists tags with commas between them.
    listable = [(tag, n) for tag, n in counts.items() if "," not in tag and tag == tag.strip()]
    return [NamedChoice(tag, str(n)) for tag, n in sorted(listable, key=lambda item: (-item[1], item[0]))]


def tier_choices(scenarios: Iterable[ChosenScenario], chosen: str) -> list[tuple[str, str]]:
    """Return the tiers to stop at; none for scenarios of one tier, unless one is chosen."""
    tiers = [each.tier for each in scenarios]
    numbers = sorted({*tiers})[:-1]
    offered = [
        (str(tier), f"{tier}: {format_count(sum(each <= tier for each in tiers), 'scenario')}")
        for tier in numbers
    ]
    if chosen and chosen not in dict(offered):
        offered.append((chosen, chosen))
    return [("", "all"), *offered] if offered else []


def guidance_cards(offer: RunChoices, suite: Suite, recent: RecentlyUsed) -> list[GuidanceCard]:
    """Return the latest upload's guidance and the suite's other versions, newest first; none without a version."""
    versions = offer.guidance_of(suite)
    if not versions:
        return []
    latest = offer.defaults.get(suite.pk)
    run = recent.by_guidance.get(latest.pk) if latest else None
    cards = [
        GuidanceCard("", f"Latest upload: {latest or 'no guidance'}", latest.created if latest else None, run)
    ]
    others = [version for version in versions if latest is None or version.pk != latest.pk]
    for version in others:
        cards.append(
            GuidanceCard(str(version.pk), str(version), version.created, recent.by_guidance.get(version.pk))
        )
    return cards


MOST_BASELINES = 30
"""Runs in the list of baselines."""
HEAVY = ("targets_text", "config", "lints")
"""Columns of a suite version that planning doesn't need."""


@dataclass(frozen=True)
class RunChoices:
    """The choices of a new run, by name."""

    versions: Mapping[str, SuiteVersion]
    """The latest version with its suite, by the suite's slug."""
    guidance: Sequence[Guidance]
    """Without the documents themselves."""
    defaults: Mapping[int, Guidance | None]
    """Default guidance by the suite's key."""
    targets: Sequence[CheckedTarget]
    """Targets that may run."""
    names: Mapping[int, str]
    """Names of all targets by key."""
    judges: Sequence[str]
    """Names of the targets that can judge."""
    usual: Mapping[str, str]
    """The target of a suite's last run, by slug, if it may still run."""

    @property
    def suites(self) -> list[Suite]:
        return [version.suite for version in self.versions.values()]

    def guidance_of(self, suite: Suite) -> list[Guidance]:
        """Return a suite's guidance versions, newest first."""
        return [each for each in self.guidance if each.suite_id == suite.pk]


def run_choices(project: Project, *, now: datetime, keep: Collection[str] = ()) -> RunChoices:
    """Return a project's choices for a new run. Four queries.

    Judges of other targets are left out, except those that suites ran on and those in `keep`.
    """
    versions = list(_versions(project.pk))
    guidance = list(_guidance(project.pk))
    by_key = {each.pk: each for each in guidance}
    for version in versions:
        version.suite.project = project
    startable = startable_targets(project, now=now)
    names = {each.target.pk: each.target.name for each in startable}
    # The row type lacks the annotation. No row has the key 0.
    ran_on = {version.suite.slug: getattr(version, "last_target", None) or 0 for version in versions}
    ran = {names[key] for key in ran_on.values() if key in names}
    targets = _without_judges(startable, ran.union(keep))
    return RunChoices(
        {version.suite.slug: version for version in versions},
        guidance,
        {version.suite_id: by_key.get(getattr(version, "last_guidance", None) or 0) for version in versions},
        targets,
        names,
        [each.target.name for each in startable if each.target.provider in JUDGES],
        {slug: names[key] for slug, key in ran_on.items() if key in names},
    )


def _without_judges(targets: list[CheckedTarget], keep: Collection[str]) -> list[CheckedTarget]:
    """Return the targets without those that another one names as its judge."""
    judges = {each.judge for each in targets if each.judge != each.target.name} - {*keep}
    return [each for each in targets if each.target.name not in judges]


def baselines_of(past: RunHistory, offer: RunChoices) -> list[tuple[str, str]]:
    """Return the last runs of a suite as choices for its baseline."""
    return [
        (
            str(run.pk),
            f"Run {run.pk}: {offer.names.get(run.target_id, 'another target')}, {run.passed} of"
            f" {run.passed + run.failed} passed{run.branch and f', {run.branch}'}",
        )
        for run in past.finished[:MOST_BASELINES]
    ]


def _versions(project: int) -> QuerySet[SuiteVersion]:
    last = Upload.objects.filter(suite=OuterRef("suite")).order_by("-pk")
    versions = SuiteVersion.objects.filter(
        suite__project=project, pk=Subquery(last.values("suite_version")[:1])
    )
    versions = versions.exclude(suite__format=SESSIONS)
    ran = Run.objects.filter(suite=OuterRef("suite")).order_by("-pk")
    versions = versions.annotate(
        last_guidance=Subquery(last.values("guidance")[:1]), last_target=Subquery(ran.values("target")[:1])
    )
    return versions.select_related("suite").defer(*HEAVY).order_by("suite__name", "suite__pk")


def _guidance(project: int) -> QuerySet[Guidance]:
    guidance = Guidance.objects.filter(suite__project=project).defer("files")
    return guidance.order_by("suite__name", "suite", "-number")
