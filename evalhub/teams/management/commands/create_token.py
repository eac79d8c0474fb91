"""Tokens for programs, from the command line."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from evalhub.teams.access import default_project, local_owner, of_user
from evalhub.teams.models import ApiToken, note
from evalhub.teams.roles import Role


class Command(BaseCommand):
    help = "Make an API token; its secret is printed once and cannot be read again."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what it is for, as the page of tokens shows it")
        parser.add_argument("--project", help="slug (default: the default project)")
        parser.add_argument("--user", help="its owner (default: the local owner)")
        parser.add_argument("--role", choices=Role.values, default=Role.RUNNER)
        parser.add_argument("--days", type=int, help="valid for so many days (default: until it is revoked)")
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def handle(
        self, *, name: str, project: str | None, user: str | None, role: str, days: int | None, **options: Any
    ) -> None:
        owner = _owner(user)
        access = of_user(owner, project or default_project().slug)
        if access is None:
            raise CommandError(
                f"{owner} is no member of a project '{project}'. Use 'manage.py create_user' first."
            )
        expires = timezone.now() + timedelta(days=days) if days else None
        token, secret = ApiToken.issue(access.project, owner, name=name, role=role, expires=expires)
        note(access.project, owner, "token.create", token, role=role)
        if options["json"]:
            self.stdout.write(
                json.dumps({"name": name, "role": role, "project": access.project.slug, "token": secret})
            )
        else:
            self.stdout.write(
                f"{secret}\nThis is the only time it is shown. It may do what a {role} may, at most."
            )


def _owner(name: str | None) -> Any:
    if name is None and settings.EMBEDDED:
        return local_owner()
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise CommandError(
            f"There is no user '{name or ''}'. Give --user, or make one with 'manage.py create_user'."
        )
    return user
