"""Signing in and changing the password."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.http import HttpRequest
from django.utils import timezone

from evalhub.teams import throttle


class SignInForm(AuthenticationForm):
    """Name and password, refused for a while after too many failures."""

    error_messages = {
        "invalid_login": "Name and password do not belong together. Both mind upper and lower case.",
        "inactive": "This account is switched off. Ask an admin.",
    }

    def __init__(self, request: HttpRequest | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.address = request.META.get("REMOTE_ADDR", "") if request else ""
        self.fields["username"].label = "Name"

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("username") or ""
        now = timezone.now()
        if throttle.is_blocked(self.address, name, now=now):
            self.add_error(None, "There were too many failed attempts. Wait 15 minutes and try again.")
            return self.cleaned_data
        try:
            return super().clean()
        finally:
            if self.user_cache is None:
                throttle.note_failure(self.address, name, now=now)


class ChangePasswordForm(PasswordChangeForm):
    """The old password and twice the new one."""
