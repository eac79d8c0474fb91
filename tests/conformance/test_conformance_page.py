"""docs/conformance.md is up to date, and no paragraph of a specification is left out."""

from __future__ import annotations

import pytest

from tests.conformance_page import PAGE, marked_tests, page
from tests.specifications import MISSING, PARAGRAPHS

pytestmark = pytest.mark.one_database

KNOWN = {
    (spec, title) for spec, sections in PARAGRAPHS.items() for titles in sections.values() for title in titles
}


def test_the_page_is_what_the_marks_say():
    assert PAGE.read_text() == page(), "Run `python -m tests.conformance_page`."


def test_every_paragraph_has_a_test_or_a_reason():
    marked = set(marked_tests())
    assert marked | set(MISSING) == KNOWN
    assert not marked & set(MISSING)


def test_titles_are_used_once():
    assert len(KNOWN) == sum(len(titles) for sections in PARAGRAPHS.values() for titles in sections.values())
