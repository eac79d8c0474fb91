"""An independent count of a tool's calls: the tool itself writes a log, and this module reads it.

It shares no code with `evaluators`. Run as a program, it prints the counts of a log.
"""

from __future__ import annotations

import json
import stat
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

TOOL = '''#!{python} -IS
"""mt ok WORD… | fail CODE WORD… | quiet CODE WORD… | help: a tool that writes down each of its calls."""
import json, os, sys, time

def log(fields):
    line = json.dumps({{"pid": os.getpid(), "argv": sys.argv[1:], **fields}}) + "\\n"
    fd = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(fd, line.encode())
    os.close(fd)

log({{"event": "start", "at": time.time()}})
kind = sys.argv[1] if len(sys.argv) > 1 else "help"
code = int(sys.argv[2]) if kind in ("fail", "quiet") else 0
if kind == "fail":
    print("mt: error: asked to fail", file=sys.stderr)
elif kind == "ok":
    print("stored", *sys.argv[2:])
elif kind == "sleep":
    time.sleep(float(sys.argv[2]))
log({{"event": "end", "code": code}})
sys.exit(code)
'''


@dataclass(frozen=True)
class LoggedCall:
    """One call by the tool's own log; `code` is None if it was killed."""

    pid: int
    argv: tuple[str, ...]
    code: int | None


def install(folder: Path, log: Path, name: str = "mt") -> Path:
    """Write the tool into a folder; it logs to `log`."""
    program = folder / name
    program.write_text(TOOL.format(python=sys.executable, log=str(log)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return program


def read_log(log: Path) -> list[LoggedCall]:
    """Return the calls in the order of their starts."""
    calls: list[LoggedCall] = []
    open_calls: dict[int, int] = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        entry = json.loads(line)
        if entry["event"] == "start":
            open_calls[entry["pid"]] = len(calls)
            calls.append(LoggedCall(entry["pid"], tuple(entry["argv"]), None))
        else:
            at = open_calls.pop(entry["pid"])
            calls[at] = LoggedCall(entry["pid"], calls[at].argv, entry["code"])
    return calls


def by_word(calls: list[LoggedCall]) -> dict[str, list[int | None]]:
    """Return the codes of the calls by their last word, which generated sessions make unique."""
    found: dict[str, list[int | None]] = {}
    for call in calls:
        found.setdefault(call.argv[-1] if call.argv else "", []).append(call.code)
    return found


def counts(calls: list[LoggedCall]) -> dict[str, int]:
    """Return calls, failures and help calls."""
    codes = Counter("failed" if call.code not in (None, 0) else "other" for call in calls)
    helps = sum("--help" in call.argv or call.argv[:1] == ("help",) for call in calls)
    return {"calls": len(calls), "failed": codes["failed"], "helps": helps}


if __name__ == "__main__":
    print(json.dumps(counts(read_log(Path(sys.argv[1])))))
