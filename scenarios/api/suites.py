"""Endpoints of suites and their versions."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from ninja import Path, Query, Router

from evalhub.lib.storable_text import Text
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers, not_found
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from evalhub.web.rest.request_body import Key
from scenarios.api.schemas import (
    SuiteOut,
    VersionOut,
    VersionWithScenariosOut,
    scenario_versions_json,
    suite_json,
    version_json,
)
from scenarios.models import Suite, SuiteVersion

router = Router(tags=["suites"])


def find_suite(request: ApiRequest, slug: str) -> Suite:
    """Return the project's suite. Raises `ApiError` 404."""
    suite = Suite.objects.select_related("project").filter(project=request.access.project, slug=slug).first()
    if suite is None:
        raise not_found("suite", slug)
    return suite


def _versions(suite: Suite) -> QuerySet[SuiteVersion]:
    return suite.versions.select_related("suite", "created_by")


@router.get("/suites", auth=Bearer(), response=declare_answers(PageOut[SuiteOut]))
def list_suites(request: ApiRequest, cursor: Query[Cursor]) -> dict[str, Any]:
    """The project's suites, newest first."""
    suites = Suite.objects.select_related("project").filter(project=request.access.project)
    return page_of(request, suites, cursor, lambda page: [suite_json(suite) for suite in page])


@router.get("/suites/{slug}", auth=Bearer(), response=declare_answers(SuiteOut))
def get_suite(request: ApiRequest, slug: Path[Text]) -> dict[str, Any]:
    """One suite."""
    return suite_json(find_suite(request, slug))


@router.get(
    "/suites/{slug}/versions", auth=Bearer(), response=declare_answers(PageOut[VersionOut]), tags=["versions"]
)
def list_versions(request: ApiRequest, slug: Path[Text], cursor: Query[Cursor]) -> dict[str, Any]:
    """The versions of a suite, newest first."""
    versions = _versions(find_suite(request, slug))
    return page_of(request, versions, cursor, lambda page: [version_json(each) for each in page])


@router.get(
    "/suites/{slug}/versions/{number}",
    auth=Bearer(),
    response=declare_answers(VersionWithScenariosOut),
    tags=["versions"],
)
def get_version(request: ApiRequest, slug: Path[Text], number: Path[Key]) -> dict[str, Any]:
    """One version of a suite with its scenarios in their order."""
    version = _versions(find_suite(request, slug)).filter(number=number).first()
    if version is None:
        raise not_found("version", number)
    entries = version.entries.select_related("scenario_version__scenario", "scenario_version__fixture")
    return {
        **version_json(version),
        "scenarios": scenario_versions_json(
            [entry.scenario_version for entry in entries.defer("scenario_version__fixture__archive")]
        ),
    }
