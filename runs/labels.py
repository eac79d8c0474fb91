"""Labels: words that say what a worker has, and that a target needs from its worker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LABEL = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?")
MOST_LABELS = 16
RULE = "Write lower-case letters, digits, hyphens and underscores, 32 at most, such as gpu or macos-15."


def is_label(word: str) -> bool:
    """Return whether a word can be a label."""
    return LABEL.fullmatch(word) is not None


def normalize_labels(labels: Iterable[str]) -> list[str]:
    """Return each label once, sorted, as they are stored."""
    return sorted(set(labels))


def celery_queue(label: str) -> str:
    """Return the name of the Celery queue that every worker with the label consumes."""
    return f"evalhub.label.{label}"


def format_labels(labels: Sequence[str]) -> str:
    """Return the labels as part of a sentence, such as 'the labels gpu, macos'."""
    return f"the label{'s' if len(labels) > 1 else ''} {', '.join(labels)}"


def waiting_message(labels: Sequence[str]) -> str:
    """Return the sentence for work that no running worker may do."""
    return f"Waits for a worker with {format_labels(labels)}. None is running."
