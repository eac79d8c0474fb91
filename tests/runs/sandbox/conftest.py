"""A workspace and a scratch directory, and a library that gives away who loaded it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.requirements import missing

# It leaves a mark on the host where it is loaded outside, and one in the workspace wherever it is loaded.
SOURCE = r"""
#include <stdio.h>
__attribute__((constructor)) static void mark(void) {
  const char *places[] = {OUTSIDE, "loaded", "/workspace/loaded"};
  for (int i = 0; i < 3; i++) { FILE *f = fopen(places[i], "a"); if (f) { fputs("x", f); fclose(f); } }
}
"""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
    workspace.mkdir()
    scratch.mkdir()
    return workspace, scratch


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Return the file that the library makes where it is loaded outside of every sandbox."""
    return tmp_path / "loaded-outside"


@pytest.fixture
def library(tmp_path: Path, mark: Path) -> Path:
    compiler = shutil.which("cc")
    if not compiler:
        missing("sandbox", "There is no C compiler. Install one with `make services`.")
    source, made = tmp_path / "evil.c", tmp_path / "evil.so"
    source.write_text(SOURCE)
    command = [compiler, "-shared", "-fPIC", f'-DOUTSIDE="{mark}"', "-o", str(made), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return made
