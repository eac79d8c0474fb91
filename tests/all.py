"""Runs every test that this machine can run: `python -m tests.all [pytest's arguments]`, which is `make test`.

First the pure parts by table, which take no two seconds; then everything else on SQLite and, at the same time, what
touches the database again on a private PostgreSQL with a private Redis: a pass waits for processes, servers and a
browser half of its time. Where a file or folder is named, the first is left out.
EVALHUB_TEST_REQUIRE=browser,postgres,redis,sandbox makes a missing program a failure instead of a skip.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from tests.requirements import required
from tests.services.servers import NotHere, postgres, redis

ROOT = Path(__file__).resolve().parent.parent
PURE = ["-c", "tests/evaluators/pytest.ini", "--rootdir", ".", "tests/evaluators", "-m", "table"]
ON_EVERY_DATABASE = "(database or worker) and not browser and not own_servers"
EMBEDDED: dict[str, str | None] = {"DATABASE_URL": None, "EVALHUB_BROKER_URL": None}
NOTHING_COLLECTED = 5
# With -q the last line comes without its frame.
_SUMMARY = re.compile(r"(?:=+ )?((?:no tests|\d+[ /]).* in [\d.]+s(?: \([\d:]+\))?)(?: =+)?")
_SKIPPED = re.compile(r"SKIPPED \[\d+\] .*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

Tell = Callable[[str], object]
"""Takes what is to be shown, with its line ends."""


def show(text: str) -> None:
    """Print at once."""
    print(text, end="", flush=True)


@dataclass
class Pass:
    """One run of pytest: how it ended, its last line, and what it skipped."""

    name: str
    code: int = 0
    summary: str = ""
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run(name: str, arguments: list[str], env: dict[str, str | None], tell: Tell = show) -> Pass:
    """Run pytest, telling what it prints."""
    tell(f"\n*** {name}\n\n")
    began = time.monotonic()
    done = Pass(name)
    whole = {key: value for key, value in {**os.environ, **env}.items() if value is not None}
    colour = ["--color=yes"] if sys.stdout.isatty() else []
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *colour, *arguments],
        cwd=ROOT,
        env=whole,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            tell(line)
            remember(done, line)
    done.code, done.seconds = process.returncode, time.monotonic() - began
    return done


def remember(done: Pass, printed: str) -> None:
    """Keep a line that pytest printed where it is its last one, or tells what was skipped and why."""
    line = _COLOUR.sub("", printed).strip()
    if told := _SUMMARY.fullmatch(line):
        done.summary = told[1]
    elif _SKIPPED.match(line):
        done.skipped.append(line)


def names_files(arguments: list[str]) -> bool:
    """Tell whether pytest's arguments say where to look."""
    return any((ROOT / word.partition("::")[0]).exists() for word in arguments if not word.startswith("-"))


def passes(arguments: list[str]) -> list[Pass]:
    """Run the first pass by itself, for it is timed, and the two others side by side."""
    named = names_files(arguments)
    first = [] if named else [run("Pure parts by table", [*PURE, *arguments], EMBEDDED)]
    rest = arguments if named else ["-m", "not table", *arguments]
    return [
        *first,
        *side_by_side(
            lambda tell: run("SQLite and the embedded broker", rest, EMBEDDED, tell),
            lambda tell: second_pass(arguments, tell),
            processors=os.cpu_count() or 1,
        ),
    ]


def side_by_side(
    one: Callable[[Tell], Pass], other: Callable[[Tell], Pass], *, processors: int
) -> list[Pass]:
    """Run two passes at the same time, and show what the other tells when the one is over."""
    if processors == 1:
        # Tests have limits of time, and each would have half of a processor.
        return [one(show), other(show)]
    kept: SimpleQueue[str | None] = SimpleQueue()

    def beside() -> Pass:
        try:
            return other(kept.put)
        finally:
            kept.put(None)

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(beside)
        done = one(show)
        for text in iter(kept.get, None):
            show(text)
        return [done, running.result()]


def second_pass(arguments: list[str], tell: Tell = show) -> Pass:
    """Run what touches the database on PostgreSQL and Redis; where one of them is missing, say so."""
    name = "PostgreSQL and Redis"
    with ExitStack() as stack:
        try:
            env: dict[str, str | None] = {"DATABASE_URL": stack.enter_context(postgres())}
        except NotHere as error:
            return _not_run(name, "postgres", str(error))
        try:
            env["EVALHUB_BROKER_URL"] = stack.enter_context(redis())
        except NotHere as error:
            return _not_run(name, "redis", str(error))
        return run(name, ["-m", ON_EVERY_DATABASE, *arguments], env, tell)


def _not_run(name: str, program: str, sentence: str) -> Pass:
    code = 1 if program in required() else 0
    return Pass(name, code=code, summary="not run", skipped=[f"The whole pass: {sentence}"])


def main(arguments: list[str]) -> int:
    """Run every pass; return 0 when none failed."""
    done_ones = passes(arguments)
    for done in done_ones:
        print(f"\n{done.name}, {done.seconds:.0f} s, did not run:")
        print("\n".join(f"  {line}" for line in done.skipped) or "  nothing was left out.")
    for done in done_ones:
        # With -qq pytest tells no numbers.
        print(f"\n{done.name}:\n{done.summary or f'ended with exit code {done.code}'}")
    return code_of(done_ones)


def code_of(passes: list[Pass]) -> int:
    """Return the worst exit code; what was asked for need not be in every pass, but in one."""
    codes = {done.code for done in passes}
    return max(codes - {NOTHING_COLLECTED}, default=NOTHING_COLLECTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
