"""A page as people and screen readers meet it: found by role, label and text, never by its markup."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from bs4 import BeautifulSoup, Comment, Doctype, NavigableString, Tag

BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "button",
        "caption",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "label",
        "main",
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "select",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
UNSEEN = frozenset(("script", "style", "template"))


def _pieces(node: Tag) -> list[str]:
    found: list[str] = []
    for child in node.children:
        if isinstance(child, Tag):
            if child.name not in UNSEEN:
                inner = _pieces(child)
                beside = child.name in BLOCKS or "of" in child.get("class", ())
                found += [" ", *inner, " "] if beside else inner
        elif isinstance(child, NavigableString) and not isinstance(child, Comment | Doctype):
            found.append(str(child))
    return found


def text_of(node: Tag) -> str:
    """Return what is read in an element: white space once, elements of their own line or cell apart."""
    return re.sub(r"\s+", " ", "".join(_pieces(node))).strip()


class Part:
    """An element of a page."""

    def __init__(self, node: Tag) -> None:
        self.node = node

    def __contains__(self, text: str) -> bool:
        return text in self.text

    def __len__(self) -> int:
        """Return the characters of its HTML."""
        return len(str(self.node))

    def count(self, text: str) -> int:
        return self.text.count(text)

    def __repr__(self) -> str:
        return f"<{self.node.name}: {self.text[:2000]}>"

    def __getitem__(self, attribute: str) -> str:
        value = self.node[attribute]
        return value if isinstance(value, str) else " ".join(value)

    def get(self, attribute: str) -> str | None:
        """Return an attribute; None where there is none."""
        return self[attribute] if self.node.has_attr(attribute) else None

    @property
    def text(self) -> str:
        return text_of(self.node)

    @property
    def is_folded(self) -> bool:
        """Whether a closed fold hides it."""
        return any(not each.has_attr("open") for each in self.node.find_parents("details"))

    @property
    def name(self) -> str:
        """What a screen reader calls it: its label, else its text."""
        label = self.get("aria-label")
        if label is not None:
            return label
        by = self.get("aria-labelledby")
        labels = [found for each in (by or "").split() if (found := self._top.find(id=each))]
        return " ".join(map(text_of, labels)) if labels else self.text

    @property
    def classes(self) -> set[str]:
        return set((self.get("class") or "").split())

    @property
    def address(self) -> str:
        """Where a link leads."""
        return self["href"]

    @property
    def _top(self) -> Tag:
        return [self.node, *self.node.parents][-1]

    def all(self, selector: str) -> list[Part]:
        """Return the elements of a CSS selector; for roles and states that have no method here."""
        return [Part(each) for each in self.node.select(selector)]

    def _named(self, selector: str, name: str) -> Part:
        found = self.all(selector)
        exact = [each for each in found if each.name == name]
        if not exact:
            raise AssertionError(
                f"no {selector} is called “{name}”; there are {[each.name for each in found]}"
            )
        return exact[0]

    @property
    def headings(self) -> list[str]:
        return [each.text for each in self.all("h1, h2, h3, h4")]

    def heading(self, text: str) -> Part:
        return self._named("h1, h2, h3, h4", text)

    @property
    def links(self) -> dict[str, str]:
        """The addresses of links by their names; the last of a name."""
        return {each.name: each.address for each in self.all("a[href]")}

    @property
    def addresses(self) -> list[str]:
        return [each.address for each in self.all("a[href]")]

    def link(self, name: str) -> Part:
        return self._named("a[href]", name)

    @property
    def buttons(self) -> list[str]:
        return [each.name for each in self.all("button")]

    def button(self, name: str) -> Part:
        return self._named("button", name)

    def region(self, name: str) -> Part:
        """Return a section, a form, a list or a group by its label or its heading."""
        selector = ", ".join(
            f"{each}[aria-{by}]"
            for each in ("section", "article", "aside", "nav", "form", "div", "pre", "ol", "ul")
            for by in ("label", "labelledby")
        )
        return self._named(selector, name)

    @property
    def badges(self) -> list[str]:
        return [each.text for each in self.all(".badge")]

    @property
    def facts(self) -> dict[str, str]:
        """Terms with what follows each of them."""
        terms = self.node.find_all("dt")
        values = ((each, each.find_next_sibling("dd")) for each in terms)
        return {text_of(term): text_of(value) if value else "" for term, value in values}

    def fact(self, term: str) -> Part:
        """Return what follows a term."""
        for each in self.node.find_all("dt"):
            if text_of(each) == term and (value := each.find_next_sibling("dd")):
                return Part(value)
        raise AssertionError(f"no “{term}” is here; there are {list(self.facts)}")

    def field(self, label: str) -> Field:
        """Return a form field by its label."""
        for each in self.all("input, select, textarea"):
            if Field(each.node).label == label:
                return Field(each.node)
        found = [Field(each.node).label for each in self.all("input, select, textarea")]
        raise AssertionError(f"no field is called “{label}”; there are {found}")

    @property
    def form_data(self) -> dict[str, str]:
        """What a browser sends for its fields, hidden ones too, without buttons and files."""
        fields = [Field(each.node) for each in self.all("input[name], select[name], textarea[name]")]
        return {
            each["name"]: each.value
            for each in fields
            if each.get("type") != "file"
            and (each.get("type") not in ("checkbox", "radio") or each.is_checked)
        }

    def choices(self, legend: str) -> dict[str, bool]:
        """Return the checkboxes of a fieldset by their labels, and whether each is checked."""
        for each in self.all("fieldset"):
            if (title := each.node.find("legend")) and text_of(title) == legend:
                boxes = [Field(box.node) for box in each.all("input[type=checkbox]")]
                return {box.label: box.is_checked for box in boxes}
        raise AssertionError(f"no fieldset is called “{legend}”")

    @property
    def tables(self) -> list[str]:
        return [Table(each.node).title for each in self.all("table")]

    def table(self, title: str) -> Table:
        """Return a table by the label of its region, else by the heading before it."""
        found = [Table(each.node) for each in self.all("table")]
        for each in found:
            if each.title == title:
                return each
        raise AssertionError(f"no table is called “{title}”; there are {[each.title for each in found]}")


class Field(Part):
    """A field of a form."""

    @property
    def label(self) -> str:
        if (spoken := self.get("aria-label")) is not None:
            return spoken
        own = self.get("id")
        label = self._top.find("label", attrs={"for": own}) if own else None
        label = label or self.node.find_parent("label")
        if label is None:
            return ""
        words = label.find("span") or label
        return re.sub(
            r"\s+",
            " ",
            "".join(
                each if not isinstance(each, Tag) else text_of(each)
                for each in words.children
                if not isinstance(each, Tag) or each.name not in ("input", "select", "textarea", "small")
            ),
        ).strip()

    @property
    def value(self) -> str:
        if self.node.name == "textarea":
            return self.node.get_text().removeprefix("\n")  # as browsers read it
        if self.node.name == "select":
            options = self.node.find_all("option")
            chosen = next(
                (each for each in options if each.has_attr("selected")), options[0] if options else None
            )
            return "" if chosen is None else str(chosen.get("value", text_of(chosen)))
        return self.get("value") or ""

    @property
    def choices(self) -> dict[str, str]:
        """The options of a select: their labels by their values."""
        options = self.node.find_all("option")
        return {str(each.get("value", text_of(each))): text_of(each) for each in options}

    @property
    def hint(self) -> str:
        """Its help or its errors."""
        described = self.get("aria-describedby")
        found = self._top.find(id=described) if described else None
        return text_of(found) if found else ""

    @property
    def is_checked(self) -> bool:
        return self.node.has_attr("checked")


class Table(Part):
    """A table, whose cells are found by the header of their row and of their column."""

    @property
    def title(self) -> str:
        region = self.node.find_parent(attrs={"role": "region"})
        if region is not None:
            return Part(region).name.removesuffix(", table")
        heading = self.node.find_previous(["h1", "h2", "h3"])
        return text_of(heading) if heading else ""

    @cached_property
    def columns(self) -> list[str]:
        head = self.node.find("thead")
        cells = head.find_all(["th", "td"]) if head else []
        return [text_of(each) for each in cells]

    @property
    def rows(self) -> list[Row]:
        return [Row(each, self) for each in self.node.select("tbody tr, tfoot tr")]

    @property
    def row_names(self) -> list[str]:
        return [each.header for each in self.rows]

    def row(self, header: str) -> Row:
        """Return the row whose header, else whose first cell, begins with this text."""
        rows = self.rows
        for exact in (True, False):
            for each in rows:
                if each.header == header or (not exact and each.header.startswith(header)):
                    return each
        raise AssertionError(f"no row is called “{header}”; there are {self.row_names}")


class Row(Part):
    """A row of a table."""

    def __init__(self, node: Tag, table: Table) -> None:
        super().__init__(node)
        self._table = table

    @property
    def cells(self) -> list[Part]:
        return [Part(each) for each in self.node.find_all(["th", "td"], recursive=False)]

    @property
    def header(self) -> str:
        head = self.node.find("th", recursive=False) or self.node.find("td", recursive=False)
        return text_of(head) if head else ""

    def cell(self, column: str, nth: int = 0) -> Part:
        """Return the cell below a column's header, the nth of that name."""
        at = [n for n, each in enumerate(self._table.columns) if each == column]
        if len(at) <= nth:
            raise AssertionError(f"no column is called “{column}”; there are {self._table.columns}")
        return self.cells[at[nth]]

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.cells]


def parse(source: Any) -> Part:
    """Return the page of a response, of bytes or of a text."""
    content = getattr(source, "content", source)
    text = content.decode() if isinstance(content, bytes) else content
    return Part(BeautifulSoup(text, "html.parser"))


def main_of(source: Any) -> Part:
    """Return a page without its frame."""
    page = parse(source)
    found = page.node.find("main")
    return Part(found) if found else page
