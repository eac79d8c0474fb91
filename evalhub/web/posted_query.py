"""Read the query of the page that a form was on."""

from __future__ import annotations

from django.http import HttpRequest, QueryDict

from evalhub.lib.limits import LONGEST_ADDRESS


def posted_query(request: HttpRequest) -> QueryDict:
    """Return the field `query` decoded, which takes up to 80 times its memory; nothing if no address is as long."""
    text = request.POST.get("query", "")
    return QueryDict(text if len(text) <= LONGEST_ADDRESS else "")
