"""What every test shares: who needs the database is marked, and nothing is remembered from the last test's rows."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import sys
from collections.abc import Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.dispatch import receiver
from django.test.signals import setting_changed
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from evalhub.console import YOUNG_OBJECTS
from tests.all import find_repeated
from tests.heartbeats import end_heartbeats

gc.disable()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in the background so, and some tests press Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something about the machine, not about what is tested.
hypothesis_settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("unhurried")

ASKING_MODELS = ("tests/agentv", "tests/runs/engine", "tests/runs/targets")
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences", "live_server"}


def needs_database(item: pytest.Item) -> bool:
    """Tell whether a test reads or writes rows."""
    names = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or bool(names & DATABASE_FIXTURES)


def find_sampled_out(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the cases of tables marked `sampled(n)` that are not among the n of them, always the same, that stay ordinary."""
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = []
    for cases in tables.values():
        cases.sort(key=lambda item: item.nodeid)
        mark = cases[0].get_closest_marker("sampled")
        number = mark.args[0] if mark else 0
        step = len(cases) / number
        stay = {int(index * step) for index in range(number)}
        left_out += [item for index, item in enumerate(cases) if index not in stay]
    return left_out


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Mark what has to hold on every database, for the second pass on PostgreSQL; move to the front what starts first."""
    for item in items:
        if needs_database(item):
            item.add_marker(pytest.mark.database)
    for item in find_sampled_out(items):
        item.add_marker(pytest.mark.slow)
    yield
    items.sort(key=lambda item: item.get_closest_marker("starts_first") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse ids that tests share; look for garbage again, but not in what is collected by now: it stays to the end."""
    if shared := find_repeated(item.nodeid for item in session.items):
        raise pytest.UsageError(f"Several tests have the id {shared[0]}, so pytest-xdist would run only one.")
    gc.collect()
    gc.freeze()
    # As commands do; see docs/decisions/0012-commands-rarely-collect.md.
    gc.set_threshold(YOUNG_OBJECTS)
    gc.enable()


@receiver(setting_changed)
def _forget_containment(**_: Any) -> None:
    """Let the next test build its own: it is kept for a process, whose settings never change elsewhere."""
    settings = sys.modules.get("runs.sandbox.worker_settings")
    if settings:
        settings.containment.cache_clear()


@pytest.fixture(autouse=True, scope="session")
def _load_litellm(request: pytest.FixtureRequest) -> None:
    """Load litellm before the first call: which test of a process asks a model first is chance, and it takes seconds."""
    if "PYTEST_XDIST_WORKER" in os.environ and any(
        item.nodeid.startswith(ASKING_MODELS) for item in request.session.items
    ):
        import litellm  # noqa: F401


@pytest.fixture(autouse=True)
def _no_connections_of_litellm() -> Iterator[None]:
    """Close the clients that litellm keeps for the next call: a test's server is not there any more."""
    yield
    litellm = sys.modules.get("litellm")
    clients = litellm.in_memory_llm_clients_cache if litellm else None
    if clients and clients.cache_dict:
        for client in list(clients.cache_dict.values()):
            closing = client.close() if hasattr(client, "close") else None
            if inspect.iscoroutine(closing):
                _run_elsewhere(closing)
        clients.flush_cache()


def _run_elsewhere(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine to its end in another thread: Playwright's event loop never leaves this one."""
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(asyncio.run, coroutine).result()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let heartbeats end before the rows and the database of a test are removed: they may be amid a query."""
    if nextitem is None or needs_database(item):
        end_heartbeats()


@pytest.fixture
def served(settings: Any) -> None:
    """Many people, not one owner."""
    settings.EMBEDDED = False
