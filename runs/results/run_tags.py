"""Change a run's tags afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.teams import audit
from runs.errors import RequestError
from runs.models import Run

MOST_TAGS = 20
LONGEST_TAG = 50


class TagsChanged(RequestError):
    """Somebody else changed the tags in between; the message names the present ones."""

    id = "run/tags-changed"


def read_tags(text: str) -> list[str]:
    """Return the comma-separated tags of a text."""
    return checked_tags(text.split(","))


def checked_tags(tags: Iterable[str]) -> list[str]:
    """Return tags without blanks around them, each once. Raises `RequestError` for too many or too long ones."""
    checked = list(dict.fromkeys(filter(None, (" ".join(tag.split()) for tag in tags))))
    if len(checked) > MOST_TAGS:
        raise RequestError(f"A run has at most {MOST_TAGS} tags; these are {len(checked)}. Remove some.")
    for tag in checked:
        if len(tag) > LONGEST_TAG or "," in tag or not tag.isprintable():
            raise RequestError(
                f"'{tag[:LONGEST_TAG]}' is not a tag: tags have at most {LONGEST_TAG} characters, without commas and"
                " control characters. Shorten it."
            )
    return checked


@transaction.atomic
def set_tags(run: Run, tags: Sequence[str], *, was: Sequence[str] | None, by: User | None) -> None:
    """Replace a run's tags. Raises `TagsChanged` if they are no longer those that the person saw (`was`)."""
    current = Run.objects.select_for_update().values_list("tags", flat=True).get(pk=run.pk)
    if was is not None and list(was) != current:
        now = ", ".join(current) or "none"
        raise TagsChanged(
            f"Somebody changed the tags in the meantime. They are now: {now}. Change them again."
        )
    run.tags = list(tags)
    if run.tags != current:
        run.save(update_fields=["tags"])
        audit.append_event(run.project, by, "run.tags", f"run {run.pk}", tags=run.tags, was=current)
