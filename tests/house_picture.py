"""Draws the house: `python -m tests.house_picture` writes `docs/images/architecture.svg` from the page's table of rooms."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/architecture.svg"
WIDTH, ROW, GAP, LEFT = 860, 34, 8, 24
OUTSIDE, INSIDE, PAPER, INK = "#dbe7f5", "#f3f6fa", "#ffffff", "#1c2733"
PACKAGES = (
    ("evalhub", "settings, addresses, Celery, health; web/ for every page, teams/ for people"),
    ("scenarios", "files in, immutable versions out"),
    ("evaluators", "judging as pure Python: evidence in, scores out"),
    ("evalhub/lib", "numbers, timestamps, disk errors"),
)


def rooms() -> list[tuple[str, str]]:
    """Return the rooms of `runs` from the first to the last, each with what it is for up to the first colon or stop."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = text.split("## Inside `runs`")[1].split("\n## ")[0]
    found = re.findall(r"^\| `runs/(\w+)/` \| (.*?) \|$", section, re.MULTILINE)
    return [(name, re.split(r"[:;]", purpose)[0].replace("`", "")) for name, purpose in found]


def box(y: int, name: str, purpose: str, fill: str, *, left: int, width: int) -> str:
    """Return a box with a name in bold and what it is for beside it."""
    return (
        f'<rect x="{left}" y="{y}" width="{width}" height="{ROW}" rx="4" fill="{fill}" stroke="#9fb3c8"/>'
        f'<text x="{left + 12}" y="{y + 22}" font-weight="600">{escape(name)}</text>'
        f'<text x="{left + 130}" y="{y + 22}" font-size="13">{escape(purpose)}</text>'
    )


def picture() -> str:
    """Return the picture: what stands higher may import what stands lower, never the other way."""
    step, y, parts = ROW + GAP, 40, []
    parts.append(box(y, *PACKAGES[0], PAPER, left=LEFT, width=WIDTH - 2 * LEFT))
    y += step
    inner = list(reversed([room for room in rooms() if room[0] != "management"]))
    height = (len(inner) + 1) * step + 34
    parts.append(
        f'<rect x="{LEFT}" y="{y}" width="{WIDTH - 2 * LEFT}" height="{height}" rx="6" fill="none" stroke="#5b7083"/>'
        f'<text x="{LEFT + 12}" y="{y + 20}" font-weight="600">runs</text>'
    )
    y += 30
    outside = "pages, REST, forms and commands: they may use every room, and nobody imports them"
    parts.append(box(y, "outsides", outside, OUTSIDE, left=LEFT + 16, width=WIDTH - 2 * LEFT - 32))
    for name, purpose in inner:
        y += step
        parts.append(box(y, name, purpose, INSIDE, left=LEFT + 16, width=WIDTH - 2 * LEFT - 32))
    y += step + 8
    for name, purpose in PACKAGES[1:]:
        parts.append(box(y, name, purpose, PAPER, left=LEFT, width=WIDTH - 2 * LEFT))
        y += step
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 8}" font-family="sans-serif" font-size="15" '
        f'fill="{INK}" role="img" aria-label="The packages and rooms of evalhub">'
        f'<rect width="{WIDTH}" height="{y + 8}" fill="{PAPER}"/>'
        f'<text x="{LEFT}" y="26" font-size="13">Each imports only what stands below it.</text>'
        + "".join(parts)
        + "</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
