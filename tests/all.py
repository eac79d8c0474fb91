"""Run every test that this machine can run: `python -m tests.all [pytest's arguments]`, which is `make test`.

First the table tests of the pure parts, in seconds; then everything else on SQLite; then the tests that use the
database again on a private PostgreSQL with a private Redis, except those marked `one_database`. In the last two
passes pytest-xdist distributes the tests to processes with their own database and broker: two more than there are
processors on SQLite, because tests wait half of the time; one more on PostgreSQL, whose server needs a processor, too.
If you name a file or folder, the first pass is skipped; a folder of the source, such as `runs/compare`, stands for its
tests. `python -m tests.slow` runs the tests that take long, start
whole installations or draw many random numbers, `make test-faults` those that kill servers, and `make test-agents`
those that run installed agents.
EVALHUB_TEST_REQUIRE=browser,postgres,redis,sandbox makes a missing program a failure instead of a skip.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.requirements import required
from tests.services.servers import NotHere, postgres, redis

ROOT = Path(__file__).resolve().parent.parent
SLOWEST = ["--durations=25", "--durations-min=5"]
"""pytest's arguments for a list of the slowest tests, which are the first to make cheaper."""
SOURCE = ("runs", "evaluators", "scenarios")
PURE = ["-c", "tests/evaluators/tables.ini", "--rootdir", ".", "tests/evaluators", "-m", "table"]
SLOW = "slow or fault or simulation"
"""Left to `python -m tests.slow` and `make test-faults`."""
ELSEWHERE = f"{SLOW} or agents"
"""Left to them and to `make test-agents`."""
ON_EVERY_DATABASE = (
    "(database or worker) and not browser and not own_servers and not agents and not one_database"
)
PROCESSORS = os.cpu_count() or 1
NOTHING_COLLECTED = 5
Environment = dict[str, str]


def names_files(arguments: list[str]) -> bool:
    """Return whether pytest's arguments name a file or folder."""
    return any((ROOT / word.partition("::")[0]).exists() for word in arguments if not word.startswith("-"))


def find_tests(word: str) -> list[str]:
    """Return the folders of tests for a folder or file of the source; any other word as it is."""
    path = word.strip("/")
    if path.partition("/")[0] not in SOURCE or not (ROOT / path).exists():
        return [word]
    package, *parts = path.removesuffix(".py").split("/")
    while parts and not (ROOT / "tests" / package / "/".join(parts)).is_dir():
        parts.pop()
    folders = [f"tests/{package}/{'/'.join(parts)}".rstrip("/")]
    if package == "runs" and parts:
        folders += [f"tests/web/{parts[0]}", f"tests/api/{parts[0]}"]
    return [folder for folder in folders if (ROOT / folder).is_dir()]


def repeated(ids: Iterable[str]) -> list[str]:
    """Return the ids that several tests share, each once: pytest-xdist would run one of them and count no other."""
    return [each for each, number in Counter(ids).items() if number > 1]


def run(name: str, arguments: list[str], servers: Environment) -> int:
    """Run pytest and return its exit code; without servers on SQLite and the embedded broker."""
    print(f"\n*** {name}\n", flush=True)
    kept = {
        key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "EVALHUB_BROKER_URL")
    }
    code = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=ROOT, env={**kept, **servers}, check=False
    ).returncode
    # A signal's number is negative, but not a success.
    return code if code >= 0 else 128 - code


def on_servers(arguments: list[str]) -> int:
    """Run the tests that use the database on PostgreSQL and Redis."""
    name = "PostgreSQL and Redis"
    try:
        with postgres() as database, redis() as broker:
            return run(name, arguments, {"DATABASE_URL": database, "EVALHUB_BROKER_URL": broker})
    except NotHere as error:
        print(f"\n*** {name}\n\nSKIPPED the whole pass: {error}", flush=True)
        return 1 if {"postgres", "redis"} & required() else 0


def spread(processes: int) -> list[str]:
    """Return pytest's arguments for so many processes: each takes tests from others when it has none left.

    Most files stay in one process, whose tests share expensive fixtures, but any two tests may run at the same time.
    """
    return ["-n", str(processes), "--dist", "worksteal"]


def passes(arguments: list[str]) -> Iterator[int]:
    """Run one pass after the other; yield their exit codes."""
    named = names_files(arguments)
    if not named:
        yield run("Pure parts by table", [*PURE, *arguments], {})
    rest = [] if named else ["-m", f"not table and not ({ELSEWHERE})"]
    yield run("SQLite and the embedded broker", [*spread(PROCESSORS + 2), *SLOWEST, *rest, *arguments], {})
    chosen = ["-m", f"{ON_EVERY_DATABASE} and not ({SLOW})"]
    yield on_servers([*spread(PROCESSORS + 1), *chosen, *arguments])


def worst(codes: Iterable[int]) -> int:
    """Return the worst exit code; a pass without matching tests is fine if another pass has some."""
    return max({*codes} - {NOTHING_COLLECTED}, default=NOTHING_COLLECTED)


if __name__ == "__main__":
    sys.exit(worst(passes([each for word in sys.argv[1:] for each in find_tests(word)])))
