"""`make screenshots` leaves no page out."""

from __future__ import annotations

import pytest
from django.urls import resolve

from tests import tour
from tests.access import table

pytestmark = pytest.mark.one_database

NO_PAGE_OF_ITS_OWN = {
    "home": "leads to a project",
    "alert-details": "is a part of a page",
    "alert-markdown": "is a file",
    "healthz": "is for programs",
    "metrics": "is for programs",
    "channel-detail": "needs a channel, and the examples have none",
    "run-download": "is a file",
    "trial-draft": "is for copying its text",
    "target-try": "is a part of a page",
    "trial-cast": "is a file",
    "trial-transcript": "is a file",
    "trial-artifact": "is a file",
    "trial-file": "is a file",
    "schema": "is a file",
}


def test_every_page_is_drawn() -> None:
    addresses = [*tour.PAGES.values(), *tour.MORE_PAGES.values(), *tour.BEFORE_SIGNING_IN.values()]
    nowhere = tour.MORE_PAGES[tour.NOT_FOUND]
    drawn = {resolve(each.partition("?")[0]).view_name for each in addresses if each != nowhere}
    pages = {name for name, page in table.PAGES.items() if page.method == "GET" and 200 in page.answers}
    assert pages - drawn - set(NO_PAGE_OF_ITS_OWN) == set()
