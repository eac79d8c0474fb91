"""The search page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Max, Q
from django.db.models.fields.json import KeyTextTransform
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from evalhub.teams.models import Project
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.csv_export import Cell, Table, chosen_table
from evalhub.web.paging import key_of
from runs.models import Run
from runs.results.run_filters import OUTCOMES, STATES, RunListFilters
from runs.results.run_list import matching_runs
from runs.results.search.named_search import TrialSearch, find_trials
from runs.results.search.trial_search import MOST_CANDIDATES, FoundTrial
from scenarios.models import Scenario, Suite, SuiteEntry, SuiteVersion

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
