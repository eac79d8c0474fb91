"""The search of trials by their texts, and by the names of suite, target and the like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from django.db.models import Max, Q
from django.db.models.fields.json import KeyTextTransform
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe
from ninja import Query, Router, Schema
from pydantic import BaseModel, Field

from evalhub.lib.storable_text import Text
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.teams.models import Project
from evalhub.web.csv_export import Cell, Table, chosen_table
from evalhub.web.paging import key_of
from evalhub.web.rest.errors import declare_answers
from runs.models import Run, Target
from runs.results.address_filters import AddressFilters
from runs.results.filter_schemas import add_filters
from runs.results.run_filters import OUTCOMES, STATES, RunListFilters
from runs.results.run_list import matching_runs
from runs.results.search.trial_search import (
    COLUMNS,
    MOST_CANDIDATES,
    FoundTrial,
    SearchFilters,
    SearchQuery,
    search_trials,
)
from scenarios.models import Scenario, Suite, SuiteEntry, SuiteVersion


@dataclass(frozen=True)
class TrialSearch(AddressFilters):
    """A search by the names of what it is limited to; an empty text isn't a filter."""

    q: str = ""
    place: str = ""
    """A column of the index; empty for all of them."""
    suite: str = ""
    target: str = ""
    outcome: str = ""
    tool_version: str = ""
    guidance: str = ""
    by: str = ""
    since: str = ""
    until: str = ""

    @property
    def of_trials(self) -> bool:
        """Whether a filter is set that only trials have."""
        return replace(self, q="") != TrialSearch()


def find_trials(project: Project, filters: TrialSearch) -> list[FoundTrial]:
    """Return the trials that match the text and every filter."""
    search_filters = _search_filters(project, filters)
    return search_trials(project, SearchQuery.parse(filters.q), search_filters) if search_filters else []


def _search_filters(project: Project, filters: TrialSearch) -> SearchFilters | None:
    """Return the filters with the keys of what they name; None if something does not exist."""
    keys: dict[str, Any] = {}
    for name, rows in (
        ("suite", Suite.objects.filter(project=project, slug=filters.suite)),
        ("target", Target.objects.filter(project=project, name=filters.target)),
        ("by", project.memberships.filter(user__username=filters.by)),
    ):
        if getattr(filters, name):
            field = "user_id" if name == "by" else "pk"
            keys[f"{name}_id"] = rows.values_list(field, flat=True).first()
    if filters.guidance:
        keys["guidance_id"] = key_of(filters.guidance)
    if None in keys.values():
        return None
    until = _day(filters.until)
    return SearchFilters(
        column=filters.place if filters.place in COLUMNS else "",
        outcome=filters.outcome,
        tool_version=filters.tool_version,
        since=_day(filters.since),
        # The whole day counts.
        until=until + timedelta(days=1) if until and until.year < date.max.year else until,
        **keys,
    )


def _day(text: str) -> datetime | None:
    """Return the start of a day in UTC; None if the text names none."""
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        return None


router = Router(tags=["search"])


@add_filters(TrialSearch, "suite", "target", "tool_version", "guidance", "by", "since", "until")
class SearchParameters(BaseModel):
    """What to search for, and where: `guidance` is an id, `since` and `until` are days such as 2026-11-09, in UTC."""

    q: Annotated[Text, Field(min_length=1, max_length=200)]
    """Words that all occur; `"a phrase"`, `sta*`, `-excluded`."""
    place: Literal["", "commands", "outputs", "judge", "answer"] = ""
    outcome: Literal["", "pass", "fail", "error"] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_CANDIDATES)] = 20


class HitsOut(Schema):
    items: list[FoundTrial]
    """Best first."""
    total: int
    """Ranked matches; of a common word, only the newest are."""


@router.get("/search", auth=Bearer(), response=declare_answers(HitsOut))
def search(request: ApiRequest, parameters: Query[SearchParameters]) -> dict[str, Any]:
    """Search commands, first lines of outputs, judges' statements and answers of trials."""
    filters = parameters.model_dump(exclude={"limit"})
    hits = find_trials(request.access.project, TrialSearch(**filters))
    return {"items": hits[: parameters.limit], "total": len(hits)}


MOST = 20
"""Suites, scenarios and runs shown, and trials on a page."""
PLACES = (
    ("commands", "commands"),
    ("outputs", "outputs"),
    ("judge", "judge's statements"),
    ("answer", "answers"),
)
HEADER = (
    *("trial", "run", "suite", "scenario", "index", "outcome", "target", "finished", "found_in", "passage"),
    "score",
)


RECENT_RUNS = 200
"""Runs whose suites, targets, versions and people are offered as filters."""


@dataclass(frozen=True)
class SearchChoices:
    """The choices of the filters, from recent runs."""

    suites: list[tuple[str, str]]
    targets: list[tuple[str, str]]
    tool_versions: list[tuple[str, str]]
    guidance: list[tuple[str, str]]
    people: list[tuple[str, str]]


def search_choices(project: Project) -> SearchChoices:
    """Return the choices of the filters. One query."""
    runs = (
        Run.objects.filter(project=project)
        .order_by("-pk")
        .values(
            *("suite__slug", "suite__name", "target__name", "tool_version", "by__username"),
            *("guidance", "guidance__name", "guidance__number"),
        )[:RECENT_RUNS]
    )
    rows = list(runs)

    def pairs(value: str, label: str) -> list[tuple[str, str]]:
        choices = {str(row[value]): str(row[label]) for row in rows if row[value]}
        return sorted(choices.items(), key=lambda pair: pair[1].lower())

    for row in rows:
        row["called"] = row["guidance__name"] or f"guidance {row['guidance__number']}"
    return SearchChoices(
        pairs("suite__slug", "suite__name"),
        pairs("target__name", "target__name"),
        pairs("tool_version", "tool_version"),
        pairs("guidance", "called"),
        pairs("by__username", "by__username"),
    )


@dataclass(frozen=True)
class SearchResults:
    """Matches, at most `MOST` of each kind; of the trials one page."""

    runs: Sequence[Run] = ()
    suites: Sequence[Suite] = ()
    scenarios: Sequence[Scenario] = ()
    trials: Sequence[FoundTrial] = ()
    trial_count: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.runs or self.suites or self.scenarios or self.trial_count)


def find_matches(project: Project, filters: TrialSearch, page: int = 1) -> SearchResults:
    """Return the matches; scenarios by key and prompt of the newest version. At most eight queries."""
    text = filters.q
    if not text:
        return SearchResults()
    hits = find_trials(project, filters)
    trials = hits[(page - 1) * MOST : page * MOST]
    if filters.of_trials:
        return SearchResults(trials=trials, trial_count=len(hits))
    runs = matching_runs(project, RunListFilters(q=text)).order_by("-pk")[:MOST]
    suites = Suite.objects.filter(Q(name__icontains=text) | Q(slug__icontains=text), project=project)
    shown_suites = list(suites.select_related("project")[:MOST])
    return SearchResults(list(runs), shown_suites, _scenarios(project, text), trials, len(hits))


def page_links(filters: TrialSearch, page: int, count: int) -> tuple[str, str]:
    """Return the query strings of the previous and the next page of trials; empty where there is none."""
    query = urlencode(filters.in_force)
    previous = f"{query}&page={page - 1}" if page > 1 else ""
    return previous, f"{query}&page={page + 1}" if page * MOST < count else ""


def search_table(project: Project, filters: TrialSearch) -> Table:
    """Return every found trial as a table, best first."""
    return Table(f"{project.slug}-search", HEADER, _rows(find_trials(project, filters)))


def _rows(trials: Sequence[FoundTrial]) -> Iterator[tuple[Cell, ...]]:
    for trial in trials:
        yield (
            *(
                trial.trial,
                trial.run,
                trial.suite,
                trial.scenario,
                trial.index,
                trial.outcome,
                trial.target,
            ),
            *(trial.finished, trial.place, trial.passage, round(trial.score, 3)),
        )


def _scenarios(project: Project, text: str) -> list[Scenario]:
    newest = SuiteVersion.objects.filter(suite__project=project).order_by().values("suite")
    entries = SuiteEntry.objects.filter(
        suite_version__in=newest.annotate(newest=Max("pk")).values("newest")
    ).annotate(prompt=KeyTextTransform("prompt", "scenario_version__content"))
    matching = entries.filter(Q(scenario_version__scenario__key__icontains=text) | Q(prompt__icontains=text))
    scenarios = Scenario.objects.filter(pk__in=matching.values("scenario_version__scenario"))
    return list(scenarios.select_related("suite__project").order_by("suite__name", "key")[:MOST])


MOST_PAGES = MOST_CANDIDATES // MOST


@require_safe
@project_page()
def show_search(request: ProjectRequest) -> HttpResponseBase:
    """Show the project's suites, scenarios, runs and trials that contain a text."""
    project, filters = request.access.project, TrialSearch.of(request.GET)
    if table := chosen_table(request, {"trials": lambda: search_table(project, filters)}):
        return table
    key = key_of(filters.q)
    if key and (run := project.runs.filter(pk=key).first()):
        return redirect(run)
    number = request.GET.get("page", "")
    page = min(max(int(number), 1), MOST_PAGES) if number.isascii() and number.isdecimal() else 1
    results = find_matches(project, filters, page)
    previous, following = page_links(filters, page, results.trial_count)
    context = {
        "filters": filters,
        "results": results,
        "most": MOST,
        "most_trials": MOST_CANDIDATES,
        "first": (page - 1) * MOST + 1,
        "previous": previous,
        "following": following,
        "choices": search_choices(project),
        "places": PLACES,
        "place_names": dict(PLACES),
        "outcomes": [each for each in STATES if each[0] in OUTCOMES],
    }
    return render(request, "results/search/search.html", context)
