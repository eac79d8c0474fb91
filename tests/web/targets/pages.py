"""The targets page, uploads of a targets file, and their audit entries."""

from __future__ import annotations

from evalhub.teams.models import AuditEvent

ADDRESS = "/p/tools/targets/"
FILE = b"targets:\n  - name: local\n    provider: mock\n    workers: 2\n    model: gpt-5\n    judge_target: judge\n"


def actions():
    return list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))
