"""Addresses and texts of the pages of trials, and what is hostile in them."""

from __future__ import annotations

from tests.web.screen import main_of

HOSTILE = "</pre><script>alert(1)</script>\u202eexe\x1b[31m"

SHOWN = "</pre><script>alert(1)</script>⟨U+202E⟩exe␛[31m"


def address(trial, part=""):
    return f"/p/tools/trials/{trial.pk}/{part}"


def page(client, trial, query=""):
    """Return the main part of a trial's page."""
    return main_of(client.get(address(trial) + query))
