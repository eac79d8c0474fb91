"""Channels and the log of deliveries. URLs and secrets are write-only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from ninja import Path, Query, Router, Schema, Status
from pydantic import Field

from evalhub.lib.storable_text import Text
from evalhub.lib.timestamps import moment
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, declare_answers, not_found
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from evalhub.web.rest.request_body import Key, RequestBody
from runs.alerts.notifications.channels import ChannelRefused, change_channel, create_channel, delete_channel
from runs.models import Channel, Delivery
from runs.models.notification import ChannelKind, DeliveryState

router = Router(tags=["notifications"])

Recipients = Annotated[list[Text], Field(max_length=100)]
Events = Annotated[list[Text], Field(max_length=20)]
Address = Annotated[Text, Field(max_length=500, description="Write-only. URL of a webhook or of Slack.")]
Secret = Annotated[
    Text, Field(max_length=200, description="Write-only. whsec_ and base64; signs a webhook's messages.")
]


class ChannelOut(Schema):
    id: int
    name: str
    kind: str
    """email, webhook or slack."""
    recipients: list[str]
    host: str
    """Scheme and host of its URL; empty for e-mail."""
    events: list[str]
    created: str


class ChannelIn(RequestBody):
    """A new channel: recipients for email, an address for webhook and slack, a secret for webhook."""

    name: Annotated[Text, Field(max_length=80)]
    kind: ChannelKind
    events: Events
    recipients: Recipients = []
    address: Address = ""
    secret: Secret = ""


class ChannelChange(RequestBody):
    """The fields to change; omitted fields stay as they are."""

    name: Annotated[Text, Field(max_length=80)] | None = None
    events: Events | None = None
    recipients: Recipients | None = None
    address: Address | None = None
    secret: Secret | None = None


class DeliveryOut(Schema):
    id: int
    channel: int
    message: str
    """The id that the receiver sees, the same in every attempt."""
    event: str
    run: int | None
    state: str
    attempts: int
    created: str
    next_attempt: str | None
    finished: str | None
    status: int | None
    """HTTP status of the last attempt."""
    response: str


class DeliveryFilters(Cursor):
    """Filters of the list of deliveries."""

    channel: Key | None = None
    state: DeliveryState | None = None


@router.get("/channels", auth=Bearer(), response=declare_answers(PageOut[ChannelOut]))
def list_channels(request: ApiRequest, cursor: Query[Cursor]) -> dict[str, Any]:
    """List the project's channels."""
    rows = Channel.objects.filter(project=request.access.project)
    return page_of(request, rows, cursor, lambda channels: [_channel(each) for each in channels])


@router.post("/channels", auth=Bearer("manage"), response=declare_answers(ChannelOut, status=201))
def create(request: ApiRequest, body: ChannelIn) -> Status[dict[str, Any]]:
    """Create a channel."""
    values = body.model_dump(exclude={"kind"})
    try:
        channel = create_channel(request.access.project, body.kind.value, values, by=request.access.user)
    except ChannelRefused as refused:
        raise _channel_error(refused) from refused
    return Status(201, _channel(channel))


@router.patch("/channels/{channel_id}", auth=Bearer("manage"), response=declare_answers(ChannelOut))
def change(request: ApiRequest, channel_id: Path[Key], body: ChannelChange) -> dict[str, Any]:
    """Change a channel; its kind can't be changed."""
    values = {name: value for name, value in body if value is not None}
    if not values:
        raise ApiError(422, "Send at least one field to change.", id="channel/nothing")
    try:
        return _channel(change_channel(_find(request, channel_id), values, by=request.access.user))
    except ChannelRefused as refused:
        raise _channel_error(refused) from refused


@router.delete("/channels/{channel_id}", auth=Bearer("manage"), response=declare_answers(None, status=204))
def delete(request: ApiRequest, channel_id: Path[Key]) -> Status[None]:
    """Delete a channel with its log; what is queued for it is not sent."""
    delete_channel(_find(request, channel_id), by=request.access.user)
    return Status(204, None)


@router.get("/deliveries", auth=Bearer("manage"), response=declare_answers(PageOut[DeliveryOut]))
def list_deliveries(request: ApiRequest, filters: Query[DeliveryFilters]) -> dict[str, Any]:
    """List what was sent to channels, newest first, with the last response."""
    rows = Delivery.objects.filter(channel__project=request.access.project).select_related("notification")
    if filters.channel is not None:
        rows = rows.filter(channel=_find(request, filters.channel))
    if filters.state is not None:
        rows = rows.filter(state=filters.state)
    return page_of(request, rows, filters, _deliveries)


def _find(request: ApiRequest, channel_id: int) -> Channel:
    rows = Channel.objects.select_related("project")
    channel = rows.filter(project=request.access.project, pk=channel_id).first()
    if channel is None:
        raise not_found("channel", channel_id)
    return channel


def _channel(channel: Channel) -> dict[str, Any]:
    return {
        "id": channel.pk,
        "name": channel.name,
        "kind": channel.kind,
        "recipients": channel.recipients,
        "host": "" if channel.kind == ChannelKind.EMAIL else channel.destination.removesuffix("/…"),
        "events": channel.events,
        "created": moment(channel.created),
    }


def _deliveries(rows: Sequence[Delivery]) -> list[dict[str, Any]]:
    return [
        {
            "id": row.pk,
            "channel": row.channel_id,
            "message": row.uid,
            "event": row.notification.event,
            "run": row.notification.run_id,
            "state": row.state,
            "attempts": row.attempts,
            "created": moment(row.notification.at),
            "next_attempt": moment(row.next_attempt) if row.is_open else None,
            "finished": moment(row.finished),
            "status": row.status,
            "response": row.response,
        }
        for row in rows
    ]


def _channel_error(refused: ChannelRefused) -> ApiError:
    problems = [
        {"where": f"body.{name}", "what": sentence, "id": "channel/invalid"}
        for name, sentence in refused.problems.items()
    ]
    return ApiError(422, "The channel is not valid as it is.", id="channel/invalid", problems=problems)
