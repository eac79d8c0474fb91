"""What the pages take over from the installed Plotly."""

from __future__ import annotations

import re

from django.conf import settings

from evalhub.web.plotly_finder import SCRIPT, package_folder

QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[A-Za-z]+)"""


def rules_of_the_script() -> list[str]:
    """Return the rules that the script would write into the page if it were allowed to."""
    script = (package_folder() / SCRIPT).read_text(encoding="utf-8")
    start = script.index('"X,X div":')
    rules = re.findall(rf"({QUOTED}):({QUOTED})", script[start : script.index("};", start)])
    return [f"{selector_of(selector)} {{ {declarations[1:-1]} }}" for selector, declarations in rules]


def selector_of(name: str) -> str:
    plain = re.sub(r"^,", " ,", name.strip("\"'"))
    return plain.replace("X", ".js-plotly-plot .plotly").replace("Y", ".plotly-notifier")


def test_our_sheet_has_the_rules_of_the_installed_script():
    sheet = (settings.BASE_DIR / "static" / "css" / "plotly.css").read_text(encoding="utf-8")
    assert sheet.splitlines()[1:] == rules_of_the_script()
