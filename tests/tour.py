"""Screenshots of every page with the examples in it: `make screenshots`.

All of them, at both widths and in both modes, go to `artifacts/tour/`; those that docs/tour.md shows go to
`docs/images/`. Starts an evalhub of its own in a temporary folder.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from evalhub.web.example_agent import free_port

ROOT = Path(__file__).resolve().parents[1]
ALL = ROOT / "artifacts" / "tour"
DOCS = ROOT / "docs" / "images"
WIDTHS = (1280, 390)
MODES = ("light", "dark")
CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-sync",
]
PAGES = {
    "home": "/p/default/",
    "suites": "/p/default/suites/",
    "suite": "/p/default/suites/stock/",
    "run-new": "/p/default/runs/new/?suite=git-basics&targets=scripted-agent&trials=3",
    "runs": "/p/default/runs/",
    "run": "/p/default/runs/3/",
    "run-regressed": "/p/default/runs/11/",
    "trial": "/p/default/trials/1/",
    "compare": "/p/default/compare/?runs=3,4",
    "guidance-against": "/p/default/guidance/1/against/2/",
    "trends": "/p/default/trends/",
    "reviews": "/p/default/reviews/",
    "regressions": "/p/default/regressions/",
    "targets": "/p/default/targets/",
    "settings": "/p/default/settings/",
    "patterns": "/patterns/",
}
"""Name and address of each page of the documents; the examples get the same numbers in every fresh database."""
NOT_FOUND = "not-found"
MORE_PAGES = {
    "projects": "/projects/",
    "project-new": "/projects/new/",
    "password": "/password/",
    "schemas": "/schemas/",
    "rationales": "/p/default/reviews/rationales/",
    "disagreements": "/p/default/reviews/disagreements/",
    "calibration": "/p/default/reviews/calibration/",
    "run-reassess": "/p/default/runs/1/again/",
    "search": "/p/default/search/?q=git",
    "usage": "/p/default/usage/",
    "guidance": "/p/default/guidance/",
    "guidance-version": "/p/default/guidance/1/",
    "run-tools": "/p/default/runs/13/tools/",
    "run-import": "/p/default/runs/import/",
    "session-import": "/p/default/runs/sessions/",
    "regression-confirm": "/p/default/regressions/1/confirm/",
    "suite-new": "/p/default/new-suite/",
    "suite-edit": "/p/default/suites/git-basics/edit/",
    "suite-pattern": "/p/default/suites/git-basics/pattern/",
    "trial-replay": "/p/default/trials/1/replay/",
    "suite-difference": "/p/default/suites/stock/difference/",
    "runs-nothing": "/p/default/runs/?q=nowhere",
    "trial-against": "/p/default/trials/19/against/13/",
    "compare-matrix": "/p/default/compare/?runs=3,4,5",
    "compare-more": "/p/default/compare/more/?runs=3,4",
    "compare-none": "/p/default/compare/",
    "target": "/p/default/targets/1/",
    "target-new": "/p/default/targets/new/?provider=cli",
    "settings-prices": "/p/default/settings/prices/",
    "settings-notifications": "/p/default/settings/notifications/",
    "settings-channel-new": "/p/default/settings/notifications/new/webhook/",
    "settings-audit": "/p/default/settings/audit/",
    NOT_FOUND: "/p/default/nowhere/",
}
"""Pages that are drawn to be looked at only."""
BEFORE_SIGNING_IN = {"sign-in": "/sign-in/"}


@contextmanager
def evalhub_with_examples() -> Iterator[str]:
    """Start evalhub with its examples in a temporary folder; give the link that signs in."""
    with tempfile.TemporaryDirectory(prefix="evalhub-tour-") as data, evalhub(Path(data)) as link:
        yield link


@contextmanager
def evalhub(data: Path, *options: str) -> Iterator[str]:
    """Start evalhub with a data directory and `up`'s options; give the link that signs in."""
    command = [sys.executable, "manage.py", "up", "--port", str(free_port()), *options]
    own = ("EVALHUB_", "DATABASE_URL", "DJANGO_SETTINGS_MODULE")
    env = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    env["EVALHUB_DATA"] = str(data)
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as up:
        try:
            yield next(
                found[0]
                for line in up.stdout or ()
                if (found := re.search(r"http\S+/sign-in/link/\S+", line))
            )
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(30)
            log = (data / "logs" / "web.log").read_text()
            if "Traceback" in log:
                print(log[-4000:], file=sys.stderr)


def draw(browser: Browser, link: str) -> None:
    """Draw every page at every width and in every mode."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button").first.click()
    state = context.storage_state()
    home = link.split("/sign-in/")[0]
    for width in WIDTHS:
        for mode in MODES:
            screen = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=mode, storage_state=state
            )
            _draw_all(screen.new_page(), home, f"{width}-{mode}", PAGES | MORE_PAGES)
            screen.clear_cookies()
            _draw_all(screen.new_page(), home, f"{width}-{mode}", BEFORE_SIGNING_IN)
            screen.close()


def _draw_all(page: Page, home: str, suffix: str, pages: dict[str, str]) -> None:
    for name, address in pages.items():
        answer = page.goto(home + address, wait_until="networkidle")
        if answer is None or answer.status != (404 if name == NOT_FOUND else 200):
            raise RuntimeError(f"{address} answers {answer.status if answer else 'nothing'}")
        page.screenshot(path=ALL / f"{name}-{suffix}.png", full_page=True)


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        sys.exit("There is no Chromium on PATH. Install it with 'make services', or name it in CHROMIUM.")
    for folder in (ALL, DOCS):
        folder.mkdir(parents=True, exist_ok=True)
    with evalhub_with_examples() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        draw(browser, link)
        browser.close()
    for name in PAGES:
        shutil.copy(ALL / f"{name}-1280-light.png", DOCS / f"{name}.png")
    shutil.copy(ALL / "run-1280-dark.png", DOCS / "run-dark.png")
    shutil.copy(ALL / "run-390-light.png", DOCS / "run-390.png")


if __name__ == "__main__":
    main()
