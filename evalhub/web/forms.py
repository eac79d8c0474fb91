"""Forms that several pages use."""

from __future__ import annotations

from django import forms


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
