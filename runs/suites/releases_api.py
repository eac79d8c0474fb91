"""Classes of a suite's scenarios, and its release rule."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Path, Query, Router, Schema, Status
from pydantic import Field

from evalhub.lib.storable_text import Text
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers, not_found
from evalhub.web.rest.request_body import RequestBody
from runs.exchange.exports.scenario_classes import scenarios_json, suite_strips
from runs.models import Target
from runs.results.lookup import find_suite
from runs.results.release_rule import MOST_TRIALS, remove_release_rule, set_release_rule
from runs.results.schemas import ScenarioClassOut
from scenarios.models import Suite

router = Router(tags=["suites"])


class OnTarget(RequestBody):
    target: Text = ""
    """A target's name. Default: that of the newest run."""


class ClassesOut(Schema):
    suite: str
    target: str | None
    """Null if no run exists."""
    scenarios: list[ScenarioClassOut]


class ReleaseRule(RequestBody):
    """A release needs a mean pass^k of at least the threshold."""

    k: Annotated[int, Field(ge=1, le=MOST_TRIALS)]
    threshold: Annotated[float, Field(gt=0, le=1)]


class ReleaseRuleOut(Schema):
    """Both are null without a rule."""

    k: int | None
    threshold: float | None


@router.get("/suites/{slug}/classes", auth=Bearer(), response=declare_answers(ClassesOut))
def get_classes(request: ApiRequest, slug: Path[Text], query: Query[OnTarget]) -> dict[str, Any]:
    """Get the class of each scenario of a suite's newest version, by its last trials on one target."""
    suite = find_suite(request, slug)
    ran = Target.objects.filter(runs__suite=suite).order_by("-runs__pk")
    target = (ran.filter(name=query.target) if query.target else ran).first()
    if query.target and target is None:
        raise not_found("run of the suite on target", query.target)
    version = suite.versions.select_related("suite").first()
    scenarios = scenarios_json(suite, suite_strips(version, target)) if version and target else []
    return {"suite": suite.slug, "target": target.name if target else None, "scenarios": scenarios}


@router.get("/suites/{slug}/release-rule", auth=Bearer(), response=declare_answers(ReleaseRuleOut))
def get_release_rule(request: ApiRequest, slug: Path[Text]) -> dict[str, Any]:
    """Get a suite's release rule."""
    return _rule_json(find_suite(request, slug))


@router.put("/suites/{slug}/release-rule", auth=Bearer("upload"), response=declare_answers(ReleaseRuleOut))
def put_release_rule(request: ApiRequest, slug: Path[Text], rule: ReleaseRule) -> dict[str, Any]:
    """Set a suite's release rule."""
    suite = find_suite(request, slug)
    set_release_rule(suite, rule.k, rule.threshold, by=request.access.user)
    return _rule_json(suite)


@router.delete(
    "/suites/{slug}/release-rule", auth=Bearer("upload"), response=declare_answers(None, status=204)
)
def delete_release_rule(request: ApiRequest, slug: Path[Text]) -> Status[None]:
    """Remove a suite's release rule."""
    remove_release_rule(find_suite(request, slug), by=request.access.user)
    return Status(204, None)


def _rule_json(suite: Suite) -> dict[str, Any]:
    return {"k": suite.release_k, "threshold": suite.release_threshold}
