"""Views of targets (list, import, edit, check) and of a project's own model prices."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any

from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evalhub.teams import audit
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.teams.models import Project
from evalhub.web.csv_export import Table, chosen_table
from evalhub.web.forms import FileForm
from evalhub.web.middleware import page_or_fragment
from runs.errors import RequestError
from runs.models import ModelPrice, Target, Worker
from runs.models.price import OPTIONAL_RATES
from runs.targets import edits
from runs.targets.definitions import request_check
from runs.targets.edits import accepts_at_once
from runs.targets.import_targets import import_bundle_targets, import_targets
from runs.targets.target_list import WorkerRow, target_rows
from scenarios.commands import Quoted, quote_lines
from scenarios.formats.parsed import ScenarioFileError
from scenarios.models import Suite


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


@dataclass(frozen=True)
class ImportedTargets:
    """Result of a targets file: stored or proposed targets, or problems."""

    name: str
    targets: tuple[Target, ...] = ()
    problems: list[Quoted] = field(default_factory=list)

    @property
    def proposed(self) -> list[Target]:
        """Return the targets that wait for an admin."""
        return [target for target in self.targets if not target.accepted]

    @property
    def status(self) -> int:
        return 422 if self.problems else 200


def find_shown_target(request: ProjectRequest, pk: int) -> Target:
    """Return the project's target. Raises `Http404`."""
    return get_object_or_404(Target.objects.select_related("project"), project=request.access.project, pk=pk)


def _list(request: ProjectRequest, **more: Any) -> dict[str, Any]:
    now = timezone.now()
    return {
        # Proposals first.
        "rows": target_rows(request.access.project.targets.order_by("accepted", "name"), now=now),
        "workers": [WorkerRow(each, now - each.seen < Worker.HEARD_WITHIN) for each in Worker.objects.all()],
        "form": FileForm(),
        "accepts": accepts_at_once(request.access),
        **_rights(request),
        **more,
    }


def _rights(request: ProjectRequest) -> dict[str, bool]:
    return {f"may_{action}": request.access.may(action) for action in ("run", "upload", "manage")}


@require_safe
@project_page()
def target_list(request: ProjectRequest) -> HttpResponseBase:
    """List the project's targets and workers."""
    return render(request, "targets/targets/targets.html", _list(request))


@require_POST
@project_page("upload")
def target_import(request: ProjectRequest) -> HttpResponse:
    """Import a targets file, or show every problem with its line."""
    form = FileForm(request.POST, request.FILES)
    taken = None
    if form.is_valid():
        file = form.cleaned_data["file"]
        taken = store_given(request, str(file.name), file.read())
    status = taken.status if taken else 422
    context = _list(request, form=form, taken=taken)
    return page_or_fragment(
        request, "targets/targets/targets.html", "targets/targets/_target_table.html", context, status=status
    )


def store_given(request: ProjectRequest, name: str, content: bytes) -> ImportedTargets:
    """Store a file's targets as the user's role allows."""
    access = request.access
    try:
        targets = import_targets(
            access.project, content, name, by=request.user, accepted=accepts_at_once(access)
        )
    except ScenarioFileError as error:
        return ImportedTargets(name, problems=quote_lines(error.problems, {name: content}))
    return ImportedTargets(name, targets)


@require_POST
@project_page("upload")
def suite_targets(request: ProjectRequest, suite_slug: str) -> HttpResponse:
    """Import the targets file of a suite's newest version."""
    suite = get_object_or_404(Suite, project=request.access.project, slug=suite_slug)
    version = suite.versions.first()
    file, text = (version.targets_file, version.targets_text) if version else ("", "")
    if version is None or not text:
        messages.error(
            request, f"{suite.name} has no targets file. Upload one with the suite or import it here."
        )
        return redirect("target-list", request.access.project.slug)
    try:
        targets = import_bundle_targets(version, by=request.user, accepted=accepts_at_once(request.access))
        taken = ImportedTargets(file, targets)
    except ScenarioFileError as error:
        taken = ImportedTargets(file, problems=quote_lines(error.problems, {file: text.encode()}))
    return render(request, "targets/targets/targets.html", _list(request, taken=taken), status=taken.status)


@require_POST
@project_page("manage")
def target_accept(request: ProjectRequest, pk: int) -> HttpResponse:
    """Accept a proposed target."""
    target = find_shown_target(request, pk)
    try:
        edits.accept_target(target, by=request.user)
        messages.success(request, f"Accepted {target.name}. Runs can use it now.")
    except RequestError as error:
        messages.error(request, str(error))
    return redirect("target-list", request.access.project.slug)


@require_POST
@project_page("manage")
def target_remove(request: ProjectRequest, pk: int) -> HttpResponse:
    """Delete an unused target, or reject a proposed one."""
    target = find_shown_target(request, pk)
    try:
        edits.remove_target(target, by=request.user)
        messages.success(request, f"{target.name} is {'removed' if target.accepted else 'rejected'}.")
    except RequestError as error:
        messages.error(request, str(error))
    return redirect("target-list", request.access.project.slug)


@require_POST
@project_page("manage")
def target_show_program(request: ProjectRequest, pk: int) -> HttpResponse:
    """Let a target's commands read the folder of its program, and check it again."""
    target = find_shown_target(request, pk)
    try:
        folders = edits.show_program(target, by=request.user)
    except RequestError as error:
        messages.error(request, str(error))
    else:
        request_check(target, by=request.user)
        messages.success(request, f"{target.name} may read {' and '.join(map(str, folders))} now.")
    return redirect("target-list", request.access.project.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(to_post="run")
def target_check(request: ProjectRequest, pk: int) -> HttpResponse:
    """Check a target on a worker and show the result; htmx polls until it arrives."""
    target = find_shown_target(request, pk)
    if request.method == "POST":
        request_check(target, by=request.user)
    if not request.htmx:
        return redirect("target-list", request.access.project.slug)
    (row,) = target_rows(Target.objects.filter(pk=target.pk), now=timezone.now())
    context = {"row": row, **_rights(request)}
    return render(request, "targets/targets/_target.html", context)
