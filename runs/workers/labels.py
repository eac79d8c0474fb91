"""Which work the labels of this process allow, and which running workers have a target's labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from runs.errors import MissingLabels
from runs.labels import LabelsWithin, celery_queue, format_labels, normalize_labels, waiting_message
from runs.models import Run, Target, Worker
from runs.models.run import RunState


def own_labels() -> list[str]:
    """Return the labels of this process, sorted."""
    return normalize_labels(settings.WORKER_LABELS)


def labels_suffice() -> Exists:
    """Return the filter that this worker has every label of the target in the column `target`."""
    return Exists(Target.objects.filter(LabelsWithin("labels", own_labels()), pk=OuterRef("target")))


def labels_online() -> list[list[str]]:
    """Return the labels of each worker online. One query."""
    return list(Worker.heard(now=timezone.now()).values_list("labels", flat=True))


def with_labels(labels: Sequence[str], online: Iterable[Sequence[str]]) -> int:
    """Return how many of the workers online have all of these labels."""
    return sum(set(labels) <= set(own) for own in online)


def queue_for(labels: Sequence[str], online: Sequence[Sequence[str]]) -> str:
    """Return the queue for work that needs these labels; empty while no worker online has all of them.

    Of several labels, that which the fewest other workers have: these would ignore the message.
    """
    if not with_labels(labels, online):
        return ""
    others = [own for own in online if not set(labels) <= set(own)]
    return celery_queue(min(labels, key=lambda label: (sum(label in own for own in others), label)))


def describe_wait(run: Run) -> str:
    """Return the sentence for an open run that no worker online may work on; empty for others. One query at most."""
    labels = run.target.labels
    if not labels or not run.is_open or with_labels(labels, labels_online()):
        return ""
    return waiting_message(labels)


def waiting_runs_by_labels() -> list[str]:
    """Return a sentence for each set of labels that open runs wait for and no worker online has. Two queries."""
    opened = Run.objects.filter(state__in=[RunState.QUEUED, RunState.PREPARING, RunState.RUNNING])
    rows = opened.exclude(target__labels=[]).order_by().values_list("target__labels", flat=True)
    counts: dict[tuple[str, ...], int] = {}
    for labels in rows:
        counts[tuple(labels)] = counts.get(tuple(labels), 0) + 1
    online = labels_online() if counts else []
    return [
        f"{runs} run{' waits' if runs == 1 else 's wait'} for a worker with {format_labels(labels)}. None is running."
        for labels, runs in sorted(counts.items())
        if not with_labels(labels, online)
    ]


def refuse_missing_labels(targets: Iterable[Target]) -> None:
    """Raise `MissingLabels` for the first target whose labels this process does not have."""
    labels = own_labels()
    for target in targets:
        missing = [label for label in target.labels if label not in labels]
        if missing:
            raise MissingLabels(
                f"The target '{target.name}' needs {format_labels(target.labels)}, and this process lacks "
                f"{', '.join(missing)}. Set EVALHUB_WORKER_LABELS={','.join(normalize_labels([*labels, *missing]))} if this "
                "machine has what they stand for, or leave the run to a worker that has them."
            )
