"""One run of pytest as a part of all tests: what it printed last, what it skipped, and how it ended."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTHING_COLLECTED = 5
# With -q the last line comes without its frame.
_SUMMARY = re.compile(r"(?:=+ )?((?:no tests|\d+[ /]).* in [\d.]+s(?: \([\d:]+\))?)(?: =+)?")
_COUNT = re.compile(r"(\d+) ([a-z]+)(?:,| in )")
_SKIPPED = re.compile(r"SKIPPED \[\d+\] .*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

Tell = Callable[[str], object]
"""Takes what is to be shown, with its line ends."""
Environment = dict[str, str | None]
"""Variables that a process gets besides those of this one; None takes one away."""


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


def run(name: str, arguments: list[str], env: Environment, tell: Tell = show, *, more: bool = False) -> Pass:
    """Run pytest, telling what it prints; `more` is to say that another process began this pass."""
    tell(f"\n*** {'More of ' if more else ''}{name}\n\n")
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
    # A signal's number is below zero, but no way to end well.
    done.code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    done.seconds = time.monotonic() - began
    return done


def remember(done: Pass, printed: str) -> None:
    """Keep a line that pytest printed where it is its last one, or tells what was skipped and why."""
    line = _COLOUR.sub("", printed).strip()
    if told := _SUMMARY.fullmatch(line):
        done.summary = told[1]
    elif _SKIPPED.match(line):
        done.skipped.append(line)


def together(done: list[Pass], name: str) -> Pass:
    """Return what the processes of one pass did as one."""
    parts = [each for each in done if each.name == name]
    if len(parts) == 1:
        return parts[0]
    return Pass(
        name,
        code=code_of(parts),
        summary=f"{_added(parts)} in {' + '.join(f'{each.seconds:.0f}' for each in parts)} s",
        skipped=[line for each in parts for line in each.skipped],
        seconds=sum(each.seconds for each in parts),
    )


def _added(parts: list[Pass]) -> str:
    counts: Counter[str] = Counter()
    for part in parts:
        found = {word.removesuffix("s"): int(number) for number, word in _COUNT.findall(part.summary)}
        # Every process leaves out the same.
        found["deselected"] = max(found.get("deselected", 0) - counts["deselected"], 0)
        counts.update(found)
        if not part.summary:
            counts[f"process ended with exit code {part.code}"] += 1
    return ", ".join(f"{number} {word}" for word, number in counts.items() if number)


def code_of(passes: list[Pass]) -> int:
    """Return the worst exit code; what was asked for need not be in every pass, but in one."""
    codes = {done.code for done in passes}
    return max(codes - {NOTHING_COLLECTED}, default=NOTHING_COLLECTED)
