"""Every component once, in every state, drawn by the fragments of the product."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalhub.web.states import STATES
from evalhub.web.template_filters import ICONS

OUTCOMES = ("pass", "pass", "fail", "pass", "error", "none", "gap", "fail", "pass", "running")
HOSTILE = "rm -rf /\u202etxt.exe \x1b[31mred\x07 zero\u200bwidth <script>alert(1)</script>"
LONG = "recover-after-interrupted-bulk-import-with-partial-duplicates-" * 4


@require_safe
def patterns(request: HttpRequest) -> HttpResponse:
    """Show the patterns; the page holds nothing of any project."""
    shares = [0.8, 0.83, 0.78, 0.85, 0.62, 0.6, 0.63]
    band = [(each - 0.1, each + 0.08) for each in shares]
    context = {
        "icons": sorted(path.stem for path in ICONS.glob("*.svg")),
        "states": STATES,
        "outcomes": OUTCOMES,
        "hostile": HOSTILE,
        "long": LONG,
        "shares": shares,
        "band": band,
    }
    return render(request, "patterns/patterns.html", context)
