"""In and out. Whether a page may be seen is decided in `pages.py`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, views
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import SetPasswordForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from evalhub.teams import audit
from evalhub.teams.forms import ChangePasswordForm, SignInForm, TooManyGuesses
from evalhub.teams.models import SignInLink
from evalhub.web.client_address import client_address
from evalhub.web.errors import form_expired


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
