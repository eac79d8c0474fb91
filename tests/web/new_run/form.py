"""What is asked with the form for new runs, and what it answers."""

from __future__ import annotations

import re

ADDRESS = "/p/tools/runs/new/"
FETCHED = {"HX-Request": "true"}


def given(**changes):
    return {"suite": "basics", "targets": ["local"], "trials": "3", "judge": "on", **changes}


def plain(text):
    """Return what a page says, its elements taken off."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text.replace("&#39;", "'").replace("&#x27;", "'")))


def plan_of(client, **changes):
    text = client.post(ADDRESS, given(**changes), headers=FETCHED).content.decode()
    return plain(text.partition("</aside>")[0])
