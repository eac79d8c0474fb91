"""Signing in and changing the password. Each wrong password counts, and from the sixth on the next one has to wait."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone

from evalhub.lib.numbers import duration
from evalhub.teams import throttle
from evalhub.web.client_address import client_address


class TooManyGuesses(ValidationError):
    """Password guesses are delayed; no password is checked before the delay is over."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"Too many failed attempts. Try again in {duration(seconds)}.", code="throttled")
        self.seconds = seconds


def _admit(address: str, name: str) -> None:
    """Count a guess. Raises `TooManyGuesses`."""
    if seconds := throttle.admit(address, name, now=timezone.now()):
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
        throttle.forget(self.address, name)
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
        throttle.forget(self.address, name)
        return password
