"""docs/operations.md lists every setting, command and metric that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalhub.metrics import collected

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/operations.md").read_text()


def settings_read() -> set[str]:
    """Return the names that evalhub/settings.py reads from the environment."""
    text = (ROOT / "evalhub/settings.py").read_text()
    return set(
        re.findall(r'environment\.(?:text|words|integer|choice|kept_secret|file_store)\(\s*"(\w+)"', text)
    )


def settings_told() -> set[str]:
    section = PAGE.split("## Settings")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE))


def test_every_setting_is_told_and_no_other():
    assert len(settings_read()) > 12
    assert settings_told() == settings_read()


@pytest.mark.parametrize("command", sorted(set(re.findall(r"manage\.py (\w+)", PAGE))))
def test_every_command_that_it_names_is_one(command):
    from django.core.management import get_commands

    assert command in get_commands()


@pytest.mark.django_db
def test_every_metric_is_told():
    assert {metric.name for metric in collected()} == set(re.findall(r"`(evalhub_\w+)`", PAGE))
