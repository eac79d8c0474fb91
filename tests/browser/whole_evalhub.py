"""A whole evalhub as real processes: pages, database, broker and a worker."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page

from evalhub.web.example_agent import free_port
from tests.browser.conftest import follow
from tests.worker.test_up import NOT_OURS, ROOT


class Served(NamedTuple):
    """A running evalhub."""

    link: str
    """Signs in its only person."""
    environ: Mapping[str, str]
    """What commands on the same data need."""

    def open(self, page: Page) -> None:
        """Sign in and show the first page."""
        page.goto(self.link)
        if (button := page.get_by_role("button", name=re.compile("sign in", re.IGNORECASE))).count():
            follow(button.first)


@contextmanager
def serve_evalhub(data: Path, **variables: str) -> Iterator[Served]:
    """Start evalhub on an empty folder, and stop it at the end."""
    environ = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
    environ |= {"EVALHUB_DATA": str(data), "EVALHUB_SANDBOX": "prefer", **variables}
    words = [sys.executable, "manage.py", "up", "--no-examples", "--port", str(free_port())]
    process = subprocess.Popen(words, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        link = next(found[0] for line in process.stdout if (found := re.search(r"http\S+/sign-in/\S+", line)))
        yield Served(link, environ)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
