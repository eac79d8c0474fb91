"""The forms of alerts, of one and of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import QueryDict

from runs.alerts.alert_filters import NOBODY
from runs.models import Alert
from runs.models.comparison import AlertState

TITLES = {each.value: each.label for each in AlertState} | {AlertState.WONT_FIX.value: "Won't fix, intended"}
"""The states of any alert; that of one alert is `Alert.state_label`."""


class AlertForm(forms.Form):
    """An alert's triage: only what was edited is saved."""

    state = forms.ChoiceField(
        choices=AlertState.choices,
        required=False,
        error_messages={"invalid_choice": "“%(value)s” is not an alert state. Use one of the buttons."},
    )
    assignee = forms.ChoiceField(
        required=False,
        error_messages={"invalid_choice": "This person is not a member of the project. Choose a member."},
    )
    note = forms.CharField(required=False, max_length=5000, widget=forms.Textarea(attrs={"rows": 2}))
    link = forms.URLField(
        required=False,
        max_length=200,
        assume_scheme="https",
        error_messages={"invalid": "Enter a full URL, such as https://tracker.example/123."},
    )

    def __init__(self, members: Mapping[str, Any], alert: Alert, data: QueryDict | None = None) -> None:
        """Take the project's members by name, so that a page with many alerts queries them once."""
        self.alert, self.members = alert, members
        initial = {"state": alert.state, "note": alert.note, "link": alert.link}
        initial["assignee"] = alert.assignee.get_username() if alert.assignee else ""
        self.drawn = {name: _form_text(value) for name, value in initial.items()}
        """Stored values that the form sends back, to tell what was edited."""
        super().__init__(data, initial=initial, auto_id=f"alert-{alert.pk}-%s")
        field = self.fields["assignee"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", "Nobody"), *((name, name) for name in members)]
            if (name := initial["assignee"]) and name not in members:
                field.choices += [(name, f"{name} (no longer a member)")]

    def clean_assignee(self) -> Any:
        """Return the member, None for unassigned."""
        return self.members.get(self.cleaned_data["assignee"])

    def clean_link(self) -> str:
        """Return the link. Raises `ValidationError` unless it is a web URL."""
        link: str = self.cleaned_data["link"]
        if link and not link.startswith(("https://", "http://")):
            raise forms.ValidationError("Enter a URL that starts with https:// or http://.")
        return link

    def _is_edited(self, name: str) -> bool:
        """Return whether a field differs from what was drawn; without its button the state doesn't."""
        sent = self.data.get(name)
        if sent is None or (sent == "" and name == "state"):
            return False
        return _form_text(sent) != _form_text(self.data.get(f"was-{name}", self.drawn[name]))

    def changes(self) -> dict[str, Any]:
        """Return the edited fields that differ from the stored ones. Requires a valid form."""
        edited = {name: value for name, value in self.cleaned_data.items() if self._is_edited(name)}
        return {name: value for name, value in edited.items() if getattr(self.alert, name) != value}


def _form_text(value: Any) -> str:
    """Return a value as a form sends it, with normalised line ends."""
    return "" if value is None else str(value).replace("\r\n", "\n").strip()


class BulkForm(forms.Form):
    """A change of several alerts; empty fields stay as they are."""

    state = forms.ChoiceField(choices=[("", "Keep state"), *TITLES.items()], required=False)
    assignee = forms.ChoiceField(required=False)

    def __init__(self, members: Mapping[str, Any], data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="bulk-%s")
        self.members = members
        field = self.fields["assignee"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", "Keep assignee"), (NOBODY, "Nobody"), *((name, name) for name in members)]

    def changes(self) -> dict[str, Any]:
        """Return what to change. Requires a valid form."""
        filled = {name: value for name, value in self.cleaned_data.items() if value}
        if "assignee" in filled:
            filled["assignee"] = self.members.get(filled["assignee"])
        return filled
