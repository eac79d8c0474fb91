"""People, from the command line."""

from __future__ import annotations

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from evalhub.teams.access import default_project
from evalhub.teams.models import Membership, Project, note
from evalhub.teams.roles import Role


class Command(BaseCommand):
    help = "Make a user, or give one a role; the password is asked for, or read from standard input."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "--project", help="slug of the project (default: the default project; made when missing)"
        )
        parser.add_argument("--role", choices=Role.values, default=Role.VIEWER)

    @transaction.atomic
    def handle(self, *, name: str, project: str | None, role: str, **_: Any) -> None:
        users = get_user_model().objects
        user = users.filter(username=name).first()
        if user is None:
            user = users.create_user(name, password=_password(name))
        room = (
            Project.objects.get_or_create(slug=project, defaults={"name": project})[0]
            if project
            else default_project()
        )
        Membership.objects.update_or_create(project=room, user=user, defaults={"role": role})
        note(room, None, "member.role", name, role=role)
        self.stdout.write(f"{name} is {role} of {room.name}.")


def _password(name: str) -> str:
    password = (
        getpass.getpass(f"Password of {name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    )
    try:
        validate_password(password)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
    return password
