"""Pages over 1,000 runs of 100 trials, the same over ten times as many runs, and over a million trials.

A page's drawing is measured in Chromium with an empty cache, from the request until the frame with its pictures.
Server time is what the WSGI application takes, from the `Server-Timing` header of `tests.bench.timed`: no socket and
no client is in it. EVALHUB_BENCH_DATA keeps the generated histories between two calls; without it they are made anew.
"""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from playwright.sync_api import sync_playwright

from tests.bench.figures import MANAGE, ROOT, Figure, run
from tests.bench.workers import resident_mb
from tests.services.servers import NotHere, new_database, postgres

PORT = 8978
REQUESTS = 100
WARM_UP = 20
FORMS = "32CharactersThatEveryBrowserSend"
"""The cookie of forms, which a browser has from the first page on."""
HTML_MS, JSON_MS, RUN_MS = 50.0, 15.0, 70.0
PROCESS_MB, TIER_MB, COMPARING_MB = 180.0, 360.0, 210.0
FLAT = 1.5

PAGES: dict[str, tuple[str, float, str]] = {
    "project home": ("/p/demo-data/", HTML_MS, "-"),
    "run list, HTML": ("/p/demo-data/runs/", HTML_MS, "promptfoo 25.3, phoenix 138"),
    "run list, JSON": ("/api/v1/runs", JSON_MS, "phoenix 8.4 without scores"),
    "run, first 50 trials": ("/p/demo-data/runs/{run}/", RUN_MS, "promptfoo 9.6, inspect 168"),
    "trial": ("/p/demo-data/trials/{trial}/", HTML_MS, "-"),
    "new run, with its plan": (
        "/p/demo-data/runs/new/?suite=taskmgr-basics&targets=claude-code%20%C2%B7%20sonnet&trials=3",
        HTML_MS,
        "-",
    ),
    "regressions": ("/p/demo-data/regressions/", HTML_MS, "-"),
    "reviews": ("/p/demo-data/reviews/", HTML_MS, "-"),
    "judge calibration": ("/p/demo-data/reviews/calibration/", HTML_MS, "-"),
    "rationales": ("/p/demo-data/reviews/rationales/", HTML_MS, "-"),
    "usage": ("/p/demo-data/usage/", HTML_MS, "-"),
    "trends": ("/p/demo-data/trends/", HTML_MS, "promptfoo 1.3 (values alone, as JSON)"),
}
"""Address, target of the median in milliseconds, and what peers were measured at for the same task."""
COMPARISONS: dict[str, tuple[str, float, str]] = {
    "compare two runs": ("/p/demo-data/compare/?runs={before},{run}", HTML_MS, "-"),
    "compare four runs": ("/p/demo-data/compare/?runs={several}", HTML_MS, "-"),
    "compare two guidance versions": ("/p/demo-data/guidance/{guidance}/", HTML_MS, "-"),
    "guidance": ("/p/demo-data/guidance/", HTML_MS, "-"),
}
"""Pages that need scipy or numpy, which a web process loads with the first of them."""

_PREPARE = """
from importlib import import_module
from django.conf import settings
from django.contrib.auth import get_user_model
from evalhub.teams.access import local_owner
from evalhub.teams.models import ApiToken, Membership, Project
from runs.models import Run, Trial
from runs.compare.guidance.guidance_comparison import settings_of
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
user, project = local_owner(), Project.objects.get(slug="demo-data")
Membership.objects.get_or_create(project=project, user=user, defaults={"role": "admin"})
session = import_module(settings.SESSION_ENGINE).SessionStore()
session.update({SESSION_KEY: str(user.pk), BACKEND_SESSION_KEY: settings.AUTHENTICATION_BACKENDS[0]})
session[HASH_SESSION_KEY] = user.get_session_auth_hash()
session.save()
run = Run.objects.filter(project=project).order_by("-pk")[3]
trial = Trial.objects.filter(run=run, outcome="fail").first() or Trial.objects.filter(run=run).first()
token = ApiToken.issue(project, user, name="bench", role="viewer")[1]
alike = Run.objects.filter(suite=run.suite, target=run.target, pk__lt=run.pk).order_by("-pk")
alike = list(alike.exclude(pk=run.baseline_id).values_list("pk", flat=True)[:3])
versions = list(run.suite.guidance.order_by("number"))
old, new = next(pair for pair in zip(versions, versions[1:]) if settings_of(*pair))
several = ",".join(map(str, [*alike[::-1], run.pk]))
print(session.session_key, token, run.pk, trial.pk, alike[0], several, f"{old.pk}/against/{new.pk}")
"""


@dataclass(frozen=True)
class Visitor:
    """Somebody who is signed in, and what there is to look at."""

    session: str
    token: str
    run: str
    trial: str
    before: str
    """An earlier run of the same suite and target that is not its baseline."""
    several: str
    """Four such runs."""
    guidance: str
    """Two versions of its suite's guidance that ran in one setting."""

    def milliseconds(self, address: str) -> float:
        """Return the server's time for one page. Raises `RuntimeError` for any answer but 200."""
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
        headers = {
            "Cookie": f"sessionid={self.session}; csrftoken={FORMS}",
            "Authorization": f"Bearer {self.token}",
        }
        connection.request("GET", address.format(**vars(self)), headers=headers)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError(f"{address} answered {response.status}.")
        return float(str(response.headers["Server-Timing"]).partition("dur=")[2])


def signed_in(data: Path, env: dict[str, str]) -> Visitor:
    """Return a visitor who is signed in, with a token, a run and a trial of the history."""
    return Visitor(*run([*MANAGE, "shell", "--no-imports", "-c", _PREPARE], data, **env).output.split())


@contextmanager
def history(name: str, runs: int, trials: int, database: str) -> Iterator[tuple[Path, dict[str, str]]]:
    """Give a data directory and environment with a generated history."""
    with ExitStack() as stack:
        kept = os.environ.get("EVALHUB_BENCH_DATA")
        root = Path(kept or stack.enter_context(tempfile.TemporaryDirectory(prefix="evalhub-bench-")))
        data = root / name
        # A database server asks for a broker that others reach; pages never do.
        env = {"DATABASE_URL": database, "EVALHUB_BROKER_URL": "redis://127.0.0.1:1/0"} if database else {}
        # A sign-in of the local owner needs the embedded mode's secret and hosts, on either database.
        env |= {"EVALHUB_SECRET_KEY": "a-secret-of-the-benchmark-that-is-long-enough", "EVALHUB_HOSTS": ""}
        run([*MANAGE, "migrate", "-v0"], data, **env)
        if database or not (data / "made").exists():
            run([*MANAGE, "collectstatic", "--noinput", "-v0"], data, **env)
            run(
                [sys.executable, "-m", "tests.history", "--runs", str(runs), "--trials", str(trials)],
                data,
                **env,
            )
            (data / "made").touch()
        yield data, env


@contextmanager
def served(data: Path, env: dict[str, str]) -> Iterator[list[int]]:
    """Serve the pages with two web processes; give their ids."""
    argv = [sys.executable, "-m", "gunicorn", "tests.bench.timed:application", "--bind", f"127.0.0.1:{PORT}"]
    argv += [
        "--worker-class",
        "evalhub.web.server.ThreadWorker",
        "--workers",
        "2",
        "--threads",
        "8",
        "--no-control-socket",
        "--preload",
    ]
    argv += ["--log-level", "warning"]
    with subprocess.Popen(
        argv, cwd=ROOT, env={**os.environ, "MALLOC_ARENA_MAX": "1", "EVALHUB_DATA": str(data), **env}
    ) as server:
        try:
            yield _children(server.pid)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


def _children(parent: int) -> list[int]:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        if len(found) == 2:
            time.sleep(0.5)
            return [int(pid) for pid in found]
        time.sleep(0.1)
    raise TimeoutError("the web processes did not start within 30 s")


BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
COLD_VISITS = 15
DRAWN_MS = 300.0


def _times(visitor: Visitor, address: str) -> list[float]:
    for _ in range(WARM_UP):
        visitor.milliseconds(address)
    return [visitor.milliseconds(address) for _ in range(REQUESTS)]


_DRAWN = """window.drawn = new Promise((resolve) => addEventListener("DOMContentLoaded", () =>
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))));"""


def _milliseconds_until_drawn(visitor: Visitor) -> list[float]:
    """Return how long a browser takes from the request of the trends until their charts are drawn, best last."""
    times = []
    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--no-proxy-server"])
        for _ in range(COLD_VISITS):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            address = f"http://127.0.0.1:{PORT}"
            context.add_cookies([{"name": "sessionid", "value": visitor.session, "url": address}])
            page = context.new_page()
            page.add_init_script(_DRAWN)
            page.goto(address + PAGES["trends"][0])
            page.get_by_role("group", name="Pass rate").wait_for()
            times.append(float(page.evaluate("window.drawn")))
            context.close()
        browser.close()
    return sorted(times, reverse=True)


def drawing() -> Iterator[Figure]:
    """The trends in a browser with an empty cache, over 1,000 runs of 10 trials on SQLite."""
    with history("few", 1000, 10, "") as (data, env):
        visitor = signed_in(data, env)
        with served(data, env):
            found = _milliseconds_until_drawn(visitor)
    name = f"trends, cold, until their charts are drawn, best of {COLD_VISITS}"
    yield Figure(name, found[-1], "ms", DRAWN_MS)


def _measured(data: Path, env: dict[str, str]) -> tuple[dict[str, list[float]], list[float], list[float]]:
    """Return the times of every page, and the megabytes of each web process before and after comparisons."""
    visitor = signed_in(data, env)
    with served(data, env) as processes:
        times = {name: _times(visitor, address) for name, (address, _, _) in PAGES.items()}
        memory = [resident_mb(pid) for pid in processes]
        times |= {name: _times(visitor, address) for name, (address, _, _) in COMPARISONS.items()}
        return times, memory, [resident_mb(pid) for pid in processes]


def on_databases(measured: Callable[[str, Callable[[str], str]], Iterator[Figure]]) -> Iterator[Figure]:
    """Yield figures on SQLite and, where it is installed, on PostgreSQL.

    `measured` takes the vendor's name, and a function that returns the URL of a new database of a name.
    """
    yield from measured("SQLite", lambda name: "")
    try:
        with postgres() as url:
            yield from measured("PostgreSQL", lambda name: new_database(url, name))
    except NotHere as error:
        print(error)


def pages() -> Iterator[Figure]:
    """Every page on SQLite and, where it is installed, on PostgreSQL."""
    yield from on_databases(_on)


def _on(vendor: str, database: Callable[[str], str]) -> Iterator[Figure]:
    with history("large", 1000, 100, database("large")) as (data, env):
        times, memory, comparing = _measured(data, env)
    for name, found in times.items():
        _, target, peers = (PAGES | COMPARISONS)[name]
        yield Figure(f"{vendor}: {name}, p50 (peers: {peers})", median(found), "ms", target)
        yield Figure(f"{vendor}: {name}, p95 over p50", quantiles(found, n=20)[-1] / median(found), "×", 2.0)
    yield Figure(f"{vendor}: a web process (peers: promptfoo 1375)", max(memory), "MB", PROCESS_MB)
    yield Figure(f"{vendor}: the web tier (peers: phoenix 499, mlflow 2919)", sum(memory), "MB", TIER_MB)
    yield Figure(f"{vendor}: a web process that has compared runs", max(comparing), "MB", COMPARING_MB)
    yield from _flat(vendor, database)


def _flat(vendor: str, database: Callable[[str], str]) -> Iterator[Figure]:
    """1,000 and 10,000 runs, of ten trials each, so that the larger history is made in minutes."""
    medians = []
    for name, runs in (("few", 1000), ("many", 10_000)):
        with history(name, runs, 10, database(name)) as (data, env):
            times, _, _ = _measured(data, env)
        medians.append({page: median(found) for page, found in times.items()})
    for page in PAGES | COMPARISONS:
        yield Figure(
            f"{vendor}: {page}, 10,000 runs over 1,000", medians[1][page] / medians[0][page], "×", FLAT
        )


def million() -> Iterator[Figure]:
    """Every page over 10,000 runs of 100 trials, on SQLite and, where it is installed, on PostgreSQL."""
    yield from on_databases(_on_a_million)


def _on_a_million(vendor: str, database: Callable[[str], str]) -> Iterator[Figure]:
    with history("million", 10_000, 100, database("million")) as (data, env):
        times, _, _ = _measured(data, env)
    for name, found in times.items():
        yield Figure(f"{vendor}: {name}, a million trials, p50", median(found), "ms", 100.0)
        yield Figure(f"{vendor}: {name}, a million trials, p95", quantiles(found, n=20)[-1], "ms", 250.0)
