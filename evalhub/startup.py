"""Start servers and workers: a wrong setting ends them with one sentence, not a traceback."""

from __future__ import annotations

import os
import sys

import django
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured


def set_up() -> None:
    """Load settings and apps, once."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    if apps.ready:
        return
    try:
        django.setup()
    except ImproperlyConfigured as error:
        sys.exit(str(error))
