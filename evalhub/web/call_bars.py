"""Calls as a bar, of them the failed ones: drawn by the server, no colours, no script, classes only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from django.utils.safestring import SafeString, mark_safe

TALL, THIN, GAP = 12, 6, 2
"""Heights in pixels of the failed part and of the others, so that they differ without colour, and between halves."""


def draw_calls(halves: Sequence[tuple[int, int]], *, most: int, label: str) -> SafeString:
    """Return a bar for each pair of calls and failed calls, on a scale that ends at `most` calls.

    Two halves are before and after something: the first is grey, because it is the past.
    """
    height = len(halves) * (TALL + GAP) - GAP
    rects = "".join(
        _half(calls, failed, most, n * (TALL + GAP), is_past=n + 1 < len(halves))
        for n, (calls, failed) in enumerate(halves)
    )
    return mark_safe(  # noqa: S308  # only numbers and an escaped text
        f'<svg class="calls" role="img" aria-label="{escape(label)}" width="100%" height="{height}">{rects}</svg>'
    )


def _half(calls: int, failed: int, most: int, top: int, *, is_past: bool) -> str:
    return "".join(
        f'<rect class="{name}{" is-past" if is_past else ""}" x="{start / most:.2%}" y="{top + (TALL - height) / 2:g}" '
        f'width="{amount / most:.2%}" height="{height}"/>'
        for name, start, amount, height in _parts(calls, failed)
        if amount and most
    )


def _parts(calls: int, failed: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield each part's class, where it begins, its calls, and its height."""
    yield "failed", 0, failed, TALL
    yield "worked", failed, calls - failed, THIN
