"""A way in for the local owner."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from evalhub.teams.access import local_owner
from evalhub.teams.models import SignInLink
from evalhub.web.commands import PlainCommand, Refused, Result, port_number

PORT_FILE = "up.lock"
"""In the data directory: held by `manage.py up`, with the port that it serves."""
DEFAULT_PORT = 8000


class Command(PlainCommand):
    help = "Print a link that signs in the local owner: valid 15 minutes and once, on this machine only."

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=port_number, help="where evalhub listens (default: where it listened last)"
        )

    def work(self, options: dict[str, Any]) -> Result:
        if not settings.EMBEDDED:
            raise Refused(
                "Sign-in links exist only in the embedded mode, on loopback. Make a user with 'manage.py create_user'."
            )
        link = new_link(options["port"] or _port_in_use())
        return Result(told(link), {"link": link})


def new_link(port: int) -> str:
    """Return an address that signs in the local owner."""
    return f"http://127.0.0.1:{port}/sign-in/link/{SignInLink.issue(local_owner())}/"


def told(link: str) -> str:
    """Say to people what a link is for and how long."""
    return f"Sign in: {link} (valid 15 minutes, once)"


def _port_in_use() -> int:
    file = settings.DATA_DIR / PORT_FILE
    text = file.read_text() if file.exists() else ""
    return int(text) if text.isdecimal() else DEFAULT_PORT
