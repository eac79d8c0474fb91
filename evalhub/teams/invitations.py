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
    found = Invitation.objects.filter(used=None, created__gt=since).select_related("project", "by")
    admins = Membership.objects.filter(project=OuterRef("project"), user=OuterRef("by"), role=Role.ADMIN)
    return found.filter(Exists(admins), by__is_active=True)


@transaction.atomic
def invite(access: Access, *, role: str, email: str = "") -> tuple[Invitation, str]:
    """Return a new invitation and its link, which can't be read again."""
    secret = secrets.token_urlsafe(32)
    made = Invitation.objects.create(
        project=access.project, role=role, email=email, by=access.user, sha256=hash_token(secret)
    )
    audit.append_event(access.project, access.user, "member.invite", email or "somebody", role=role)
    return made, settings.PUBLIC_URL.rstrip("/") + reverse("invitation", args=(secret,))


def send_invitation(made: Invitation, link: str) -> str:
    """Send a link to its address; return what happened as a sentence. Raises nothing of the mail server's."""
    if not made.email:
        return "Send this link to the new member."
    if not settings.MAIL_SERVER:
        return "No mail server is set up, so nothing was sent. Send this link to the new member."
    text = (
        f"{made.by} invites you to the project {made.project} as {made.role}:\n\n{link}\n\n"
        f"The link works once, until {date_and_time(made.expires)} UTC.\n"
    )
    subject = f"evalhub: join {made.project}".replace("\n", " ")
    try:
        EmailMessage(subject, text, to=[made.email]).send()
    except (OSError, smtplib.SMTPException):
        return f"The mail server didn't accept the message to {made.email}. Send this link yourself."
    return f"Sent to {made.email}."


@transaction.atomic
def accept_invitation(made: Invitation, user: User) -> bool:
    """Make a person a member by an invitation; return whether it still worked. A higher role is kept."""
    # Of two simultaneous clicks, one updates the row.
    if open_invitations().filter(pk=made.pk).update(used=timezone.now(), used_by=user) != 1:
        return False
    Membership.objects.get_or_create(project=made.project, user=user, defaults={"role": made.role})
    audit.append_event(made.project, user, "member.join", made.project, role=made.role)
    return True
