"""Columns drawn by the server."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree

from evalhub.web.charts import Column, draw_columns

AT = datetime(2026, 11, 9, 12, tzinfo=UTC)


def drawn(*given, end=1.0, baseline=None):
    text = draw_columns(
        [Column(n, AT, *each) for n, each in enumerate(given, 1)], end=end, baseline=baseline, show=str
    )
    return text, ElementTree.fromstring(text)


def test_a_column_names_its_run_day_value_and_interval():
    _, root = drawn((0.5, 0.25, 0.75), (0.25, None, None))
    assert [each.text for each in root.iter("title")] == [
        "Run 1, 9 Nov, 0.5, 95 % interval 0.25 to 0.75",
        "Run 2, 9 Nov, 0.25",
    ]
    assert [each.get("href") for each in root.iter("a")] == ["1/", "2/"]


def test_heights_and_intervals_lie_on_the_scale():
    _, root = drawn((0.5, 0.0, 1.0))
    (rect,) = root.iter("rect")
    (whisker,) = (each for each in root.iter("line") if each.get("class") == "whisker")
    assert (rect.get("y"), rect.get("height")) == ("55", "47.0")
    assert (whisker.get("y1"), whisker.get("y2")) == ("8", "102")


def test_values_beyond_the_scale_stop_at_its_edge():
    _, root = drawn((3.0, 2.0, 9.0))
    (rect,) = root.iter("rect")
    assert (rect.get("y"), rect.get("height")) == ("8", "94.0")


def test_a_regressed_column_has_a_mark_and_takes_focus():
    text, root = drawn((0.5, 0.4, 0.6, False), (0.2, 0.1, 0.3, True))
    assert text.count('class="change-text"') == 1
    assert [each.get("tabindex") for each in root.iter("a")] == ["-1", None]
    assert "regressed" in [*root.iter("title")][1].text


def test_a_run_without_a_value_keeps_its_place():
    _, gap = drawn((0.5,), (None,), (0.5,))
    _, full = drawn((0.5,), (0.5,), (0.5,))
    assert [each.get("x") for each in gap.iter("rect")] == [each.get("x") for each in full.iter("rect")][::2]


def test_the_baseline_is_drawn_and_labelled():
    text, root = drawn((0.5,), (0.5,), baseline=0.75)
    assert 'class="baseline"' in text
    assert root.get("aria-label") == "Columns, 2 runs, the newest 0.5, baseline 0.75"
