"""Projects, members and their roles, tokens, and the audit log."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone

from evalhub.teams.roles import Role


class Priority(models.IntegerChoices):
    """Which work gets free lanes first: the higher number."""

    LOW = -1, "low"
    NORMAL = 0, "normal"
    HIGH = 1, "high"


RAISED_BY_OTHERS = "Only an admin of the project can raise a launch above normal. Choose normal or low."
NAMES = tuple(each.label for each in Priority)


def priority_named(name: str) -> Priority:
    """Return the priority with a name of `NAMES`. Raises `KeyError`."""
    return Priority[name.upper()]


class NotifyWhen(models.TextChoices):
    """When a project's channels hear of an alert."""

    CONFIRMED = "confirmed", "when confirmed"
    AT_ONCE = "at_once", "at once, suspected or confirmed"


class Project(models.Model):
    """The owner of all data; only its members see it."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    command_pattern = models.CharField(
        max_length=500, blank=True, help_text="Finds the tool's commands where a scenario does not say how."
    )
    judge = models.CharField(max_length=200, blank=True, help_text="Target or model that judges by default.")
    smallest_effect = models.FloatField(
        default=0.05, help_text="Smallest change of a rate that counts, 0 to 1."
    )
    smallest_effects = models.JSONField(
        default=dict, blank=True, help_text="Smallest changes that count, by measure, where they differ."
    )
    most_trials = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Most trials at once over all runs of the project; empty for no limit.",
    )
    priority = models.SmallIntegerField(
        choices=Priority.choices,
        default=Priority.NORMAL,
        db_default=Priority.NORMAL,
        help_text="Projects with a higher priority get free lanes first.",
    )
    seed_manifest = models.JSONField(
        null=True, blank=True, help_text="Values of {{seed:…}} where neither a run nor a suite has its own."
    )
    notify_when = models.CharField(
        max_length=9,
        choices=NotifyWhen.choices,
        default=NotifyWhen.CONFIRMED,
        db_default=NotifyWhen.CONFIRMED,
        help_text="When alerts are notified of.",
    )
    alert_dearer = models.BooleanField(
        default=True, db_default=True, help_text="Raise an alert where trials cost more than before."
    )
    alert_slower = models.BooleanField(
        default=False, db_default=False, help_text="Raise an alert where trials take longer than before."
    )
    month_usd = models.FloatField(
        null=True, blank=True, help_text="Budget of a calendar month in US dollars; empty for no limit."
    )
    judge_labels = models.PositiveIntegerField(
        default=30,
        db_default=30,
        validators=[MinValueValidator(1)],
        help_text="Passing and failing labels that a calibrated judge needs, each.",
    )
    judge_rate = models.FloatField(
        default=0.7,
        db_default=0.7,
        help_text="Lowest end of both 95 % intervals of a calibrated judge, 0 to 1.",
    )
    only_calibrated_judges = models.BooleanField(
        default=False,
        db_default=False,
        help_text="An uncalibrated judge informs and does not decide.",
    )
    diagnosis_thresholds = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="Thresholds of the diagnosis that the project sets, by name.",
    )
    created = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"/p/{self.slug}/"


class Membership(models.Model):
    """One person's role in one project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="one_role_each")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"


def hash_token(secret: str) -> str:
    """Return the stored hash of a secret with at least 128 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiToken(models.Model):
    """A secret for programs: shown once, stored as a hash, never more than its owner's role."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="tokens")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    sha256 = models.CharField(max_length=64, unique=True)
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)
    created = models.DateTimeField(default=timezone.now)
    expires = models.DateTimeField(null=True, blank=True)
    last_used = models.DateTimeField(null=True, blank=True)
    revoked = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @classmethod
    def issue(
        cls, project: Project, user: User, *, name: str, role: str, expires: datetime | None = None
    ) -> tuple[ApiToken, str]:
        """Return a new token and its secret, which cannot be read again."""
        secret = f"evh_{secrets.token_urlsafe(32)}"
        token = cls.objects.create(
            project=project,
            user=user,
            name=name,
            role=role,
            prefix=secret[:10],
            sha256=hash_token(secret),
            expires=expires,
        )
        return token, secret

    @classmethod
    def find(cls, secret: str, *, now: datetime) -> ApiToken | None:
        """Return the valid token with this secret, else None; record its use at most once a minute.

        `owner_role` is its owner's role in the project, None for a former member. One query.
        """
        token = _tokens(hash_token(secret)).first()
        if token is None or not token.user.is_active or (token.expires and token.expires <= now):
            return None
        if token.last_used is None or now - token.last_used > timedelta(minutes=1):
            cls.objects.filter(pk=token.pk).update(last_used=now)
        return token


def _tokens(sha256: str) -> models.QuerySet[ApiToken]:
    memberships = Membership.objects.filter(user=models.OuterRef("user"), project=models.OuterRef("project"))
    owner_role = models.Subquery(memberships.values("role")[:1])
    tokens = ApiToken.objects.select_related("project", "user").annotate(owner_role=owner_role)
    return tokens.filter(sha256=sha256, revoked=None).order_by()


class SignInLink(models.Model):
    """A sign-in link, valid once and for 15 minutes."""

    LIFETIME = timedelta(minutes=15)

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    sha256 = models.CharField(max_length=64, unique=True)
    created = models.DateTimeField(default=timezone.now)
    used = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"link of {self.created:%Y-%m-%d %H:%M}"

    @classmethod
    def issue(cls, user: User) -> str:
        """Return the secret of a new link."""
        secret = secrets.token_urlsafe(32)
        cls.objects.create(user=user, sha256=hash_token(secret))
        return secret

    @classmethod
    def open_links(cls, secret: str, *, now: datetime) -> models.QuerySet[SignInLink]:
        """Return the unused, unexpired link with this secret, as a query."""
        return cls.objects.filter(sha256=hash_token(secret), used=None, created__gt=now - cls.LIFETIME)

    @classmethod
    def use(cls, secret: str, *, now: datetime) -> Any | None:
        """Return the link's user the first time it is used in its lifetime, else None."""
        links = cls.open_links(secret, now=now)
        link = links.select_related("user").first()
        # Of two simultaneous clicks, one updates the row.
        if link is None or links.filter(pk=link.pk).update(used=now) != 1:
            return None
        return link.user


class Invitation(models.Model):
    """An invitation to a project, valid once and for a week; its secret is in the link only."""

    LIFETIME = timedelta(days=7)

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)
    email = models.EmailField(blank=True)
    sha256 = models.CharField(max_length=64, unique=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="invitations")
    created = models.DateTimeField(default=timezone.now)
    used = models.DateTimeField(null=True)
    used_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="accepted_invitations"
    )

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.email or 'a link'} as {self.role}"

    @property
    def expires(self) -> datetime:
        return self.created + self.LIFETIME


class AuditEvent(models.Model):
    """What a person changed. Rows are appended, never edited."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="audit_events", null=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    action = models.CharField(max_length=60)
    """Such as `suite.upload` or `member.role`."""
    subject = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["project", "-id"], name="audit_by_project")]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"


class PasswordGuesses(models.Model):
    """The number of recent password guesses; the key is a hash of address and name, or of the address."""

    key = models.CharField(max_length=64, unique=True)
    count = models.PositiveIntegerField(default=0)
    last = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.count} until {self.last:%Y-%m-%d %H:%M}"
