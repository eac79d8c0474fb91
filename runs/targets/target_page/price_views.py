"""Views of a project's own model prices."""

from __future__ import annotations

from datetime import date
from typing import Any

from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from evalhub.teams import audit
from evalhub.teams.models import Project
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.csv_export import Table, chosen_table
from runs.models import ModelPrice
from runs.models.price import OPTIONAL_RATES


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


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(to_post="manage")
def price_list(request: ProjectRequest) -> HttpResponseBase:
    """List the project's prices and add new ones."""
    if table := chosen_table(request, {"prices": lambda: _table(request)}):
        return table
    if request.method != "POST":
        return _show(request, PriceForm())
    form = PriceForm(request.POST)
    if form.is_valid():
        try:
            with transaction.atomic():
                price = form.save(request.access.project)
                audit.append_event(request.access.project, request.user, "price.add", price)
        except IntegrityError:
            form.add_error(
                "since",
                "This model already has a price from that date. Remove it first or choose another date.",
            )
    if not form.is_valid():
        return _show(request, form, status=422)
    return redirect("price-list", request.access.project.slug)


def _table(request: ProjectRequest) -> Table:
    project = request.access.project
    columns = ("model", "input_per_million", "output_per_million", *OPTIONAL_RATES, "since")
    return Table(
        f"{project.slug}-prices", columns, ModelPrice.objects.filter(project=project).values_list(*columns)
    )


def _show(request: ProjectRequest, form: PriceForm, *, status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {
        "form": form,
        "prices": ModelPrice.objects.filter(project=request.access.project),
        "may_manage": request.access.may("manage"),
    }
    return render(request, "targets/prices/prices.html", context, status=status)


@require_POST
@project_page("manage")
def price_remove(request: ProjectRequest, pk: int) -> HttpResponse:
    """Remove a price; stored costs of trials stay."""
    price = get_object_or_404(ModelPrice, project=request.access.project, pk=pk)
    audit.append_event(request.access.project, request.user, "price.remove", price)
    price.delete()
    messages.success(request, f"Removed the price of {price.model}.")
    return redirect("price-list", request.access.project.slug)
