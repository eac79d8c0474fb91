"""Mistakes in a worker's settings: `manage.py check` and `up` print them, and a worker does not start with them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from evalhub.web.checks import TAG
from runs.labels import MOST_LABELS, RULE, is_label


@register(TAG)
def egress_allow(app_configs: Sequence[AppConfig] | None = None, **_: Any) -> list[CheckMessage]:
    """Refuse a word of EVALHUB_EGRESS_ALLOW that names no service."""
    # Imported here because commands run no checks, and the module imports psutil.
    from runs.containment.egress import parse_allowed

    try:
        parse_allowed(settings.EGRESS_ALLOW)
    except ValueError as error:
        what, hint = str(error).split(". ", 1)
        return [Error(f"{what}.", hint=hint, id="evalhub.E003")]
    return []


@register(TAG)
def worker_labels(app_configs: Sequence[AppConfig] | None = None, **_: Any) -> list[CheckMessage]:
    """Refuse a word of EVALHUB_WORKER_LABELS that is no label, and too many of them."""
    labels = settings.WORKER_LABELS
    wrong = [word for word in labels if not is_label(word)]
    if wrong:
        return [Error(f"EVALHUB_WORKER_LABELS: '{wrong[0]}' is no label.", hint=RULE, id="evalhub.E004")]
    if len(labels) > MOST_LABELS:
        what = f"EVALHUB_WORKER_LABELS has {len(labels)} labels."
        return [Error(what, hint=f"Give a worker {MOST_LABELS} at most.", id="evalhub.E004")]
    return []


def refuse_wrong_settings() -> None:
    """End a worker that starts with a mistake in its settings; the sentences go to standard error."""
    if wrong := [*egress_allow(), *worker_labels()]:
        sys.exit("\n".join(f"{each.msg} {each.hint}" for each in wrong))
