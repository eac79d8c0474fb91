"""A way in without a password, from the command line."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.urls import reverse

from evalhub.teams.access import local_owner
from evalhub.teams.members import find_person
from evalhub.teams.models import SignInLink
from evalhub.web.commands import PlainCommand, Result, port_number

PORT_FILE = "up.lock"
"""In the data directory: held by `manage.py up`, with the port that it serves."""
DEFAULT_PORT = 8000


class Command(PlainCommand):
    help = (
        "Print a link that signs somebody in: valid 15 minutes and once, also while passwords are throttled."
    )
    examples = (
        "",
        "--user grace",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--user", help="who it signs in (default when embedded: the local owner; needed on a server)"
        )
        parser.add_argument(
            "--port",
            type=port_number,
            help="where an embedded evalhub listens (default: where it listened last)",
        )

    def work(self, options: dict[str, Any]) -> Result:
        user = find_person(options["user"], "who the link signs in")
        if settings.EMBEDDED:
            link = new_link(options["port"] or port_in_use(), user)
        else:
            host = settings.ALLOWED_HOSTS[0].removeprefix(".")
            link = f"https://{host}{_path(user)}"
        return Result(sign_in_sentence(link), {"link": link})


def new_link(port: int, user: User | None = None) -> str:
    """Return an address on this machine that signs in a person, the local owner by default."""
    return f"http://127.0.0.1:{port}{_path(user or local_owner())}"


def _path(user: User) -> str:
    return reverse("sign-in-link", args=[SignInLink.issue(user)])


def sign_in_sentence(link: str) -> str:
    """Return a sentence with a sign-in link and its lifetime."""
    return f"Sign in: {link} (valid 15 minutes, once)"


def port_in_use() -> int:
    file = settings.DATA_DIR / PORT_FILE
    text = file.read_text() if file.exists() else ""
    return int(text) if text.isdecimal() else DEFAULT_PORT
