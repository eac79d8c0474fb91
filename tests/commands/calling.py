"""Calls a command as `manage.py` does, without a process of its own."""

from __future__ import annotations

import io
import json
from typing import Any, NamedTuple

from django.core.management import call_command


class Called(NamedTuple):
    """Exit code and what was printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


def call(*words: str) -> Called:
    """Call a command and return how it ended."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command(*words, stdout=out, stderr=err)
    except SystemExit as ended:
        return Called(int(ended.code or 0), out.getvalue(), err.getvalue())
    return Called(0, out.getvalue(), err.getvalue())
