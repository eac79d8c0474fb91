"""Invitations: a link that lets one new member into a project, once and for a week; and their pages."""

from __future__ import annotations

import secrets
import smtplib
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from evalhub.lib.numbers import date_and_time
from evalhub.teams import audit
from evalhub.teams.access import may_create_projects
from evalhub.teams.models import Invitation, Membership, hash_token
from evalhub.teams.roles import Role
from evalhub.teams.settings_forms import NewProjectForm

if TYPE_CHECKING:
    from evalhub.teams.access import Access


def open_invitations() -> QuerySet[Invitation]:
    """Return the invitations that still work, as a query: those of people who are admins of the project."""
    since = timezone.now() - Invitation.LIFETIME
    invitations = Invitation.objects.filter(used=None, created__gt=since).select_related("project", "by")
    admins = Membership.objects.filter(project=OuterRef("project"), user=OuterRef("by"), role=Role.ADMIN)
    return invitations.filter(Exists(admins), by__is_active=True)


@transaction.atomic
def invite(access: Access, *, role: str, email: str = "") -> tuple[Invitation, str]:
    """Return a new invitation and its link, which can't be read again."""
    secret = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        project=access.project, role=role, email=email, by=access.user, sha256=hash_token(secret)
    )
    audit.append_event(access.project, access.user, "member.invite", email or "somebody", role=role)
    return invitation, settings.PUBLIC_URL.rstrip("/") + reverse("invitation", args=(secret,))


def send_invitation(invitation: Invitation, link: str) -> str:
    """Send a link to its address; return what happened as a sentence. Raises nothing of the mail server's."""
    if not invitation.email:
        return "Send this link to the new member."
    if not settings.MAIL_SERVER:
        return "No mail server is set up, so nothing was sent. Send this link to the new member."
    text = (
        f"{invitation.by} invites you to the project {invitation.project} as {invitation.role}:\n\n{link}\n\n"
        f"The link works once, until {date_and_time(invitation.expires)} UTC.\n"
    )
    subject = f"evalhub: join {invitation.project}".replace("\n", " ")
    try:
        EmailMessage(subject, text, to=[invitation.email]).send()
    except (OSError, smtplib.SMTPException):
        return f"The mail server didn't accept the message to {invitation.email}. Send this link yourself."
    return f"Sent to {invitation.email}."


@transaction.atomic
def accept_invitation(invitation: Invitation, user: User) -> bool:
    """Make a person a member by an invitation; return whether it still worked. A higher role is kept."""
    # Of two simultaneous clicks, one updates the row.
    if open_invitations().filter(pk=invitation.pk).update(used=timezone.now(), used_by=user) != 1:
        return False
    Membership.objects.get_or_create(
        project=invitation.project, user=user, defaults={"role": invitation.role}
    )
    audit.append_event(invitation.project, user, "member.join", invitation.project, role=invitation.role)
    return True


@login_not_required
@sensitive_variables("secret")
@sensitive_post_parameters("password1", "password2")
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """Show who invites to what; accept it with the account that is signed in, else with a new one."""
    open_invitation = open_invitations().filter(sha256=hash_token(secret)).first()
    form: UserCreationForm[User] | None = (
        None if request.user.is_authenticated else UserCreationForm(request.POST or None)
    )
    joined = (
        open_invitation is not None and request.method == "POST" and _join(request, open_invitation, form)
    )
    if open_invitation and joined:
        messages.success(request, f"You are now a member of {open_invitation.project}.")
        return redirect(open_invitation.project)
    context = {"invitation": open_invitation, "form": form}
    status = 410 if open_invitation is None else 422 if request.method == "POST" else 200
    response = render(request, "teams/invitation.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response


@transaction.atomic
def _join(request: HttpRequest, open_invitation: Invitation, form: UserCreationForm[User] | None) -> bool:
    """Return whether the invitation was accepted; an account is created only with it."""
    if form is None:
        return request.user.is_authenticated and accept_invitation(open_invitation, request.user)
    if not form.is_valid():
        return False
    user = form.save(commit=False)
    user.email = open_invitation.email
    user.save()
    if not accept_invitation(open_invitation, user):
        transaction.set_rollback(True)
        return False
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    return True


@require_http_methods(["GET", "HEAD", "POST"])
def project_new(request: HttpRequest) -> HttpResponse:
    """Create a project, with the person who creates it as its admin."""
    if not (request.user.is_authenticated and may_create_projects(request.user)):
        raise PermissionDenied("Only an admin of a project can create another. Ask an admin.")
    form = NewProjectForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        with transaction.atomic():
            project = form.save()
            Membership.objects.create(project=project, user=request.user, role=Role.ADMIN)
            audit.append_event(project, request.user, "project.create", project.slug)
        messages.success(request, f"Created {project}. Upload a suite, then import targets.")
        return redirect(project)
    return render(request, "teams/project_new.html", {"form": form}, status=422 if form.is_bound else 200)
