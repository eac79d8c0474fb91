"""The form of a model's price."""

from __future__ import annotations

from datetime import date

from django import forms

from evalhub.teams.models import Project
from runs.models import ModelPrice


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
