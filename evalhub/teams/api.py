"""REST: the token's project, and tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.utils import timezone
from ninja import Path, Query, Router, Schema, Status
from pydantic import AwareDatetime, BeforeValidator, Field

from evalhub.lib.storable_text import Text
from evalhub.lib.value import Moment
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.teams.models import Priority, Project
from evalhub.teams.roles import Role
from evalhub.teams.tokens import TokenRefused, issue_token, revoke_token, tokens_of
from evalhub.web.rest.errors import ApiError, declare_answers, not_found
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from evalhub.web.rest.request_body import Key, Name, RequestBody
from evalhub.web.rest.schema import Username

router = Router(tags=["projects"])
tokens = Router(tags=["tokens"])


class ProjectOut(Schema):
    slug: str
    name: str
    command_pattern: str
    judge: str
    smallest_effect: float
    """The smallest change of a rate or score that counts, 0 to 1."""
    smallest_effects: dict[str, float]
    """The same by measure, where it differs."""
    most_trials: int | None
    """Most trials at once over all of its runs; null for no limit."""
    priority: Annotated[str, BeforeValidator(lambda number: Priority(number).label)]
    """low, normal or high: which projects get free lanes first."""
    notify_when: str
    """When channels hear of an alert: `confirmed` or `at_once`."""
    alert_dearer: bool
    """Whether trials that cost more than before raise an alert."""
    alert_slower: bool
    """Whether trials that take longer than before raise an alert."""
    month_usd: float | None
    """Budget of a calendar month; null for no limit."""
    judge_labels: int
    """Passing and failing labels that a calibrated judge needs, each."""
    judge_rate: float
    """Lowest end of both of its 95 % intervals, 0 to 1."""
    only_calibrated_judges: bool
    """Whether an uncalibrated judge informs and does not decide."""
    diagnosis_thresholds: dict[str, float]
    """Thresholds of the diagnosis that the project sets, by name."""
    role: str
    """What the token may do in it."""
    url: str = Field(validation_alias="get_absolute_url")

    @staticmethod
    def resolve_role(project: Project, context: Any) -> str:
        return str(context["request"].access.role)


class TokenOut(Schema):
    id: int
    name: str
    prefix: str
    role: str
    by: Username = Field(validation_alias="user")
    created: Moment
    expires: Moment | None
    last_used: Moment | None
    revoked: Moment | None


class NewTokenOut(TokenOut):
    secret: str
    """Shown once; it cannot be read again."""


class TokenIn(RequestBody):
    """The name, role and expiry of a new token."""

    name: Name
    role: Role = Role.VIEWER
    expires: AwareDatetime | None = None


@router.get("/projects", auth=Bearer(), response=declare_answers(PageOut[ProjectOut]))
def list_projects(request: ApiRequest) -> dict[str, Any]:
    """The projects that the token is for: one."""
    return {"items": [request.access.project], "next": None}


@router.get("/projects/{slug}", auth=Bearer(), response=declare_answers(ProjectOut))
def get_project(request: ApiRequest, slug: Path[Text]) -> Project:
    """One project."""
    if slug != request.access.project.slug:
        raise not_found("project", slug)
    return request.access.project


@tokens.get("/tokens", auth=Bearer(), response=declare_answers(PageOut[TokenOut]))
def list_tokens(request: ApiRequest, cursor: Query[Cursor]) -> dict[str, Any]:
    """One's own tokens; for an admin those of the whole project."""
    return page_of(request, tokens_of(request.access), cursor)


@tokens.post("/tokens", auth=Bearer(), response=declare_answers(NewTokenOut, status=201))
def create_token(request: ApiRequest, body: TokenIn) -> Status[dict[str, Any]]:
    """Create a token for yourself; its role and expiry can't exceed those of the token you use."""
    try:
        token, secret = issue_token(
            request.access,
            name=body.name[:80],
            role=body.role.value,
            expires=_utc(body.expires),
            latest=request.token.expires,
        )
    except TokenRefused as error:
        raise ApiError(403, str(error), id="token/too-much") from error
    return Status(201, vars(token) | {"user": token.user, "secret": secret})


@tokens.delete("/tokens/{token_id}", auth=Bearer(), response=declare_answers(None, status=204))
def revoke(request: ApiRequest, token_id: Path[Key]) -> Status[None]:
    """Revoke a token at once: your own, or as an admin any of the project; its role can't be above your token's."""
    try:
        was_revoked = revoke_token(request.access, token_id, within=request.token.role)
    except TokenRefused as error:
        raise ApiError(403, str(error), id="token/too-much") from error
    if not was_revoked:
        raise not_found("token", token_id)
    return Status(204, None)


def _utc(at: datetime | None) -> datetime | None:
    """Return the moment in UTC. Raises `ApiError` for one at the very ends of the calendar, which has none."""
    try:
        return at.astimezone(timezone.get_default_timezone()) if at else None
    except OverflowError:
        raise ApiError(
            422, "The expiry date is too far away. Choose an earlier one.", id="token/expires"
        ) from None
