"""People, from the command line."""

from __future__ import annotations

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from evalhub.teams import audit
from evalhub.teams.access import default_project
from evalhub.teams.models import Membership, Project
from evalhub.teams.roles import Role
from evalhub.web.commands import PlainCommand, Refused, Result, check_fit


class Command(PlainCommand):
    help = "Make a user, or give one a role; the password is asked for, or read from standard input."
    examples = ("grace --role author --email grace@example.com",)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="name to sign in with")
        parser.add_argument(
            "--project", help="slug of the project (default: the default project; made when missing)"
        )
        parser.add_argument(
            "--role", choices=Role.values, help="default: the one that the person has, else viewer"
        )
        parser.add_argument(
            "--email", help="address for notifications; also sets that of an existing account"
        )

    @transaction.atomic
    def work(self, options: dict[str, Any]) -> Result:
        name, users = options["name"], get_user_model().objects
        user = users.filter(username=name).first()
        room = _project(options["project"])
        if user is None:
            check_fit(get_user_model(), "username", name)
            user = users.create_user(name, password=_password(name))
        elif not user.is_active:
            raise Refused(
                f"The account of {name} is switched off, so it can have no role. Choose another name."
            )
        if options["email"] is not None:
            address = options["email"]
            try:
                validate_email(address)
            except ValidationError as error:
                raise Refused(
                    f"'{address}' is not an e-mail address. Write one such as ada@example.org."
                ) from error
            user.email = address
            user.save(update_fields=["email"])
        # Without a word about it nobody loses a role: a project's only admin would be its last.
        present = Membership.objects.filter(project=room, user=user).values_list("role", flat=True).first()
        role = options["role"] or present or Role.VIEWER.value
        Membership.objects.update_or_create(project=room, user=user, defaults={"role": role})
        audit.append_event(room, None, "member.role", name, role=role)
        document = {"name": name, "role": role, "project": room.slug}
        return Result(f"{name} is {role} of {room.name}.", document)


def _project(slug: str | None) -> Project:
    if slug is None:
        return default_project()
    project = Project.objects.filter(slug=slug).first()
    return project or Project.objects.create(slug=check_fit(Project, "slug", slug), name=slug)


def _password(name: str) -> str:
    password = (
        getpass.getpass(f"Password of {name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    )
    try:
        validate_password(password, get_user_model()(username=name))
    except ValidationError as error:
        raise Refused(" ".join(error.messages)) from error
    return password
