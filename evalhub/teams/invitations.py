"""Invitations: a link that lets one new member into a project, once and for a week."""

from __future__ import annotations

import secrets
import smtplib
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils import timezone

from evalhub.lib.numbers import date_and_time
from evalhub.teams import audit
from evalhub.teams.models import Invitation, Membership, hash_token
from evalhub.teams.roles import Role

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
