"""A way in for the local owner."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from evalhub.teams.access import local_owner
from evalhub.teams.models import SignInLink

PORT_FILE = "up.lock"
"""In the data directory: held by `manage.py up`, with the port that it serves."""
DEFAULT_PORT = 8000


class Command(BaseCommand):
    help = "Print a link that signs in the local owner: valid 15 minutes and once, on this machine only."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=int, help="where evalhub listens (default: where it listened last)"
        )

    def handle(self, *, port: int | None, **_: Any) -> None:
        if not settings.EMBEDDED:
            raise CommandError(
                "Sign-in links exist only in the embedded mode, on loopback. Make a user with 'manage.py create_user'."
            )
        secret = SignInLink.issue(local_owner())
        self.stdout.write(
            f"Sign in: http://127.0.0.1:{port or _port_in_use()}/sign-in/link/{secret}/ (valid 15 minutes, once)"
        )


def _port_in_use() -> int:
    file = settings.DATA_DIR / PORT_FILE
    text = file.read_text() if file.exists() else ""
    return int(text) if text.isdecimal() else DEFAULT_PORT
