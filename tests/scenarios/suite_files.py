"""A small suite of llm-tool-test files, as somebody uploads it."""

from __future__ import annotations

from typing import Any

from scenarios.bundles import Bundle
from scenarios.imports import Imported, import_files


def scenario(name: str, prompt: str = "Do it.", folder: str = "", more: str = "") -> bytes:
    """Return a scenario file."""
    template = f"template_folder: {folder}\n" if folder else ""
    text = f"name: {name}\ndescription: One task.\n{template}task:\n  prompt: {prompt}\n"
    gates = "evaluation:\n  gates:\n    - type: file_exists\n      path: out.txt\n"
    return (text + more + gates).encode()


def suite(**changes: bytes | None) -> dict[str, bytes]:
    """Return the files of a suite: two scenarios over one fixture with a guidance file. None leaves a file out."""
    files: dict[str, bytes | None] = {
        "one.yaml": scenario("one", folder="box"),
        "two.yaml": scenario("two", folder="box"),
        "templates/box/README.md": b"A box.\n",
        "templates/box/AGENTS.md": b"Be careful.\n",
    }
    files.update(
        {
            name.replace("__", "/").replace("_md", ".md").replace("_yaml", ".yaml"): content
            for name, content in changes.items()
        }
    )
    return {name: content for name, content in files.items() if content is not None}


def imported(project: Any, **changes: bytes | None) -> Imported:
    """Import the suite with these changes and return what came of it."""
    (result,) = import_files(Bundle("box suite", suite(**changes)), project=project, by=None)
    return result
