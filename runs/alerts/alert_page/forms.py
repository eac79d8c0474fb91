"""Define the forms of targets, results, prices and regressions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django import forms
from django.http import QueryDict

from evalhub.teams.models import Project
from runs.alerts.alert_filters import NOBODY
from runs.alerts.triage import LONGEST_TAG, tags_of
from runs.compare.release_rule import MOST_TRIALS
from runs.models import Alert, ModelPrice
from runs.models.comparison import AlertState


class SentenceForm(forms.Form):
    """A form whose first error is shown as a sentence."""

    @property
    def sentence(self) -> str:
        """Return the first error; empty for none."""
        return next((str(errors[0]) for errors in self.errors.values()), "")


class TargetsFileForm(forms.Form):
    """A targets file."""

    file = forms.FileField(
        error_messages={
            "required": "Choose a file.",
            "empty": "The file is empty. Choose another file.",
        }
    )


class AlertForm(forms.Form):
    """An alert's triage; omitted fields keep their values."""

    state = forms.ChoiceField(
        choices=AlertState.choices,
        required=False,
        error_messages={"invalid_choice": "“%(value)s” is not an alert state. Use one of the buttons."},
    )
    assignee = forms.ChoiceField(
        required=False,
        error_messages={"invalid_choice": "This person is not a member of the project. Choose a member."},
    )
    due = forms.DateField(
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        error_messages={"invalid": "Enter a date as YYYY-MM-DD, such as 2026-11-30."},
    )
    tags = forms.CharField(
        required=False, max_length=500, widget=forms.TextInput(attrs={"placeholder": "Comma-separated"})
    )
    starred = forms.CharField(required=False, max_length=5)
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
        initial = {name: getattr(alert, name) for name in ("state", "due", "note", "link")}
        initial["assignee"] = alert.assignee.get_username() if alert.assignee else ""
        initial |= {"tags": ", ".join(alert.tags), "starred": "yes" if alert.starred else "no"}
        self.drawn = {name: _written(value) for name, value in initial.items()}
        """Stored values that the form sends back, to detect concurrent edits."""
        super().__init__(data, initial=initial, auto_id=f"alert-{alert.pk}-%s")
        field = self.fields["assignee"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", "Nobody"), *((name, name) for name in members)]
            if (name := initial["assignee"]) and name not in members:
                field.choices += [(name, f"{name} (no longer a member)")]

    def clean_assignee(self) -> Any:
        """Return the member, None for unassigned."""
        return self.members.get(self.cleaned_data["assignee"])

    def clean_tags(self) -> list[str]:
        """Return the tags, each once."""
        return tags_of(self.cleaned_data["tags"])

    def clean_starred(self) -> bool:
        """Return whether the star is set."""
        return bool(self.cleaned_data["starred"] == "yes")

    def clean_link(self) -> str:
        """Return the link. Raises `ValidationError` unless it is a web URL."""
        link: str = self.cleaned_data["link"]
        if link and not link.startswith(("https://", "http://")):
            raise forms.ValidationError("Enter a URL that starts with https:// or http://.")
        return link

    def clean(self) -> None:
        """Refuse to overwrite changes made since the form was rendered."""
        for name, kept in self.drawn.items():
            if self._is_touched(name) and kept not in (self._was(name), _written(self.data[name])):
                self.add_error(
                    name,
                    f"Someone changed the {'due date' if name == 'due' else name} to “{kept}” in the meantime. Save again to overwrite it.",
                )

    def _was(self, name: str) -> str:
        """Return a field's value at rendering, by default the stored one."""
        return _written(self.data.get(f"was-{name}", self.drawn[name]))

    def _is_touched(self, name: str) -> bool:
        """Return whether a field was edited; without their buttons state and star were not."""
        sent = self.data.get(name)
        return (
            sent is not None
            and (sent != "" or name not in ("state", "starred"))
            and _written(sent) != self._was(name)
        )

    def changes(self) -> dict[str, Any]:
        """Return the edited fields that differ from the stored ones. Requires a valid form."""
        given = {name: value for name, value in self.cleaned_data.items() if self._is_touched(name)}
        return {name: value for name, value in given.items() if getattr(self.alert, name) != value}


def _written(value: Any) -> str:
    """Return a value as a form sends it, with normalised line ends."""
    return "" if value is None else str(value).replace("\r\n", "\n").strip()


class BulkForm(forms.Form):
    """A change of several alerts; empty fields stay as they are."""

    state = forms.ChoiceField(choices=[("", "Keep state"), *AlertState.choices], required=False)
    assignee = forms.ChoiceField(required=False)
    tag = forms.CharField(
        required=False, max_length=LONGEST_TAG, widget=forms.TextInput(attrs={"placeholder": "Add tag"})
    )

    def __init__(self, members: Mapping[str, Any], data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="bulk-%s")
        self.members = members
        field = self.fields["assignee"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", "Keep assignee"), (NOBODY, "Nobody"), *((name, name) for name in members)]

    def changes(self) -> dict[str, Any]:
        """Return what to change, with `tag` to add. Requires a valid form."""
        given = {name: value for name, value in self.cleaned_data.items() if value}
        if "assignee" in given:
            given["assignee"] = self.members.get(given["assignee"])
        return given


class ResultsFileForm(forms.Form):
    """Results of another program."""

    file = forms.FileField(
        error_messages={
            "required": "Choose a file.",
            "empty": "The file is empty. Choose another file.",
        }
    )


class PriceForm(forms.Form):
    """A model's price from a date, in US dollars per million tokens."""

    model = forms.CharField(max_length=200)
    input_per_million = forms.FloatField(
        min_value=0, error_messages={"invalid": "Enter a number, such as 2.50."}
    )
    output_per_million = forms.FloatField(
        min_value=0, error_messages={"invalid": "Enter a number, such as 10."}
    )
    cache_read_per_million = forms.FloatField(
        min_value=0, required=False, error_messages={"invalid": "Enter a number, such as 0.25."}
    )
    cache_write_per_million = forms.FloatField(
        min_value=0, required=False, error_messages={"invalid": "Enter a number, such as 3.75."}
    )
    cache_write_1h_per_million = forms.FloatField(
        min_value=0, required=False, error_messages={"invalid": "Enter a number, such as 6."}
    )
    reasoning_per_million = forms.FloatField(
        min_value=0, required=False, error_messages={"invalid": "Enter a number, such as 10."}
    )
    since = forms.DateField(
        initial=date.today,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        error_messages={"invalid": "Enter a date as YYYY-MM-DD, such as 2026-11-30."},
    )

    def save(self, project: Project) -> ModelPrice:
        """Store the price. Raises IntegrityError if the model has a price from that date."""
        return ModelPrice.objects.create(project=project, **self.cleaned_data)


class ReleaseRuleForm(forms.Form):
    """A suite's release rule: k, and the least mean pass^k in percent."""

    k = forms.IntegerField(
        min_value=1,
        max_value=MOST_TRIALS,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"),
            f"Trials: enter a number from 1 to {MOST_TRIALS:,}.",
        ),
    )
    percent = forms.FloatField(
        min_value=0.1,
        max_value=100,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"),
            "Threshold: enter a percentage from 0.1 to 100.",
        ),
    )


class ProofForm(forms.Form):
    """What judges may cost in a proof; empty asks none."""

    max_usd = forms.FloatField(
        required=False,
        min_value=0.01,
        max_value=10_000,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            "Judges' budget: enter dollars from 0.01 to 10,000, or nothing.",
        ),
    )


class AaForm(forms.Form):
    """An A/A pair: a target's name, and the trials of each scenario."""

    target = forms.CharField(error_messages={"required": "Choose a target."})
    trials = forms.IntegerField(
        min_value=1,
        max_value=MOST_TRIALS,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"),
            f"Trials: enter a number from 1 to {MOST_TRIALS:,}.",
        ),
    )
