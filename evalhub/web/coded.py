"""Words that a text marks as code, by backticks as Markdown does; nothing else of Markdown is read."""

from __future__ import annotations

import re

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

# What is escaped before holds no backtick that was none. Fences of several backticks stay as they are.
_SPAN = re.compile(r"(?<!`)`(?!`)([^`\n]+)`(?!`)")


def coded(text: str) -> SafeString:
    """Return a text escaped, what stands between two backticks on one line as code; a single backtick stays.

    The text has to be made visible before, as by `line` or `cut`.
    """
    escaped = escape(text)
    return mark_safe(_SPAN.sub(r"<code>\1</code>", escaped)) if "`" in escaped else escaped  # noqa: S308
