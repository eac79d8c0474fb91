"""docs/operations.md lists every setting, command and metric that there is."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

from evalhub.metrics import collect_metrics

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/operations.md").read_text()


def settings_read() -> set[str]:
    """Return the names that evalhub/settings.py reads from the environment."""
    text = (ROOT / "evalhub/settings.py").read_text()
    kinds = r"read_\w+|kept_secret|file_store|readable_file|web_address|mail_server"
    return set(re.findall(rf'environment\.(?:{kinds})\(\s*"(\w+)"', text))


def settings_documented() -> set[str]:
    section = PAGE.split("## Settings")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE))


def test_every_setting_is_documented_and_no_other():
    assert len(settings_read()) > 12
    assert settings_documented() == settings_read()


@pytest.mark.parametrize("command", sorted(set(re.findall(r"manage\.py (\w+)", PAGE))))
def test_every_command_that_it_names_is_one(command):
    from django.core.management import get_commands

    assert command in get_commands()


@pytest.mark.django_db
def test_every_metric_is_documented():
    assert {metric.name for metric in collect_metrics()} == set(re.findall(r"`(evalhub_\w+)`", PAGE))


def unit_text() -> str:
    (block,) = re.findall(r"^```ini\n(\[Unit\].*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return block


def unit() -> ConfigParser:
    """Return the systemd unit of the page."""
    parser = ConfigParser(interpolation=None, strict=True, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # systemd's names have capitals
    parser.read_string(unit_text())
    return parser


def test_the_systemd_unit_starts_the_worker_again_whatever_ends_it():
    parsed = unit()
    assert parsed["Service"]["Restart"] == "always"
    assert parsed["Unit"]["StartLimitIntervalSec"] == "0", "systemd gives up after five starts otherwise"
    assert parsed["Service"]["KillMode"] == "mixed"
    assert parsed["Install"]["WantedBy"] == "multi-user.target"


def test_the_systemd_unit_matches_the_commands_on_the_page():
    program, *words = shlex.split(unit()["Service"]["ExecStart"])
    assert Path(program).is_absolute()
    command = " ".join([Path(program).name, *words])
    assert command in PAGE.split("## Without containers")[1].split("```sh")[1].split("```")[0]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_the_unit(tmp_path: Path):
    (tmp_path / "evalhub-worker.service").write_text(
        unit_text().replace(unit()["Service"]["ExecStart"].split()[0], shutil.which("true") or "/bin/true")
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "evalhub-worker.service")],
        capture_output=True,
        text=True,
    )
    assert "Unknown key" not in done.stderr
    assert "Failed to parse" not in done.stderr
