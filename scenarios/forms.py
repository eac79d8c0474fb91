"""The form to upload suites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from scenarios.archives import check_total
from scenarios.bundles import Bundle, read_folder
from scenarios.reading import read_upload


class SeveralFiles(forms.ClearableFileInput):
    """A file input for several files."""

    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or more files, as a list."""

    widget = SeveralFiles

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:
        return [super(FilesField, self).clean(file, initial) for file in data or [None]]


class UploadForm(forms.Form):
    """Scenario files, or one archive with their fixtures."""

    file = FilesField(
        error_messages={
            "required": "Choose a file.",
            "empty": "The file is empty. Choose another file.",
        }
    )
    paths = forms.JSONField(required=False)
    """The files' paths in the folder that they come from, in order; empty for files without one."""
    check = forms.BooleanField(required=False)
    keep = forms.CharField(required=False, max_length=64)
    """The seal of a preview to store; it has priority over `check`."""

    @property
    def title(self) -> str:
        """What was uploaded: the folder's name, else those of the files."""
        paths = self._paths()
        if paths:
            return paths[0].split("/")[0]
        return ", ".join(str(each.name) for each in self.cleaned_data["file"])

    def _paths(self) -> list[str]:
        """Return the path of each file in its folder; empty for files without one."""
        paths = self.cleaned_data["paths"]
        is_whole = isinstance(paths, list) and len(paths) == len(self.cleaned_data["file"])
        return [str(path) for path in paths] if is_whole else []

    def bundle(self) -> Bundle:
        """Return the files as one bundle. Raises `ScenarioFileError` for forbidden files, and for too many."""
        files: Sequence[UploadedFile] = self.cleaned_data["file"]
        if paths := self._paths():
            return read_folder([(path, upload.read()) for path, upload in zip(paths, files, strict=True)])
        if len(files) == 1:
            return read_upload(str(files[0].name), files[0].read())
        together: dict[str, bytes] = {}
        size = 0
        for upload in files:
            name = str(upload.name)
            bundle = read_upload(name, upload.read())
            together.update(bundle.files)
            size += sum(map(len, bundle.files.values()))
            check_total(name, size=size, count=len(together))
        return Bundle(PurePosixPath(str(files[0].name)).stem, together)
