"""The REST interface: its routers, and what goes wrong mapped once.

Every operation of a project has two addresses: below `/api/v1/` for the token's own project, and below
`/api/v1/projects/{project}/`. The OpenAPI document has each once, with both as servers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.operation import Operation

from evalhub import api_health
from evalhub.lib.busy import TryLater
from evalhub.teams import api as teams
from evalhub.web.rest.errors import ApiError, declare_refusals, drop_unused_schemas, error_body, problem_of
from evalhub.web.rest.json_bodies import JsonBodies
from evalhub.web.rest.schema import describe_fields
from runs.alerts import api as alerts
from runs.compare import api as measures
from runs.compare.guidance import api as guidance_comparison
from runs.errors import RequestError
from runs.exchange import results_api as results
from runs.exchange import sessions_api as sessions
from runs.results import usage_views as usage
from runs.results.run_page import api as runs
from runs.results.search import views as search
from runs.results.trial_page import api as trials
from runs.review import api as judge_review
from runs.review import reviews_api as reviews
from runs.suites import proofs_api as proofs
from runs.suites import uploads_api as uploads
from runs.targets import api as targets
from scenarios.api import guidance
from scenarios.formats.parsed import MOST_PROBLEMS, ScenarioFileError

PROJECT_ROUTERS = (
    uploads.router,
    guidance.router,
    guidance_comparison.router,
    targets.router,
    runs.router,
    results.router,
    sessions.router,
    trials.router,
    reviews.router,
    judge_review.router,
    measures.router,
    alerts.router,
    search.router,
    usage.router,
    proofs.router,
    teams.tokens,
)

FIRST_MODULES = {
    "runs.alerts.api": "runs_api_alerts",
    "runs.compare.api": "runs_api_measures",
    "runs.compare.guidance.api": "runs_api_guidance_comparison",
    "runs.exchange.results_api": "runs_api_results",
    "runs.exchange.sessions_api": "runs_api_sessions",
    "runs.results.run_page.api": "runs_api_runs",
    "runs.results.search.views": "runs_api_search",
    "runs.results.trial_page.api": "runs_api_trials",
    "runs.results.usage_views": "runs_api_usage",
    "runs.review.api": "runs_api_judge_review",
    "runs.review.reviews_api": "runs_api_judging",
    "runs.suites.proofs_api": "runs_api_proofs",
    "runs.suites.uploads_api": "runs_api_uploads",
    "runs.targets.api": "runs_api_targets",
}
"""Where operations lay first: their ids, which generated clients use as names, stay when a module moves."""


class _Api(NinjaAPI):
    """Keeps the ids of operations."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        module = operation.view_func.__module__
        return f"{FIRST_MODULES.get(module, module.replace('.', '_'))}_{operation.view_func.__name__}"


api = _Api(
    title="evalhub",
    version="1",
    description="Suites, runs, trials and what came of them. docs/api.md says how to begin.",
    urls_namespace="api",
    docs_url=None,
    openapi_url=None,
    parser=JsonBodies(),
    servers=[
        {"url": "/api/v1", "description": "The token's own project"},
        {
            "url": "/api/v1/projects/{project}",
            "description": "The same, with the project named; not for /projects and /health",
            "variables": {"project": {"default": "default"}},
        },
    ],
)
for router in (teams.router, api_health.router, *PROJECT_ROUTERS):
    api.add_router("", router)


@cache
def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document, with paths relative to its servers; made once, as that takes a second."""
    document = dict(api.get_openapi_schema(path_prefix=""))
    declare_refusals(document)
    drop_unused_schemas(document)
    describe_fields(document)
    return document


def _answer(request: HttpRequest, status: int, body: dict[str, Any]) -> HttpResponse:
    return api.create_response(request, body, status=status)


def _register_handler(error: type[Exception]) -> Callable[..., Any]:
    return api.exception_handler(error)


@_register_handler(ApiError)
def _answer_api_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    return _answer(request, error.status, error_body(str(error), error.id, error.problems))


@_register_handler(ScenarioFileError)
def _bad_file(request: HttpRequest, error: ScenarioFileError) -> HttpResponse:
    status = (
        413
        if any(
            problem.id in ("bundle/too-large", "bundle/too-many-files", "format/too-large")
            for problem in error.problems
        )
        else 422
    )
    problems = [problem.as_json() for problem in error.problems]
    return _answer(request, status, error_body("The files have errors.", "files/refused", problems))


@_register_handler(RequestError)
def _bad_request(request: HttpRequest, error: RequestError) -> HttpResponse:
    return _answer(request, 422, error_body(str(error), error.id))


@_register_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    problems = [problem_of(each) for each in error.errors[:MOST_PROBLEMS]]
    return _answer(request, 422, error_body("The request is not valid as it is.", "api/invalid", problems))


@_register_handler(AuthenticationError)
def _nobody(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    sentence = (
        "There is no valid token. Send one as 'Authorization: Bearer …'; an admin or create_token makes them."
    )
    response = _answer(request, 401, error_body(sentence, "api/unauthenticated"))
    response["WWW-Authenticate"] = "Bearer"
    return response


@_register_handler(HttpError)
def _unreadable(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, RequestDataTooBig):
        return _answer(request, 413, error_body(str(error.__cause__), "api/too-large"))
    sentence = "The body isn't JSON that can be read. Send one JSON object."
    return _answer(request, error.status_code, error_body(sentence, "api/unreadable"))


@_register_handler(RequestDataTooBig)
def _too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE >> 20
    sentence = f"The body is larger than {most} MB. Send less at once."
    return _answer(request, 413, error_body(sentence, "api/too-large"))


@_register_handler(TryLater)
def _busy(request: HttpRequest, error: TryLater) -> HttpResponse:
    return _answer(request, 503, error_body(str(error), "api/busy"))


@_register_handler(Http404)
def _missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return _answer(request, 404, error_body("There is nothing at this address.", "api/not-found"))
