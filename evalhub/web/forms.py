"""Forms that several pages use, and the query of the page that one was on."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, QueryDict

from evalhub.lib.limits import LONGEST_ADDRESS


class SentenceForm(forms.Form):
    """A form whose first error is shown as a sentence."""

    @property
    def sentence(self) -> str:
        """Return the first error; empty for none."""
        return next((str(errors[0]) for errors in self.errors.values()), "")


class FileForm(forms.Form):
    """One uploaded file."""

    file = forms.FileField(
        error_messages={
            "required": "Choose a file.",
            "empty": "The file is empty. Choose another file.",
        }
    )


def posted_query(request: HttpRequest) -> QueryDict:
    """Return the field `query` decoded, which takes up to 80 times its memory; nothing if no address is as long."""
    text = request.POST.get("query", "")
    return QueryDict(text if len(text) <= LONGEST_ADDRESS else "")
