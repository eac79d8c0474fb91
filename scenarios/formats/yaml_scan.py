"""Count the contents of a YAML document before building it.

Every alias can repeat everything before it, so a short text can expand without limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice

import yaml

from scenarios.formats.problems import ScenarioFileError
from scenarios.formats.text_decoding import MAX_DEPTH, bad_character, decoding_error, too_deep

MAX_EVENTS = 200_000
MAX_ALIASES = 200
MAX_DIRECTIVES = 20
"""libyaml compares each %TAG directive with all before it."""
MAX_EXPANDED = 500_000
"""The limit of values with all aliases expanded."""

_DIRECTIVE = re.compile("(?:^|[\n\r\x85\u2028\u2029])%TAG[ \t]")
_ALLOWED_TAGS = {None, "!", "tag:yaml.org,2002:str"}


@dataclass
class Scan:
    """Counts the parts of a document before it is composed."""

    file: str
    open: list[tuple[str | None, int]] = field(default_factory=list)
    """Anchor and line of each open collection."""
    counts: list[int] = field(default_factory=lambda: [0])
    """The number of values in each open collection; the document is first."""
    sizes: dict[str, int] = field(default_factory=dict)
    aliases: int = 0
    documents: int = 0

    def check(self, text: str) -> None:
        """Raise `ScenarioFileError` at the first event over a limit, `yaml.YAMLError` for invalid YAML."""
        if sum(1 for _ in islice(_DIRECTIVE.finditer(text), MAX_DIRECTIVES + 1)) > MAX_DIRECTIVES:
            raise decoding_error(
                self.file,
                1,
                f"The file has more than {MAX_DIRECTIVES} %TAG directives.",
                fix="Remove them.",
                id="format/yaml-tag",
            )
        for number, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
            line = event.start_mark.line + 1 if event.start_mark else 1
            if number > MAX_EVENTS:
                raise self._too_big(line, f"The document has more than {MAX_EVENTS:,} parts.")
            self._take(event, line)
            if self.counts[-1] > MAX_EXPANDED:
                raise self._too_big(
                    line,
                    f"With all aliases expanded, the document has more than {MAX_EXPANDED:,} values.",
                    id="format/expands-too-far",
                )

    def _take(self, event: yaml.Event, line: int) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._document(line)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event.anchor, line)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._enter(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._leave()

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
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            raise self._too_big(
                line, f"The document uses more than {MAX_ALIASES} aliases.", id="format/too-many-aliases"
            )
        if any(anchor == name for name, _ in self.open):
            raise self._too_big(line, f"The alias '{anchor}' contains itself.", id="format/expands-too-far")
        self.counts[-1] += self.sizes.get(anchor or "", 1)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        self._check_tag(event.tag, line)
        if "\0" in event.value:
            raise bad_character(self.file, line)
        if event.anchor:
            self.sizes[event.anchor] = 1
        self.counts[-1] += 1

    def _enter(self, event: yaml.CollectionStartEvent, line: int) -> None:
        self._check_tag(event.tag, line)
        self.open.append((event.anchor, line))
        if len(self.open) > MAX_DEPTH:
            raise too_deep(self.file, line)
        self.counts.append(1)

    def _leave(self) -> None:
        anchor, _ = self.open.pop()
        size = self.counts.pop()
        if anchor:
            self.sizes[anchor] = size
        self.counts[-1] += size

    def _check_tag(self, tag: str | None, line: int) -> None:
        if tag not in _ALLOWED_TAGS:
            raise decoding_error(
                self.file,
                line,
                f"The YAML tag '{tag}' is not allowed.",
                fix="Remove the tag and write the value plainly.",
                id="format/yaml-tag",
            )

    def _too_big(self, line: int, what: str, *, id: str = "format/too-many-nodes") -> ScenarioFileError:
        return decoding_error(
            self.file, line, what, fix="Replace aliases by their values, or split the file.", id=id
        )
