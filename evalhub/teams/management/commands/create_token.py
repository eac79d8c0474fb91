"""Tokens for programs, from the command line."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.utils import timezone

from evalhub.teams.access import default_project, of_user
from evalhub.teams.members import find_person
from evalhub.teams.models import ApiToken
from evalhub.teams.roles import Role
from evalhub.teams.tokens import TokenRefused, issue_token
from evalhub.web.commands import PlainCommand, Refused, Result, check_fit, number_of_days


class Command(PlainCommand):
    help = "Make an API token; its secret is printed once and cannot be read again."
    examples = ("ci --role runner --days 90",)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what it is for, as the page of tokens shows it")
        parser.add_argument("--project", help="slug (default: the default project)")
        parser.add_argument("--user", help="its owner (default: the local owner)")
        parser.add_argument("--role", choices=Role.values, default=Role.RUNNER)
        parser.add_argument(
            "--days",
            type=number_of_days,
            help="number of days the token is valid (default: until it is revoked)",
        )

    def work(self, options: dict[str, Any]) -> Result:
        name, role, days = check_fit(ApiToken, "name", options["name"]), options["role"], options["days"]
        owner, slug = (
            find_person(options["user"], "whose token it is"),
            options["project"] or default_project().slug,
        )
        access = of_user(owner, slug)
        if access is None:
            raise Refused(f"{owner} is not a member of project '{slug}'. Use 'manage.py create_user' first.")
        expires = timezone.now() + timedelta(days=days) if days else None
        try:
            _, secret = issue_token(access, name=name, role=role, expires=expires)
        except TokenRefused as error:
            raise Refused(str(error), id="token/refused") from error
        text = f"{secret}\nThis is the only time it is shown. It may do what the role {role} may, at most."
        return Result(text, {"name": name, "role": role, "project": access.project.slug, "token": secret})
