"""Names of guidance versions: find a version by one, and change one."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.teams import audit
from scenarios.models import Guidance, Suite

LONGEST_NAME = 120


class NameRefused(ValueError):
    """A name can't be given; the message says why and what to do."""


def find_version(suite: Suite, name: str) -> Guidance | None:
    """Return a suite's guidance version by its number, its name, or the first six digits of its hash or more. One query."""
    for guidance in suite.guidance.all():
        if name in (str(guidance.number), guidance.name) or (
            len(name) >= 6 and guidance.sha256.startswith(name)
        ):
            return guidance
    return None


@transaction.atomic
def rename_guidance(guidance: Guidance, name: str, *, was: str | None, by: User | None) -> None:
    """Rename a version; an empty name restores its number. Raises `NameRefused`.

    `was` is the name that the person saw; None overwrites any.
    """
    name = " ".join(name.split())
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise NameRefused(f"A name has at most {LONGEST_NAME} printable characters. Shorten it.")
    current = Guidance.objects.select_for_update().values_list("name", flat=True).get(pk=guidance.pk)
    if was is not None and was != current:
        raise NameRefused(
            f"Somebody changed the name in the meantime. It is now “{current or 'without a name'}”. Change it again."
        )
    others = Guidance.objects.filter(suite=guidance.suite_id).exclude(pk=guidance.pk)
    if name and others.filter(name=name).exists():
        raise NameRefused(
            f"Another version of {guidance.suite.name} is called “{name}”. Choose another name."
        )
    if name != current:
        guidance.name = name
        guidance.save(update_fields=["name"])
        audit.append_event(guidance.suite.project, by, "guidance.rename", guidance, was=current)
