"""`make serve`, which serves pages while somebody works on them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from evalhub.web.example_agent import free_port
from tests.worker.stand import ROOT
from tests.worker.test_up import environment

pytestmark = pytest.mark.one_database


@contextmanager
def serving(data: Path, port: int) -> Iterator[None]:
    """Serve the pages with the Makefile's own command."""
    recipe = re.search(r"^serve:.*\n\t@(.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    command = recipe[1].replace("$(PY)", sys.executable).replace("$(PORT)", str(port))
    process = subprocess.Popen(
        ["sh", "-c", f"{command} --noreload"],
        cwd=ROOT,
        env={**os.environ, **environment(data)},
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)


@pytest.mark.slow
def test_a_new_database_has_pages_with_their_styles(tmp_path: Path) -> None:
    port = free_port()
    with serving(tmp_path / "data", port), httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        deadline = time.monotonic() + 60
        while True:
            try:
                page = client.get("/sign-in/")
                break
            except httpx.ConnectError:
                assert time.monotonic() < deadline, "it doesn't serve"
                time.sleep(0.2)
        assert page.status_code == 200
        styles = re.findall(r'href="(/static/[^"]+\.css)"', page.text)
        assert styles
        assert {client.get(address).status_code for address in styles} == {200}
