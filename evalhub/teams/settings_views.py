"""A project's settings: what it takes by default, who is in it, their tokens, and what people did."""

from __future__ import annotations

import os
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evalhub.teams import audit
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.teams.invitations import invite, open_invitations, send_invitation
from evalhub.teams.judge_models import offered_judges
from evalhub.teams.members import MemberRefused, add_member, change_role, remove_member
from evalhub.teams.models import AuditEvent, Membership
from evalhub.teams.roles import Role
from evalhub.teams.settings_forms import InvitationForm, MemberForm, ProjectForm, RoleForm, TokenForm
from evalhub.teams.tokens import TokenRefused, issue_token, revoke_token, tokens_of
from evalhub.web.middleware import page_or_fragment
from evalhub.web.paging import page_below


def _show(request: ProjectRequest, *, status: int = 200, **more: Any) -> HttpResponse:
    project = request.access.project
    context = {
        "project_form": ProjectForm(instance=project),
        "member_form": MemberForm(initial={"role": Role.VIEWER}),
        "token_form": TokenForm(initial={"role": Role.VIEWER}),
        "members": project.memberships.select_related("user").order_by("user__username"),
        "invitation_form": InvitationForm(initial={"role": Role.VIEWER}),
        "invitations": open_invitations().filter(project=project) if request.access.may("manage") else (),
        "tokens": tokens_of(request.access).filter(revoked=None),
        "roles": Role.values,
        "may_manage": request.access.may("manage"),
        "now": timezone.now(),
        "offered_judges": offered_judges(os.environ),
        **more,
    }
    fragments = {"members": "teams/_members.html"}
    fragment = fragments.get(request.htmx.target or "" if request.htmx else "", "teams/settings.html")
    return page_or_fragment(request, "teams/settings.html", fragment, context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(to_post="manage")
def project_settings(request: ProjectRequest) -> HttpResponseBase:
    """Show the settings; keep those of the project when they are sent."""
    project = request.access.project
    if request.method != "POST":
        return _show(request)
    form = ProjectForm(request.POST, instance=project)
    if not form.is_valid():
        # The form has put what was typed into the project already.
        project.refresh_from_db()
        return _show(request, project_form=form, status=422)
    form.save()
    if form.changed_data:
        audit.append_event(project, request.user, "project.change", project.slug, changed=form.changed_data)
    messages.success(request, "Settings saved.")
    return redirect("project-settings", project.slug)


@require_POST
@project_page("manage")
def member_add(request: ProjectRequest) -> HttpResponse:
    """Add a member to the project."""
    form = MemberForm(request.POST)
    if form.is_valid():
        try:
            add_member(request.access, **form.cleaned_data)
        except MemberRefused as error:
            form.add_error("name", str(error))
    if not form.is_valid():
        return _show(request, member_form=form, status=422)
    added = form.cleaned_data
    return _show_changed(request, f"Added {added['name']} as {added['role']}.")


@require_POST
@sensitive_variables("link")
@project_page("manage")
def member_invite(request: ProjectRequest) -> HttpResponse:
    """Create an invitation, send it if it has an address, and show its link once."""
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return _show(request, invitation_form=form, status=422)
    invitation, link = invite(request.access, **form.cleaned_data)
    response = _show(
        request, invited=invitation, link=link, invitation_message=send_invitation(invitation, link)
    )
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@project_page("manage")
def member_uninvite(request: ProjectRequest, pk: int) -> HttpResponse:
    """Withdraw an open invitation."""
    invitation = open_invitations().filter(project=request.access.project, pk=pk).first()
    if invitation is None:
        messages.error(request, "This invitation was used, withdrawn or has expired.")
    else:
        invitation.delete()
        audit.append_event(
            request.access.project, request.user, "member.uninvite", invitation.email or "somebody"
        )
        messages.success(request, "Invitation withdrawn. Its link no longer works.")
    return redirect("project-settings", request.access.project.slug)


def _show_changed(request: ProjectRequest, sentence: str) -> HttpResponse:
    if request.htmx:
        return _show(request, member_message=sentence)
    messages.success(request, sentence)
    return redirect("project-settings", request.access.project.slug)


def _member(request: ProjectRequest, pk: int) -> Membership:
    rows = Membership.objects.select_related("user")
    return get_object_or_404(rows, project=request.access.project, pk=pk)


@require_POST
@project_page("manage")
def member_role(request: ProjectRequest, pk: int) -> HttpResponse:
    """Give a member another role."""
    membership, form = _member(request, pk), RoleForm(request.POST)
    if not form.is_valid():
        return _show(request, member_problem=form.errors["role"][0], status=422)
    try:
        change_role(request.access, membership, form.cleaned_data["role"])
    except MemberRefused as error:
        return _show(request, member_problem=str(error), status=422)
    sentence = f"{membership.user.get_username()} is now {membership.role}."
    return _reload_page(request, membership, sentence)


@require_POST
@project_page("manage")
def member_remove(request: ProjectRequest, pk: int) -> HttpResponse:
    """Let a member go."""
    membership = _member(request, pk)
    try:
        remove_member(request.access, membership)
    except MemberRefused as error:
        return _show(request, member_problem=str(error), status=422)
    sentence = f"Removed {membership.user.get_username()}. Their tokens no longer work."
    return _reload_page(request, membership, sentence)


def _reload_page(request: ProjectRequest, membership: Membership, sentence: str) -> HttpResponse:
    response = _show_changed(request, sentence)
    if membership.user_id == request.user.pk and request.htmx:
        # One's own rights are others now, and with them the whole page.
        messages.success(request, sentence)
        response["HX-Refresh"] = "true"
    return response


@require_POST
@sensitive_variables("secret")
@project_page()
def token_create(request: ProjectRequest) -> HttpResponse:
    """Create a token for the user and show its secret once."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _show(request, token_form=form, status=422)
    name, role = form.cleaned_data["name"], form.cleaned_data["role"]
    try:
        token, secret = issue_token(request.access, name=name, role=role, expires=form.expires())
    except TokenRefused as error:
        form.add_error("role", str(error))
        return _show(request, token_form=form, status=422)
    response = _show(request, new_token=token, secret=secret)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@project_page()
def token_revoke(request: ProjectRequest, pk: int) -> HttpResponse:
    """Revoke a token: the user's own, or as an admin any token of the project."""
    if revoke_token(request.access, pk):
        messages.success(request, "Token revoked. Programs that use it no longer have access.")
    else:
        messages.error(request, "You have no such token. Only an admin can revoke other people's tokens.")
    return redirect("project-settings", request.access.project.slug)


@require_safe
@project_page("manage")
def audit_log(request: ProjectRequest) -> HttpResponseBase:
    """Show what people changed in the project, newest first."""
    events = AuditEvent.objects.filter(project=request.access.project).select_related("user")
    action = request.GET.get("action", "").strip()[:60]
    if action:
        events = events.filter(action=action)
    page = page_below(events, request.GET.get("before", ""))
    older = page.older(request.GET) if page.before else ""
    context = {
        "events": page.rows,
        "older": older,
        "action": action,
        "shown": [(each, audit.shown_sentence(each), audit.shown_subject(each)) for each in page.rows],
        "may_manage": True,
    }
    return render(request, "teams/audit_log.html", context)
