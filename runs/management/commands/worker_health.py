"""For health checks of containers: whether the worker of this machine says that it is here."""

from __future__ import annotations

import socket
from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from runs.models import Worker
from scenarios.commands import EvalhubCommand, Refused, Result


class Command(EvalhubCommand):
    help = "Exit with 0 where a worker of this machine was heard of in the last minute."

    def arguments(self, parser: ArgumentParser) -> None:
        pass

    def work(self, options: dict[str, Any]) -> Result:
        host = socket.gethostname()
        here = Worker.heard(now=timezone.now()).filter(name__startswith=f"{host}:")
        names = list(here.values_list("name", flat=True))
        if not names:
            raise Refused(
                f"No worker on {host} was heard of in the last minute. Look into its log, or start one.",
                id="worker/silent",
            )
        return Result(f"Heard of {', '.join(names)}.", {"workers": names})
