"""The forms of runs: asking for some, targets, and what is decided about regressions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import QueryDict

from evalhub.teams.models import Project
from runs.models import Alert, ModelPrice, Target
from runs.models.comparison import AlertState
from runs.options import RunOptions, Selection
from runs.planning import Request
from scenarios.models import Guidance, Suite

NUMBER = {"invalid": "Write a whole number, such as 3."}


def words(text: str) -> tuple[str, ...]:
    """Return the words of a comma list."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


class RunForm(forms.Form):
    """What to run, on what, how often."""

    suite = forms.ModelChoiceField(Suite.objects.none(), to_field_name="slug", empty_label=None)
    guidance = forms.ModelChoiceField(Guidance.objects.none(), required=False, empty_label="As last uploaded")
    targets = forms.ModelMultipleChoiceField(
        Target.objects.none(),
        to_field_name="name",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"invalid_choice": "There is no target called “%(value)s” that could run this."},
    )
    models = forms.CharField(required=False, max_length=1000)
    trials = forms.IntegerField(min_value=1, max_value=1000, initial=1, error_messages=NUMBER)
    concurrency = forms.IntegerField(min_value=1, max_value=1000, required=False, error_messages=NUMBER)
    tags = forms.CharField(required=False, max_length=500)
    tier = forms.IntegerField(min_value=0, required=False, error_messages=NUMBER)
    only = forms.CharField(required=False, max_length=2000)
    run_tags = forms.CharField(required=False, max_length=300)
    judge = forms.BooleanField(required=False, initial=True)

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choose_from("suite", Suite.objects.filter(project=project))
        self._choose_from("guidance", Guidance.objects.filter(suite__project=project).select_related("suite"))
        self._choose_from("targets", Target.objects.filter(project=project, accepted=True))
        for name, field in self.fields.items():
            field.widget.attrs["aria-describedby"] = f"{name}-note"

    def _choose_from(self, name: str, rows: QuerySet[Any]) -> None:
        field = self.fields[name]
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = rows

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        suite, guidance = given.get("suite"), given.get("guidance")
        if suite and guidance and guidance.suite_id != suite.pk:
            self.add_error(
                "guidance", f"This guidance belongs to {guidance.suite.name}. Choose one of {suite.name}."
            )
        if suite and not suite.versions.exists():
            self.add_error("suite", f"{suite.name} has no version yet. Upload its files first.")
        return given

    def request(self) -> Request:
        """Return what is asked for; the form has to be valid."""
        given = self.cleaned_data
        return Request(
            suite_versions=[given["suite"].versions.select_related("suite__project").first()],
            targets=[target.name for target in given["targets"]],
            models=words(given["models"]),
            guidance=[given["guidance"]] if given["guidance"] else (),
            selection=Selection(
                tags=(given["tags"],) if given["tags"] else (), tier=given["tier"], only=words(given["only"])
            ),
            options=RunOptions(
                trials=given["trials"], concurrency=given["concurrency"], judge=given["judge"]
            ),
            tags=words(given["run_tags"]),
        )


class TargetsFileForm(forms.Form):
    """A targets file."""

    file = forms.FileField(
        error_messages={"required": "Choose a file first.", "empty": "The file is empty. Choose another one."}
    )


class TargetForm(forms.Form):
    """One target as its entry in a targets file."""

    definition = forms.CharField(
        max_length=100_000, strip=False, widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false"})
    )


class AlertForm(forms.Form):
    """What somebody decides about an alert; what is left out stays."""

    state = forms.ChoiceField(
        choices=AlertState.choices,
        required=False,
        error_messages={"invalid_choice": "“%(value)s” is no state of an alert. Choose one of the buttons."},
    )
    assignee = forms.ChoiceField(
        required=False,
        error_messages={"invalid_choice": "This person is no member of the project. Choose one who is."},
    )
    due = forms.DateField(
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        error_messages={"invalid": "Write the day as year-month-day, such as 2026-11-30."},
    )
    note = forms.CharField(required=False, max_length=5000, widget=forms.Textarea(attrs={"rows": 2}))
    link = forms.URLField(
        required=False,
        max_length=200,
        assume_scheme="https",
        error_messages={"invalid": "Write a whole address, such as https://tracker.example/123."},
    )

    def __init__(self, members: Mapping[str, Any], alert: Alert, data: QueryDict | None = None) -> None:
        """Take the project's members by their names: a page with many alerts asks for them once."""
        self.alert, self.members = alert, members
        initial = {name: getattr(alert, name) for name in ("due", "note", "link")}
        initial["assignee"] = alert.assignee.get_username() if alert.assignee else ""
        super().__init__(data, initial=initial, auto_id=f"alert-{alert.pk}-%s")
        field = self.fields["assignee"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", "Nobody"), *((name, name) for name in members)]

    def clean_assignee(self) -> Any:
        """Return the member, None for nobody."""
        return self.members.get(self.cleaned_data["assignee"])

    def clean_link(self) -> str:
        """Return the link. Raises for one that would not lead to a page of the web."""
        link: str = self.cleaned_data["link"]
        if link and not link.startswith(("https://", "http://")):
            raise forms.ValidationError("Write an address that begins with https:// or http://.")
        return link

    def changes(self) -> dict[str, Any]:
        """Return the fields that were sent and differ from what is kept; the form has to be valid."""
        given = {name: value for name, value in self.cleaned_data.items() if name in self.data}
        if not given.get("state"):
            given.pop("state", None)
        return {name: value for name, value in given.items() if getattr(self.alert, name) != value}


class ResultsFileForm(forms.Form):
    """Results that another program wrote."""

    file = forms.FileField(
        error_messages={"required": "Choose a file first.", "empty": "The file is empty. Choose another one."}
    )


class PriceForm(forms.Form):
    """The price of a model from a day on, in US dollars per million tokens."""

    model = forms.CharField(max_length=200)
    input_per_million = forms.FloatField(
        min_value=0, error_messages={"invalid": "Write a number, such as 2.50."}
    )
    output_per_million = forms.FloatField(
        min_value=0, error_messages={"invalid": "Write a number, such as 10."}
    )
    since = forms.DateField(
        initial=date.today,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        error_messages={"invalid": "Write the day as year-month-day, such as 2026-11-30."},
    )

    def save(self, project: Project) -> ModelPrice:
        """Store the price. Raises IntegrityError where the model has one since that day."""
        return ModelPrice.objects.create(project=project, **self.cleaned_data)
