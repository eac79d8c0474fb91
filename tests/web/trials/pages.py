"""Addresses and texts of the pages of trials, and what is hostile in them."""

from __future__ import annotations

HOSTILE = "</pre><script>alert(1)</script>\u202eexe\x1b[31m"
SHOWN = "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩exe␛[31m"


def address(trial, part=""):
    return f"/p/tools/trials/{trial.pk}/{part}"


def page(client, trial, query=""):
    return client.get(address(trial) + query).content.decode()
