"""`worker_health`: check the worker of this machine, for containers."""

from __future__ import annotations

import socket
from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from runs.models import Worker
from scenarios.commands import EvalhubCommand, Refused, Result


class Command(EvalhubCommand):
    help = "Exit with 0 if a worker on this machine sent a heartbeat in the last minute."
    examples = ("",)

    def arguments(self, parser: ArgumentParser) -> None:
        pass

    def work(self, options: dict[str, Any]) -> Result:
        host = socket.gethostname()
        workers = Worker.heard(now=timezone.now()).filter(name__startswith=f"{host}:")
        names = list(workers.values_list("name", flat=True))
        if not names:
            raise Refused(
                f"No worker on {host} sent a heartbeat in the last minute. Check its log, or start one.",
                id="worker/silent",
            )
        return Result(f"Online: {', '.join(names)}.", {"workers": names})
