"""A real browser over a real server, with static files as in production."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.builders import make_member, make_project

# Playwright's synchronous interface keeps an event loop in this thread, at which Django would refuse to query.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

PATIENCE_MS = 20_000
"""Many tests share few processors; who waits goes on as soon as it is true."""
expect.set_options(timeout=PATIENCE_MS)

SCREENSHOTS = Path(__file__).parents[2] / "artifacts" / "screenshots"
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
"""Programs to look for; the first is Chromium without windows, which needs a third less of the processors."""
POLL_MS = 3_000
"""Milliseconds, longer than any page waits before it asks again; a test with the page's clock skips them."""
COLLECT_VIOLATIONS = """
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
        window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything here, so that `-m "not browser"` leaves it out."""
    for item in items:
        if item.nodeid.startswith("tests/browser/"):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    chromium = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not chromium:
        sentence = "There is no chromium on PATH. Install it, or set CHROMIUM to its path."
        if "browser" in os.environ.get("EVALHUB_TEST_REQUIRE", "").split(","):
            pytest.fail(sentence)
        pytest.skip(sentence)
    arguments = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--no-proxy-server",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
    ]
    return {**browser_type_launch_args, "executable_path": chromium, "args": arguments}


@pytest.fixture(scope="session")
def base_url() -> str:
    """Replace the plugin's fixture, which pytest 9 warns of; tests name the server's address themselves."""
    return ""


@pytest.fixture(scope="session")
def live_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Serve through WhiteNoise and its manifest: pytest-django's own server knows no hashed names."""
    settings.STATIC_ROOT = tmp_path_factory.mktemp("static")
    call_command("collectstatic", interactive=False, verbosity=0)
    with mock.patch("django.contrib.staticfiles.handlers.StaticFilesHandler", lambda app: app):
        server = LiveServer("127.0.0.1")
    yield server
    server.stop()


def follow(control: Locator) -> None:
    """Press a link or button and wait for the load event of the page that it leads to.

    Before that event its deferred scripts may not listen, so a key or a press on that page would be lost.
    """
    with control.page.expect_event("load"):
        control.click()


def go_back(page: Page) -> None:
    """Go back to an address that htmx left in place, and wait for the load event: htmx fetches the whole page again."""
    with page.expect_event("load"):
        page.go_back()


@pytest.fixture
def project(transactional_db: None) -> Any:
    return make_project()


@pytest.fixture
def complaints(page: Page, context: BrowserContext) -> list[str]:
    """Return the list that console errors and uncaught exceptions are put into."""
    found: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            found.append(message.text)

    context.add_init_script(COLLECT_VIOLATIONS)
    page.on("console", hear)
    page.on("pageerror", lambda error: found.append(str(error)))
    return found


@pytest.fixture
def as_admin(page: Page, live_server: LiveServer, project: Any, complaints: list[str]) -> Page:
    """Return the page of somebody who is signed in as an admin of the project."""
    client = Client()
    client.force_login(make_member(project, "admin", "ada"))
    cookie = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
    page.set_default_timeout(30_000)
    return page


@pytest.fixture
def without_script(browser: Browser, as_admin: Page) -> Iterator[Page]:
    """Return a page of the same person in a browser that runs no script."""
    context = browser.new_context(java_script_enabled=False, storage_state=as_admin.context.storage_state())
    yield context.new_page()
    context.close()
