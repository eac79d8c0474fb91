"""Check the parts of a YAML document before building it: tags, depth, and what aliases make of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml

from scenarios.formats.text_decoding import MAX_BYTES, MAX_DEPTH, bad_character, decoding_error, too_deep

_ALLOWED_TAGS = {None, "!", "tag:yaml.org,2002:str"}


@dataclass
class Scan:
    """Checks the parts of a document before it is composed."""

    file: str
    open: list[str | None] = field(default_factory=list)
    """The anchor of each open collection."""
    documents: int = 0
    read: int = 0
    """Characters and values so far, those that aliases repeat with them."""
    repeated: int = 0
    """Those that aliases repeat."""
    starts: list[int] = field(default_factory=list)
    """What was read when each open collection began."""
    sizes: dict[str | None, int] = field(default_factory=dict)
    """How much each anchor names."""

    def check(self, text: str) -> None:
        """Raise `ScenarioFileError` at the first part that isn't allowed, `yaml.YAMLError` for invalid YAML."""
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            line = event.start_mark.line + 1 if event.start_mark else 1
            if isinstance(event, yaml.DocumentStartEvent):
                self._document(line)
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event.anchor, line)
            elif isinstance(event, yaml.ScalarEvent):
                self._scalar(event, line)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._enter(event, line)
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor = self.open.pop()
                self.sizes[anchor] = self.read - self.starts.pop()

    def _document(self, line: int) -> None:
        self.documents += 1
        if self.documents > 1:
            raise decoding_error(
                self.file,
                line,
                "The file contains more than one YAML document.",
                fix="Put each scenario into its own file.",
                id="format/several-documents",
            )

    def _alias(self, anchor: str | None, line: int) -> None:
        if anchor in self.open:
            raise decoding_error(
                self.file,
                line,
                f"The alias '{anchor}' contains itself.",
                fix="Replace it by its value.",
                id="format/alias-of-itself",
            )
        size = self.sizes.get(anchor, 0)
        self.read += size
        self.repeated += size
        if self.repeated > MAX_BYTES:
            raise decoding_error(
                self.file,
                line,
                f"The file's aliases repeat more than {MAX_BYTES:,} characters.",
                fix="Write the values plainly, or repeat less.",
                id="format/aliases-too-large",
            )

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        self._check_tag(event.tag, line)
        self.sizes[event.anchor] = len(event.value) + 1
        self.read += len(event.value) + 1
        if "\0" in event.value:
            raise bad_character(self.file, line)

    def _enter(self, event: yaml.CollectionStartEvent, line: int) -> None:
        self._check_tag(event.tag, line)
        self.open.append(event.anchor)
        self.starts.append(self.read)
        self.read += 1
        if len(self.open) > MAX_DEPTH:
            raise too_deep(self.file, line)

    def _check_tag(self, tag: str | None, line: int) -> None:
        if tag not in _ALLOWED_TAGS:
            raise decoding_error(
                self.file,
                line,
                f"The YAML tag '{tag}' is not allowed.",
                fix="Remove the tag and write the value plainly.",
                id="format/yaml-tag",
            )
