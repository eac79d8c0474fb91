"""Everything that is checked without running: `python -m tests.checks`, which is `make check`."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.sizes import find_base, find_growth

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("evaluators", "scenarios", "runs", "evalhub")
LOCKS = {
    "requirements.lock": ("pyproject.toml",),
    "requirements-dev.lock": ("pyproject.toml", "requirements-dev.in"),
}
SERVER = {
    "EVALHUB_HOSTS": "evalhub.example",
    "EVALHUB_SECRET_KEY": "x" * 30 + "0123456789abcdefghijklmnopqrstuvwxyz",
    "DATABASE_URL": "postgresql://evalhub@localhost/evalhub",
    "EVALHUB_BROKER_URL": "redis://localhost:6379/0",
}
# Addresses of registries: who installs evalhub has their own.
NOT_FOR_OTHERS = re.compile(
    rb"\b(?:files\.pythonhosted\.org|registry\.npmjs\.org|proxy\.golang\.org)\b|--(?:extra-)?index-url"
)
# A database and a secret of somebody's own evalhub.
DATA = re.compile(r"(?:^|/)(?:[^/]+\.sqlite3|secret_key)$")


def run(*argv: str, **env: str) -> list[str]:
    """Run a program of the environment; return what it printed where it failed."""
    with tempfile.TemporaryDirectory(prefix="evalhub-check-") as data:
        done = subprocess.run(
            [sys.executable, *argv],
            cwd=ROOT,
            env={**os.environ, "EVALHUB_DATA": data, **env},
            capture_output=True,
            text=True,
        )
    return (
        []
        if done.returncode == 0
        else [(done.stdout + done.stderr).strip() or f"exit code {done.returncode}"]
    )


def pinned(lock: Path) -> dict[str, Version]:
    """Return the versions that a lock file names."""
    found = re.finditer(
        r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {canonicalize_name(match[1]): Version(match[2]) for match in found}


def wanted(requirements: Path) -> Iterator[Requirement]:
    """Yield what a project or requirements file asks for by itself."""
    content = requirements.read_text(encoding="utf-8")
    if requirements.suffix == ".toml":
        yield from map(Requirement, tomllib.loads(content)["project"]["dependencies"])
        return
    for line in content.splitlines():
        text = line.split(" #")[0].strip()
        if text and not text.startswith(("#", "-")):
            yield Requirement(text)


def locks() -> list[str]:
    """Return where a lock file does not have what the requirements ask for. Asks no registry."""
    problems = []
    for lock, sources in LOCKS.items():
        versions = pinned(ROOT / lock)
        for requirement in (each for source in sources for each in wanted(ROOT / source)):
            version = versions.get(canonicalize_name(requirement.name))
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                problems.append(
                    f"{lock} has {requirement.name} {version}, and {requirement} is asked for. Run make lock."
                )
    return problems


def tracked() -> list[str]:
    """Return tracked files that are data of an evalhub, and lines that name a registry."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    problems = []
    for name in filter(None, listing.stdout.decode().split("\0")):
        path = ROOT / name
        if DATA.search(name):
            problems.append(f"{name}: data of an evalhub. Remove it.")
        content = path.read_bytes() if path.is_file() else b""
        for match in NOT_FOR_OTHERS.finditer(content):
            line = content.count(b"\n", 0, match.start()) + 1
            problems.append(f"{name}:{line}: {match[0].decode(errors='replace')} works on no other machine.")
    return problems


LONGEST_LINE = 120
"""Characters of a line of a template."""


def long_lines() -> list[str]:
    """Return the lines of templates that are too long to read."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} characters; break it at {LONGEST_LINE}."
        for path in sorted((ROOT / "templates").rglob("*.html"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]


# "It is no X" and "there is no X" are told apart by the word before.
NO_X = re.compile(r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b)", re.IGNORECASE)
WRITTEN = ("*.py", "*.html", "*.js", "*.css", "*.md")
DOCS_WIDTH = 120
NOT_OURS = re.compile(r"/migrations/|^static/vendor/|^tests/|^CHANGELOG\.md$")


def wording() -> list[str]:
    """Return lines of code, templates and docs that say *is no X* where people say *isn't an X*."""
    listing = subprocess.run(
        ["git", "ls-files", *WRITTEN], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [
        f'{name}:{number}: {line.strip()[:80]}: write "isn\'t a …".'
        for name in listing.stdout.splitlines()
        if not NOT_OURS.search(name) and (ROOT / name).is_file()
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        if NO_X.search(line)
    ]


def docs_width() -> list[str]:
    """Return lines of prose in the docs that are wider than `DOCS_WIDTH`; tables, code, headings and lines that begin with code may be."""
    found = []
    for path in sorted((ROOT / "docs").rglob("*.md")):
        is_code = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            is_code ^= line.lstrip().startswith("```")
            wide = (
                len(line) > DOCS_WIDTH
                and not is_code
                and not line.lstrip().startswith(("|", "#", "![", "<", "`"))
            )
            if wide and " " in line[:DOCS_WIDTH].strip().removeprefix("- "):
                found.append(
                    f"{path.relative_to(ROOT)}:{number}: {len(line)} characters; wrap at {DOCS_WIDTH}."
                )
    return found


VENDOR = ROOT / "static/vendor"
CHECKSUM = re.compile(r"^- `([^`]+)` sha256 ([0-9a-f]{64})$", re.MULTILINE)


def vendored(folder: Path = VENDOR) -> list[str]:
    """Return the third-party scripts whose content, licence or version isn't what their README says."""
    problems = []
    for readme in sorted(folder.glob("*/README.md")):
        known = dict(CHECKSUM.findall(readme.read_text(encoding="utf-8")))
        files = {path.name: path.read_bytes() for path in readme.parent.iterdir() if path != readme}
        problems += [f"{readme.parent.name}: no LICENSE."] * ("LICENSE" not in files)
        problems += [
            f"{readme.parent.name}/{name}: not the file whose checksum README.md has."
            for name in sorted(known.keys() | files.keys())
            if name not in files or hashlib.sha256(files[name]).hexdigest() != known.get(name)
        ]
    return problems + other_plotly()


def other_plotly() -> list[str]:
    """Return where the committed bundle is of another version than the script of the pinned package."""
    package = find_spec("plotly")
    if package is None or package.origin is None:
        return ["The package plotly is not installed. Run make dev."]
    bundled = Path(package.origin).parent / "package_data/plotly.min.js"
    ours, theirs = (
        re.search(r"plotly\.js .*v([0-9.]+)", path.read_text(encoding="utf-8")[:200])
        for path in (VENDOR / "plotly/plotly-basic.min.js", bundled)
    )
    if ours and theirs and ours[1] == theirs[1]:
        return []
    return [f"static/vendor/plotly has {ours and ours[1]}, the package plotly {theirs and theirs[1]}."]


CHECKS: dict[str, Callable[[], list[str]]] = {
    "ruff check": lambda: run("-m", "ruff", "check", "--quiet", "."),
    "ruff format": lambda: run("-m", "ruff", "format", "--check", "--quiet", "."),
    "mypy --strict": lambda: run("-m", "mypy", "--no-error-summary"),
    "template lines": long_lines,
    "djlint": lambda: run("-m", "djlint", "--lint", "--quiet", "templates"),
    "migrations": lambda: run("manage.py", "makemigrations", "--check", "--dry-run"),
    "settings, embedded": lambda: run("manage.py", "check", "--fail-level", "WARNING"),
    "settings, server": lambda: run(
        "manage.py", "check", "--tag", "evalhub", "--fail-level", "WARNING", **SERVER
    ),
    "lock files": locks,
    "wording": wording,
    "width of docs": docs_width,
    "tracked files": tracked,
    "third-party scripts": vendored,
    "rooms don't grow": lambda: find_growth(find_base()),
    "tests can be collected": lambda: run("-m", "pytest", "--collect-only", "-qq"),
}


def timed(check: Callable[[], list[str]]) -> tuple[list[str], float]:
    """Return a check's problems, and the seconds it took."""
    began = time.monotonic()
    return check(), time.monotonic() - began


def main() -> int:
    """Run every check, also after one has failed; return 0 when all are green."""
    failed = []
    # mypy takes most of the time on one processor, so the others run beside it.
    with ThreadPoolExecutor() as threads:
        for name, (problems, seconds) in zip(CHECKS, threads.map(timed, CHECKS.values()), strict=True):
            print(f"{'FAILED' if problems else 'ok':>6}  {name}  {seconds:.1f} s", flush=True)
            if problems:
                failed.append(name)
                print("\n".join(problems), flush=True)
    print(f"Failed: {', '.join(failed)}." if failed else "Everything is in order.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
