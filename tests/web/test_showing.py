"""Numbers, times, figures and hostile text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from django.template import engines

from evalhub.lib import numbers
from evalhub.template_engine import coded
from evalhub.web import charts, template_filters
from evalhub.web.sanitize import cut_text, mark_invisible

NOW = datetime(2026, 11, 9, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (numbers.format_percent(0.6207), "62\N{NO-BREAK SPACE}%"),
        (numbers.format_percent(0.6207, 1000), "62.1\N{NO-BREAK SPACE}%"),
        (numbers.format_percent(None), "–"),
        (numbers.format_points(0.2157), "± 22 pts"),
        (numbers.format_points(1.03), "none"),
        (numbers.format_points(None), "–"),
        (numbers.format_decimals(-0.15), "−0.15"),
        (numbers.format_decimals(0), "0.00"),
        (numbers.format_decimals(998.999), "999.00"),
        (numbers.format_decimals(999.996), "1,000.00"),
        (numbers.format_decimals(-1234.5, 1), "−1,234.5"),
        (numbers.format_decimals(float("nan")), "nan"),
        (numbers.format_integer(1284), "1,284"),
        (numbers.format_money(6.84), "$6.84"),
        (numbers.format_money(0.107), "$0.11"),
        (numbers.format_money(0.0001), "<$0.001"),
        (numbers.format_money(0), "$0.00"),
        (numbers.format_duration(0), "0.0 s"),
        (numbers.format_duration(0.0004), "<1 ms"),
        (numbers.format_duration(0.0064), "6 ms"),
        (numbers.format_duration(0.0994), "99 ms"),
        (numbers.format_duration(0.0995), "0.10 s"),
        (numbers.format_duration(0.42), "0.42 s"),
        (numbers.format_duration(48.2), "48 s"),
        (numbers.format_duration(492), "8 min 12 s"),
        (numbers.format_duration(852), "14 min"),
        (numbers.format_duration(7500), "2 h 5 min"),
        (numbers.format_duration(None), "–"),
        (numbers.format_file_size(999), "999 B"),
        (numbers.format_file_size(1500), "1.5 kB"),
        (numbers.format_file_size(3 * 10**9), "3.0 GB"),
        (numbers.format_measure(10.04, "commands"), "10.0"),
        (numbers.format_measure(0.5, "rate"), "50\N{NO-BREAK SPACE}%"),
    ],
)
def test_it_shows_numbers(shown, text):
    assert shown == text


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (timedelta(seconds=20), "just now"),
        (timedelta(minutes=4), "4 min ago"),
        (timedelta(hours=6), "6 h ago"),
        (timedelta(hours=30), "8 Nov 2026, 06:00"),
        (timedelta(days=400), "5 Oct 2025, 12:00"),
        (timedelta(hours=-1), "9 Nov 2026, 13:00"),
    ],
)
def test_it_shows_times(ago, text):
    assert numbers.format_moment(NOW - ago, now=NOW) == text


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (timedelta(seconds=-5), "now"),
        (timedelta(seconds=59), "now"),
        (timedelta(minutes=1), "1 min"),
        (timedelta(hours=23), "23 h"),
        (timedelta(days=2, hours=23), "2 d"),
    ],
)
def test_it_shows_ages(ago, text):
    assert numbers.format_age(NOW - ago, now=NOW) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("naïve 測試", "naïve 測試"),
        ("\x1b[31m", "␛[31m"),
        ("\x00\x7f", "␀␡"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("\u2028", "⟨U+2028⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("windows\r\nlines", "windows\nlines"),
    ],
)
def test_it_makes_hidden_characters_visible(text, shown):
    assert mark_invisible(text) == shown


@pytest.mark.parametrize(
    ("text", "length", "is_cut"),
    [("short", 5, False), ("x" * 5000, 4000, True), ("a\n" * 100, 119, True)],
    ids=["short", "one long line", "many lines"],
)
def test_it_cuts_what_is_long(text, length, is_cut):
    found = cut_text(text)
    assert (len(found.text), found.is_cut) == (length, is_cut)


@pytest.mark.parametrize("text", ["\ud800", "a\x00b", "\U000e0041"], ids=["surrogate", "zero", "tag"])
def test_no_character_is_too_odd_to_be_shown(text):
    assert "⟨" in cut_text(text).text or "␀" in cut_text(text).text


def test_a_secret_is_not_shown_by_half_at_the_cut():
    found = cut_text("x" * 3990 + " sk-ant-api03-" + "a" * 60)
    assert "sk-ant" not in found.text


def test_dots_have_a_text_alternative():
    drawn = charts.draw_dots(["pass", "fail", "error", "gap"], here=1)
    assert 'aria-label="1 passed, 1 failed, 1 error"' in drawn
    assert '<i class="fail here">' in drawn


def test_an_interval_stops_at_the_edge_of_its_scale():
    drawn = charts.draw_interval(-0.5, 0.5, 1.5, mark=0.83)
    assert 'x1="4.0" x2="106.0"' in drawn
    assert 'class="zero"' in drawn


def test_a_spark_has_a_band_where_intervals_are_given():
    drawn = charts.draw_sparkline([0.5, 1.0], label="x", band=[(0.25, 0.75), (0.5, 1.0)])
    band = re.search(r'class="band" d="M([^"]*)Z"', drawn)
    assert band
    heights = [float(each.split()[1]) for each in band[1].split(" L")]
    assert heights == sorted(heights[:2], reverse=True) + sorted(heights[2:])
    assert len(heights) == 4
    assert "band" not in charts.draw_sparkline([0.5, 1.0], label="x")


def test_labels_are_escaped():
    assert "<b>" not in charts.draw_bar([("passed", 1)], total=2, label="<b>")
    assert "<b>" not in charts.draw_sparkline([0.1, 0.2], label="<b>")


def test_a_bar_of_nothing_is_empty():
    assert 'viewBox="0 0 1 4"' in charts.draw_bar([], total=0, label="nothing")


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{{ 'regressed'|badge }}", '<span class="badge is-regressed">regressed</span>'),
        ("{{ 'pass'|badge('baseline') }}", '<span class="badge is-passed">baseline</span>'),
        ("{{ rate(3, 4) }}", '<span class="nowrap">75\N{NO-BREAK SPACE}%<span class="of">3/4</span></span>'),
        ("{{ rate(0, 0) }}", '<span class="muted">–</span>'),
        ("{{ url('run-detail', 'tools', 3) }}", "/p/tools/runs/3/"),
        ("{{ missing|decimals }}", "–"),
        ("{{ missing.part.of_it }}", ""),
        ("{{ missing.part is none }} {{ text is none }} {{ none is none }}", "True False True"),
        ("{{ missing is not none }}", "False"),
        ("{{ missing|money }}", "–"),
        ("{{ 'a/b c&d'|urlencode }} {{ 'a/b'|urlencode('') }}", "a/b%20c%26d a%2Fb"),
        ("{{ missing|urlencode }}", ""),
        ("{{ text|line }}", "&lt;b&gt;⟨U+202E⟩ two"),
    ],
)
def test_filters_work_in_templates(template, shown):
    page = engines["jinja2"].from_string(template)
    assert page.render({"text": "<b>\u202e\n  two"}) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Use `a & b`, `c`.", "Use <code>a &amp; b</code>, <code>c</code>."),
        ("`<script>alert(1)</script>`", "<code>&lt;script&gt;alert(1)&lt;/script&gt;</code>"),
        ("<b>`</b>", "&lt;b&gt;`&lt;/b&gt;"),
        ("`a\nb`", "`a\nb`"),
        ("```sh\nls\n```", "```sh\nls\n```"),
        ("``a`b``", "``a`b``"),
        ("a < b", "a &lt; b"),
        ("", ""),
    ],
)
def test_backticks_mark_code_and_nothing_else_is_markup(text, shown):
    assert coded(text) == shown


@pytest.mark.parametrize("path", sorted(template_filters.ICONS.glob("*.svg")), ids=lambda path: path.stem)
def test_an_icon_is_the_drawing_without_words(path):
    shown, drawn = ElementTree.fromstring(template_filters.icon(path.stem)), ElementTree.parse(path).getroot()
    assert shown.get("aria-hidden") == "true"
    assert [each.attrib for each in shown] == [each.attrib for each in drawn]
