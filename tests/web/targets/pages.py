"""The targets page, uploads of a targets file, and their audit entries."""

from __future__ import annotations

from evalhub.teams.models import AuditEvent
from tests.web.screen import parse

ADDRESS = "/p/tools/targets/"
FILE = b"targets:\n  - name: local\n    provider: mock\n    workers: 2\n    model: gpt-5\n    judge_target: openai/judge\n"


def actions():
    return list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))


def form_of(response):
    """Return the form that a target is edited in."""
    (form,) = [each for each in parse(response).all("form") if each.all("textarea[name=definition]")]
    return form
