"""Numbers as pages show them. A dash is empty, `not measured` could have been a value, 0 is zero."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta

UNMEASURED = "–"


MANY = 1_000
"""Observations from which a decimal of a percentage means something."""


def format_percent(value: float | None, n: int = 0) -> str:
    """Return a share of 0 to 1 in percent, with one decimal if it is of at least `MANY` observations."""
    return UNMEASURED if value is None else f"{value * 100:.{1 if n >= MANY else 0}f}\N{NO-BREAK SPACE}%"


def format_points(value: float | None) -> str:
    """Return a change of a rate, 0 to 1, in percentage points either way; one that no rate can make is `none`."""
    if value is None:
        return UNMEASURED
    return f"± {value * 100:.0f} pts" if value < 1 else "none"


def in_points(change: float | None) -> str:
    """Return how far a rate, 0 to 1, changed in whole percentage points, without a sign."""
    return UNMEASURED if change is None else f"{abs(change) * 100:.0f} pts"


def format_decimals(value: float | None, places: int = 2) -> str:
    """Return a number with fixed decimals, so that columns align."""
    if value is None:
        return UNMEASURED
    # Thousands take as long to be set apart where there are none.
    text = f"{value:.{places}f}" if -999 < value < 999 else f"{value:,.{places}f}"
    return text.replace("-", "−")


def format_integer(value: float | None) -> str:
    """Return a count with thousands apart."""
    return UNMEASURED if value is None else f"{value:,.0f}".replace("-", "−")


def format_money(value: float | None) -> str:
    """Return US dollars: with cents from ten cents up, below with two significant digits."""
    if value is None:
        return UNMEASURED
    if value == 0 or value >= 0.0995:
        return f"${format_decimals(value)}"
    if value < 0.001:
        return "<$0.001"
    return f"${value:.3f}" if value >= 0.00995 else f"${value:.4f}"


def format_duration(seconds: float | None) -> str:
    """Return a duration of seconds with two significant digits, from minutes on in the two units that matter."""
    if seconds is None:
        return UNMEASURED
    if 0 < seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.001 else "<1 ms"
    if seconds < 9.95:
        return f"{seconds:.2f} s" if 0 < seconds < 0.995 else f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes < 10 and rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def format_file_size(size: int) -> str:
    """Return a number of bytes in the unit that keeps it short."""
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def format_measure(value: float | None, unit: str) -> str:
    """Return a value in the manner of its measure's unit."""
    if unit == "USD":
        return format_money(value)
    if unit == "s":
        return format_duration(value)
    if unit == "tokens":
        return format_integer(value)
    if unit in ("rate", "ratio"):
        return format_percent(value)
    return format_decimals(value, 1) if unit in ("commands", "calls") else format_decimals(value)


NOTHING, MINUTE, HOUR, HALF_A_DAY = timedelta(), timedelta(minutes=1), timedelta(hours=1), timedelta(hours=12)


def format_age(at: datetime, *, now: datetime) -> str:
    """Return how old something is, in its largest unit."""
    old = max(now - at, NOTHING)
    if old < MINUTE:
        return "now"
    if old < HOUR:
        return f"{old.seconds // 60} min"
    return f"{old.seconds // 3600} h" if not old.days else f"{old.days} d"


def format_moment(at: datetime, *, now: datetime) -> str:
    """Return how long ago something was, or from half a day on its date and time."""
    ago = now - at
    if not NOTHING <= ago < HALF_A_DAY:
        return date_and_time(at)
    if ago < MINUTE:
        return "just now"
    return f"{ago.seconds // 60} min ago" if ago < HOUR else f"{ago.seconds // 3600} h ago"


def format_day(at: datetime, *, now: datetime) -> str:
    """Return on which day something was: `today`, `yesterday`, `on Tuesday`, and from a week on `on 1 Nov 2026`."""
    days = (now.date() - at.date()).days
    if days in (0, 1):
        return "yesterday" if days else "today"
    return f"on {at:%A}" if 1 < days < 7 else f"on {format_date(at)}"


def date_and_time(at: datetime) -> str:
    """Return a moment such as `1 Nov 2026, 14:05`."""
    return f"{format_date(at)}, {at:%H:%M}"


def format_date(at: date) -> str:
    """Return a day such as `1 Nov 2026`."""
    return f"{at.day} {at:%b %Y}"


def format_count(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural but for one."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def round_end(value: float) -> float:
    """Return the next round number whose half is round too; 1 for 0."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10) if step * power >= value)
