"""Define the form of a channel."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.http import QueryDict

from runs.alerts.notifications.channels import ChannelRefused
from runs.models import Channel
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
