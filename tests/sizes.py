"""Find rooms that grow: `python -m tests.sizes [COMMIT]` lists each room that is larger than at the merge base.

A room is a folder of a package, of templates, scripts or tests. Its size is in tokens of Python without docstrings and
comments, in lines of templates, scripts and styles, or in lines of tests. A room may grow to the number that
`tests/size.toml` has for it, beside a reason.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("evaluators", "scenarios", "runs", "evalhub")
SPACING = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
"""Tokens that don't count: comments and layout."""


def name_room(path: str) -> str:
    """Return the room of a file: its first folder, and the second where it has one; "" where no size is watched."""
    parts = PurePosixPath(path).parts
    is_source = parts[0] in PACKAGES and path.endswith(".py") and "migrations" not in parts
    is_page = parts[0] in ("templates", "static") and "vendor" not in parts
    if not (is_source or (is_page and path.endswith((".html", ".js", ".css"))) or parts[0] == "tests"):
        return ""
    if parts[0] == "tests" and not path.endswith(".py"):
        return ""
    return "/".join(parts[: min(2, len(parts) - 1)])


def measure(path: str, text: str) -> int:
    """Return the tokens of a module of the source, else the lines."""
    if path.startswith("tests/") or not path.endswith(".py"):
        return text.count("\n")
    docstrings = {
        (each.body[0].lineno, each.body[0].col_offset)
        for each in ast.walk(ast.parse(text))
        if isinstance(each, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(each, clean=False) is not None
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(each.type not in SPACING and each.start not in docstrings for each in tokens)


def ask_git(root: Path, *arguments: str) -> list[str]:
    """Return the lines that git prints. Raises CalledProcessError."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def find_base(root: Path = ROOT) -> str:
    """Return the commit to compare with: where this branch left main; on main itself, the commit before."""
    refs = ask_git(root, "for-each-ref", "--format=%(refname)", "refs/heads/main", "refs/remotes/origin/main")
    (head,) = ask_git(root, "rev-parse", "HEAD")
    bases = [base for ref in refs for base in ask_git(root, "merge-base", "HEAD", ref)]
    return next((base for base in bases if base != head), f"{head}^")


def measure_rooms(texts: dict[str, str]) -> Counter[str]:
    """Return the size of each room, by the texts of its files."""
    sizes: Counter[str] = Counter()
    for name, text in texts.items():
        sizes[name_room(name)] += measure(name, text)
    return sizes


def find_growth(base: str, root: Path = ROOT) -> list[str]:
    """Return a sentence for each room that is larger than at the commit and than `tests/size.toml` allows."""

    def read(names: Iterable[str]) -> dict[str, str]:
        files = {each: root / each for each in names if name_room(each)}
        return {each: path.read_text(encoding="utf-8") for each, path in files.items() if path.is_file()}

    changed = {
        *ask_git(root, "diff", "--name-only", "--no-renames", base),
        *ask_git(root, "ls-files", "--others", "--exclude-standard"),
    }
    before = [each for each in ask_git(root, "ls-tree", "-r", "--name-only", base) if name_room(each)]
    was = measure_rooms(
        {
            each: "\n".join([*ask_git(root, "show", f"{base}:{each}"), ""])
            for each in before
            if each in changed
        }
    )
    now = measure_rooms(read(changed))
    allowed = tomllib.loads((root / "tests/size.toml").read_text(encoding="utf-8"))
    problems = []
    for room in sorted(room for room in now if now[room] > was[room]):
        names = ask_git(root, "ls-files", "--cached", "--others", "--exclude-standard", room)
        size = measure_rooms(read(each for each in names if name_room(each) == room))[room]
        raised = allowed.get(room, {})
        if size > raised.get("size", 0) or not raised.get("reason"):
            problems.append(
                f"{room} grew by {now[room] - was[room]} to {size}. Remove as much, or raise its line in "
                "tests/size.toml with a reason."
            )
    return problems


if __name__ == "__main__":
    grown = find_growth(sys.argv[1] if len(sys.argv) > 1 else find_base())
    print("\n".join(grown) or "No room grew.")
    sys.exit(bool(grown))
