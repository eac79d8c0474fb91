"""Views of channels: list, add, edit, test, delete, and the log of deliveries; and the form of a channel."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evalhub.teams.access import ProjectRequest, project_page
from evalhub.web.middleware import page_or_fragment
from evalhub.web.paging import page_below
from runs.alerts.notifications import channels
from runs.alerts.notifications.channels import ChannelRefused, new_secret
from runs.models import Channel, Delivery
from runs.models.notification import CHOSEN_EVENTS, ChannelKind

KEPT = "Leave it empty to keep the stored one, which is not shown."
HINTS = {
    "recipients": "Comma-separated. Assignments go to the assigned person instead.",
    "address": "Where messages are posted to. It is not shown again.",
    "secret": "Signs the messages: whsec_ and random bytes in base64. Generate one, or enter your own. "
    "It is not shown again after saving.",
}


class WriteOnlyInput(forms.TextInput):
    """A field that never renders a value, not even one that was just sent."""

    def format_value(self, value: Any) -> None:
        """Return nothing."""


class ChannelForm(forms.Form):
    """A channel of one kind; stored addresses and secrets are never rendered."""

    name = forms.CharField(max_length=80)
    recipients = forms.CharField(required=False, max_length=2000, widget=forms.Textarea(attrs={"rows": 2}))
    address = forms.CharField(required=False, max_length=500, widget=WriteOnlyInput)
    secret = forms.CharField(required=False, max_length=200, widget=forms.PasswordInput)
    events = forms.MultipleChoiceField(
        choices=[(event.value, event.label) for event in CHOSEN_EVENTS], required=False
    )

    def __init__(
        self,
        kind: str,
        data: QueryDict | None = None,
        *,
        channel: Channel | None = None,
        filled: QueryDict | None = None,
    ) -> None:
        """Take a channel's fields of its kind; an empty form starts with regressions and failed runs.

        `filled` has what was filled in before a secret was made, with the secret: the only time that one is shown.
        """
        super().__init__(data, initial=_initial(channel) if filled is None else _initial_of(filled))
        for name in _left_out(kind):
            del self.fields[name]
        for name in ("address", "secret"):
            if name in self.fields:
                attributes = {"autocomplete": "new-password", "spellcheck": "false"}
                self.fields[name].widget.attrs.update(attributes)
        for name, hint in HINTS.items():
            if name in self.fields:
                has_stored = channel is not None and name != "recipients"
                self.fields[name].help_text = KEPT if has_stored else hint
        if filled is not None:
            for name in ("address", "secret"):
                self.fields[name].widget = forms.TextInput(attrs=self.fields[name].widget.attrs)
            secret = self.fields["secret"]
            secret.widget.attrs["readonly"] = True
            secret.help_text = "Copy it to the receiver now. It is not shown again after you save."
        for name in self.fields:
            self.fields[name].widget.attrs["aria-describedby"] = f"{name}-note"

    @property
    def chosen_events(self) -> list[str]:
        """The events that are ticked."""
        value = self["events"].value()
        return list(value) if value else []

    def values(self) -> dict[str, Any]:
        """Return the fields as `create_channel` takes them. Requires a valid form."""
        values: dict[str, Any] = dict(self.cleaned_data)
        if "recipients" in values:
            values["recipients"] = [each for each in re.split(r"[,;\s]+", values["recipients"]) if each]
        return values

    def take(self, refused: ChannelRefused) -> None:
        """Show each problem beside its field."""
        for name, sentence in refused.problems.items():
            self.add_error(name if name in self.fields else None, sentence)


def _initial(channel: Channel | None) -> dict[str, Any]:
    if channel is None:
        return {"events": ["regression", "run_failed"]}
    return {
        "name": channel.name,
        "recipients": ", ".join(channel.recipients),
        "events": channel.events,
    }


def _initial_of(filled: QueryDict) -> dict[str, Any]:
    texts = {name: filled.get(name, "") for name in ("name", "recipients", "address", "secret")}
    return {**texts, "events": filled.getlist("events")}


def _left_out(kind: str) -> tuple[str, ...]:
    """Return the fields that a kind has no use for."""
    if kind == ChannelKind.EMAIL:
        return ("address", "secret")
    return ("recipients", "secret") if kind == ChannelKind.SLACK else ("recipients",)


@require_safe
@project_page()
def channel_list(request: ProjectRequest) -> HttpResponseBase:
    """List the project's channels."""
    channels = Channel.objects.filter(project=request.access.project)
    context = {
        "channels": channels,
        "kinds": ChannelKind.choices,
        "may_manage": request.access.may("manage"),
    }
    return render(request, "alerts/notifications/channels.html", context)


@sensitive_post_parameters("address", "secret")
@require_http_methods(["GET", "HEAD", "POST"])
@project_page("manage")
def channel_new(request: ProjectRequest, kind: str) -> HttpResponse:
    """Add a channel of a kind."""
    if kind not in ChannelKind.values:
        raise Http404
    if request.method != "POST":
        return _form_page(request, kind, ChannelForm(kind))
    form = ChannelForm(kind, request.POST)
    if _generates(request, kind):
        return _form_page(request, kind, _with_new_secret(kind, request.POST))
    if form.is_valid():
        try:
            channel = channels.create_channel(request.access.project, kind, form.values(), by=request.user)
        except channels.ChannelRefused as refused:
            form.take(refused)
        else:
            messages.success(request, f"Added {channel.name}. Send a test to see whether it works.")
            return redirect("channel-detail", request.access.project.slug, channel.pk)
    return _form_page(request, kind, form, status=422)


@sensitive_post_parameters("address", "secret")
@require_http_methods(["GET", "HEAD", "POST"])
@project_page("manage")
def channel_detail(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show and change a channel, with the log of what was sent to it."""
    channel = _channel(request, pk)
    if request.method != "POST":
        return _channel_page(request, channel, ChannelForm(channel.kind, channel=channel))
    form = ChannelForm(channel.kind, request.POST, channel=channel)
    if _generates(request, channel.kind):
        return _channel_page(request, channel, _with_new_secret(channel.kind, request.POST, channel))
    if form.is_valid():
        try:
            channels.change_channel(channel, form.values(), by=request.user)
        except channels.ChannelRefused as refused:
            form.take(refused)
        else:
            messages.success(request, f"Saved {channel.name}.")
            return redirect("channel-detail", request.access.project.slug, channel.pk)
    return _channel_page(request, _channel(request, pk), form, status=422)


@require_POST
@project_page("manage")
def channel_test(request: ProjectRequest, pk: int) -> HttpResponse:
    """Send a test message by a worker."""
    channel = _channel(request, pk)
    channels.send_test(channel, by=request.user)
    if request.htmx:
        return _channel_page(request, channel, ChannelForm(channel.kind, channel=channel))
    return redirect("channel-detail", request.access.project.slug, channel.pk)


@require_POST
@project_page("manage")
def channel_delete(request: ProjectRequest, pk: int) -> HttpResponse:
    """Delete a channel with its log."""
    channel = _channel(request, pk)
    channels.delete_channel(channel, by=request.user)
    messages.success(request, f"Removed {channel.name}.")
    return redirect("channel-list", request.access.project.slug)


@require_POST
@project_page("manage")
def delivery_again(request: ProjectRequest, pk: int) -> HttpResponse:
    """Queue a failed delivery again."""
    rows = Delivery.objects.select_related("channel__project")
    delivery = get_object_or_404(rows, channel__project=request.access.project, pk=pk)
    if channels.send_again(delivery, by=request.user):
        messages.success(request, "Queued again.")
    else:
        messages.error(request, "Only failed messages can be sent again.")
    return redirect("channel-detail", request.access.project.slug, delivery.channel_id)


def _generates(request: ProjectRequest, kind: str) -> bool:
    return "generate" in request.POST and kind == ChannelKind.WEBHOOK


@sensitive_variables()
def _with_new_secret(kind: str, posted: QueryDict, channel: Channel | None = None) -> ChannelForm:
    """Return the form as it was filled in, without its problems, and with a new secret; nothing is stored."""
    filled = posted.copy()
    filled["secret"] = new_secret()
    return ChannelForm(kind, channel=channel, filled=filled)


def _channel(request: ProjectRequest, pk: int) -> Channel:
    rows = Channel.objects.select_related("project")
    return get_object_or_404(rows, project=request.access.project, pk=pk)


def _form_page(request: ProjectRequest, kind: str, form: ChannelForm, *, status: int = 200) -> HttpResponse:
    return render(request, "alerts/notifications/channel_new.html", _form_context(kind, form), status=status)


def _channel_page(
    request: ProjectRequest, channel: Channel, form: ChannelForm, *, status: int = 200
) -> HttpResponse:
    """Render a channel's page; htmx gets the log, which polls while something is open."""
    rows = Delivery.objects.filter(channel=channel).select_related("notification")
    page = page_below(rows, request.GET.get("before", ""))
    context = {
        "channel": channel,
        "deliveries": page.rows,
        "older": page.older(request.GET) if page.before else "",
        # Those that wait for a later attempt change nothing for minutes.
        "is_open": page.first and any(each.is_open and not each.response for each in page.rows),
        **_form_context(channel.kind, form),
    }
    page_name, fragment = "alerts/notifications/channel.html", "alerts/notifications/_deliveries.html"
    return page_or_fragment(request, page_name, fragment, context, status=status)


def _form_context(kind: str, form: ChannelForm) -> dict[str, Any]:
    return {
        "form": form,
        "kind": ChannelKind(kind),
        "has_mail_server": settings.MAIL_SERVER,
        "may_manage": True,
    }
