"""The form to upload suites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from scenarios.bundles import Bundle, read_upload


class SeveralFiles(forms.ClearableFileInput):
    """A file input for several files."""

    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or more files, as a list."""

    widget = SeveralFiles

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:
        given = data or [None]
        return [super(FilesField, self).clean(each, initial) for each in given]


class UploadForm(forms.Form):
    """Scenario files, or one archive with their fixtures."""

    file = FilesField(
        error_messages={
            "required": "Choose a file.",
            "empty": "The file is empty. Choose another file.",
        }
    )
    check = forms.BooleanField(required=False)
    keep = forms.CharField(required=False, max_length=64)
    """The seal of a preview to store; it has priority over `check`."""

    def bundle(self) -> Bundle:
        """Return the files as one bundle. Raises `ScenarioFileError` for forbidden files."""
        files: Sequence[UploadedFile] = self.cleaned_data["file"]
        bundles = [read_upload(str(each.name), each.read()) for each in files]
        if len(bundles) == 1:
            return bundles[0]
        together: dict[str, bytes] = {}
        for bundle in bundles:
            together.update(bundle.files)
        return Bundle(PurePosixPath(str(files[0].name)).stem, together)
