"""What every page needs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.utils.functional import SimpleLazyObject
from django.utils.html import format_html


def page(request: HttpRequest) -> dict[str, Any]:
    """Return the version, whether this is an embedded evalhub, and the token of the page's forms.

    Django makes another token for each form of a page; they are as good as one another, so one does.
    """
    token = SimpleLazyObject(lambda: get_token(request))
    return {
        "version": settings.VERSION,
        "embedded": settings.EMBEDDED,
        "csrf_token": token,
        "csrf_input": SimpleLazyObject(
            lambda: format_html('<input type="hidden" name="csrfmiddlewaretoken" value="{}">', token)
        ),
    }
