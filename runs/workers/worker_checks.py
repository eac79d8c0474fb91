"""Mistakes in the lists of a worker's settings: no command and no process starts with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from runs.labels import MOST_LABELS, RULE, is_label


def refuse_wrong_settings() -> None:
    """Raise `ImproperlyConfigured` with a sentence for each wrong list."""
    configured = ((check, value) for check, value in _checks() if value)
    if wrong := [*filter(None, (_problem(check, value) for check, value in configured))]:
        raise ImproperlyConfigured("\n".join(wrong))


_Check = Callable[[Sequence[str]], object]


def _checks() -> tuple[tuple[_Check, Sequence[str]], ...]:
    return (
        (_variables, settings.ENV_ALLOW),
        (_addresses, settings.HTTP_ALLOW),
        (_services, settings.EGRESS_ALLOW),
        (_labels, settings.WORKER_LABELS),
    )


def _problem(check: _Check, value: Sequence[str]) -> str:
    try:
        check(value)
    except ValueError as error:
        return str(error)
    return ""


# Imported in the functions, because every command starts here and most settings have no such list.
def _variables(words: Sequence[str]) -> None:
    from runs.sandbox.sandbox import parse_rules

    parse_rules(",".join(words))


def _addresses(words: Sequence[str]) -> None:
    from runs.sandbox.outbound import Outbound

    Outbound.of(words, loopback=False)


def _services(words: Sequence[str]) -> None:
    from runs.sandbox.egress import parse_allowed

    parse_allowed(words)


def _labels(words: Sequence[str]) -> None:
    if wrong := [word for word in words if not is_label(word)]:
        raise ValueError(f"EVALHUB_WORKER_LABELS: '{wrong[0]}' isn't a valid label. {RULE}")
    if len(words) > MOST_LABELS:
        raise ValueError(
            f"EVALHUB_WORKER_LABELS has {len(words)} labels. Give a worker {MOST_LABELS} at most."
        )
