"""Shares the tests of a pass among processes: each takes the next file that no other has taken, until all are taken.

`python -m pytest -p tests.sharing --shared-in=FOLDER`, in as many processes as there are to share, at any time: all that
they have in common is the folder. A file's tests stay together, for they share what is expensive to make. Files whose
tests wait long for processes and browsers are taken first, so that the processes end at about the same time, but who
comes later begins at the other end: many such tests at once would take each other's time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, groupby, pairwise
from pathlib import Path
from urllib.parse import quote

import pytest

LONG = ("slow", "own_servers", "browser", "worker")
"""What marks tests of a file that are taken first."""
NUMBER = "files"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the folder in which the processes tell each other what is taken."""
    parser.addoption("--shared-in", type=Path, help="share the tests with others that name this folder")


def stretches(items: list[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """Return the tests that stay together by a name that does not depend on the order of files, long ones first.

    A file has several stretches where pytest-django put its tests that commit behind those of all other files.
    """
    found: dict[str, list[pytest.Item]] = {}
    for path, together in groupby(items, key=lambda item: item.nodeid.partition("::")[0]):
        before = sum(name.endswith(f" {path}") for name in found)
        found[f"{before} {path}"] = list(together)
    return dict(sorted(found.items(), key=lambda entry: not _is_long(entry[1])))


def _is_long(items: list[pytest.Item]) -> bool:
    return any(item.get_closest_marker(name) for item in items for name in LONG)


def take(folder: Path, name: str) -> bool:
    """Take a stretch; tell whether nobody else had."""
    try:
        (folder / f"{quote(name, safe='')}.taken").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def untaken(folder: Path) -> int:
    """Return how many stretches nobody has taken; 0 while nobody has collected any."""
    number = folder / NUMBER
    if not number.exists():
        return 0
    return int(number.read_text()) - sum(1 for _ in folder.glob("*.taken"))


def shared(folder: Path, items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Give the tests of one stretch after the other, each taken when it is asked for."""
    found = stretches(items)
    later = any(folder.glob("*.taken"))
    (folder / NUMBER).write_text(str(len(found)))
    for name, together in reversed(found.items()) if later else found.items():
        if take(folder, name):
            yield from together


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run what this process takes; pytest's own loop runs where nothing is shared or collected."""
    folder, option = session.config.getoption("shared_in"), session.config.option
    failed = session.testsfailed and not option.continue_on_collection_errors
    if folder is None or option.collectonly or failed:
        return None
    items = shared(folder, session.items)
    try:
        # A test's fixtures end with it where the next test does not use them, so the next has to be known.
        for item, following in pairwise(chain(items, [None])):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    finally:
        # Where -x ends one process, the others find nothing more to do.
        deque(items, maxlen=0)
    return True
