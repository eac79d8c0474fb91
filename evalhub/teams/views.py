"""Signing in and changing the password, with limits on guesses.

Each wrong password is counted first, in the database, for all processes; from the sixth on the next one has to wait. An
account alone is never delayed: otherwise strangers could lock its owner out.
"""

from __future__ import annotations

import ipaddress
import math
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, views
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from evalhub.lib.numbers import format_duration
from evalhub.teams import audit
from evalhub.teams.models import PasswordGuesses, SignInLink, hash_token
from evalhub.web.middleware import client_address, form_expired


class TooManyGuesses(ValidationError):
    """Password guesses are delayed; no password is checked before the delay is over."""

    def __init__(self, seconds: int) -> None:
        super().__init__(
            f"Too many failed attempts. Try again in {format_duration(seconds)}.", code="throttled"
        )
        self.seconds = seconds


def _admit(address: str, name: str) -> None:
    """Count a guess. Raises `TooManyGuesses`."""
    if seconds := admit(address, name, now=timezone.now()):
        raise TooManyGuesses(seconds)


class SignInForm(AuthenticationForm):
    """Name and password."""

    error_messages = {
        "invalid_login": "Wrong name or password. Both are case-sensitive.",
        "inactive": "This account is disabled. Ask an admin.",
    }

    def __init__(self, request: HttpRequest | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.address = client_address(request) if request else ""
        self.fields["username"].label = "Name"

    def clean(self) -> dict[str, Any]:
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not name or not password:
            return self.cleaned_data
        _admit(self.address, name)
        cleaned = super().clean()
        forget(self.address, name)
        return cleaned


class ChangePasswordForm(PasswordChangeForm):
    """Old password, new password and its confirmation; guesses of the old password are throttled too."""

    def __init__(self, user: Any, *args: Any, address: str = "", **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.address = address

    def clean_old_password(self) -> str:
        name = self.user.get_username()
        _admit(self.address, name)
        password = super().clean_old_password()
        forget(self.address, name)
        return password


FREE_PER_PAIR = 5
"""Wrong guesses for one account from one address without a delay."""
FREE_PER_ADDRESS = 20
"""The same for all accounts together."""
FIRST_DELAY = timedelta(seconds=30)
LONGEST_DELAY = timedelta(hours=1)
FORGOTTEN_AFTER = timedelta(hours=24)
_MOST_REMOVED = 100


def admit(address: str, name: str, *, now: datetime) -> int:
    """Count a guess. Returns 0 if it may be checked, else the seconds to wait.

    Concurrent guesses are serialized, so each is counted before it is checked.
    """
    old = PasswordGuesses.objects.filter(last__lt=now - FORGOTTEN_AFTER)
    with transaction.atomic():
        keys = list(old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_MOST_REMOVED])
        if keys:
            PasswordGuesses.objects.filter(pk__in=keys).delete()
    free = _free(address, name)
    with transaction.atomic():
        PasswordGuesses.objects.bulk_create(
            [PasswordGuesses(key=key, last=now) for key in sorted(free)], ignore_conflicts=True
        )
        # In one order, or two guesses could wait for each other.
        rows = list(PasswordGuesses.objects.select_for_update().filter(key__in=free).order_by("key"))
        wait = max((_wait(row, free[row.key], now) for row in rows), default=0)
        if wait:
            return wait
        for row in rows:
            count = 1 if now - row.last > FORGOTTEN_AFTER else row.count + 1
            PasswordGuesses.objects.filter(pk=row.pk).update(count=count, last=now)
    return 0


def forget(address: str, name: str) -> None:
    """Take back the guess that was right, and those for the same account from this address before it."""
    pair, whole = _free(address, name)
    PasswordGuesses.objects.filter(key=pair).delete()
    PasswordGuesses.objects.filter(key=whole, count__gt=0).update(count=F("count") - 1)


def _free(address: str, name: str) -> dict[str, int]:
    """Return how many guesses are free by the keys of the pair and of the address, in this order."""
    where = _network(address)
    return {
        hash_token(f"pair {where} {name.casefold()}"): FREE_PER_PAIR,
        hash_token(f"address {where}"): FREE_PER_ADDRESS,
    }


def _network(address: str) -> str:
    """Return the address; for IPv6 its /64, because one client usually has the whole block."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else str(parsed)


def _wait(row: PasswordGuesses, free: int, now: datetime) -> int:
    """Return the seconds until the next guess: 30 s after the last free one, doubled by each further one."""
    if row.count < free or now - row.last > FORGOTTEN_AFTER:
        return 0
    # Sixteen doublings are past the longest delay.
    doublings = min(row.count - free, 16)
    delay = min(FIRST_DELAY * (1 << doublings), LONGEST_DELAY)
    return max(0, math.ceil((row.last + delay - now).total_seconds()))


class _Throttled:
    """Answers 429 to a guess that came too soon, with the seconds to wait."""

    def form_invalid(self, form: Any) -> HttpResponse:
        response: HttpResponse = super().form_invalid(form)  # type: ignore[misc]  # of the view beside it
        errors = (error for field_errors in form.errors.as_data().values() for error in field_errors)
        if early := next((error for error in errors if isinstance(error, TooManyGuesses)), None):
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            response["Retry-After"] = str(early.seconds)
        return response


class SignIn(_Throttled, views.LoginView):
    """Name and password."""

    template_name = "teams/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True


class ChangePassword(_Throttled, views.PasswordChangeView):
    """For oneself; the other sessions of the account end."""

    template_name = "teams/password_change.html"
    success_url = reverse_lazy("home")

    def get_form_class(self) -> type[SetPasswordForm[Any]]:
        """Ask for the old password where there is one; the owner of an embedded evalhub begins without."""
        user = self.request.user
        return ChangePasswordForm if user.is_authenticated and user.has_usable_password() else SetPasswordForm

    def get_form_kwargs(self) -> dict[str, Any]:
        kwargs: dict[str, Any] = super().get_form_kwargs()
        asks = issubclass(self.get_form_class(), ChangePasswordForm)
        return kwargs | ({"address": client_address(self.request)} if asks else {})

    def get_form(self, form_class: Any = None) -> Any:
        """Return the form with one sentence on what a password takes, in place of the validators' list."""
        form = super().get_form(form_class)
        form.fields[
            "new_password1"
        ].help_text = "At least 10 characters; not only digits and not a common password."
        form.fields["new_password2"].help_text = ""
        return form

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, "Password changed. Your other sessions are signed out.")
        return super().form_valid(form)


@method_decorator(login_not_required, name="dispatch")
class SignOut(views.LogoutView):
    """Sign out; by POST only, so that no other site can do it."""


# Without a referrer a browser sends the origin "null", which the check refuses; this form requires the secret.
@csrf_exempt
@login_not_required
@sensitive_variables("secret")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest, secret: str) -> HttpResponseBase:
    """Show one button, and sign in when it is pressed: a link that is only opened stays unused.

    An embedded evalhub takes links from this machine only; on a server an operator sends them to people.
    """
    # An empty address is a Unix socket.
    if settings.EMBEDDED and client_address(request) not in ("127.0.0.1", "::1", ""):
        raise Http404
    # What browsers say of a form of this site; from another, a link could sign people in to an account that
    # isn't theirs.
    if request.method == "POST" and request.headers.get("Sec-Fetch-Site", "none") not in (
        "same-origin",
        "none",
    ):
        return form_expired(request)
    now = timezone.now()
    user = SignInLink.use(secret, now=now) if request.method == "POST" else None
    if user is not None:
        login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
        audit.append_event(None, user, "sign-in.link")
        return redirect("home")
    usable = request.method != "POST" and SignInLink.open_links(secret, now=now).exists()
    response = render(request, "teams/sign_in_link.html", {"usable": usable}, status=200 if usable else 410)
    response["Referrer-Policy"] = "no-referrer"
    response["Cache-Control"] = "no-store"
    return response
