"""Define the form of a new run."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from pydantic import ValidationError

from evalhub.teams import audit
from evalhub.teams.access import Access
from evalhub.teams.models import RAISED_BY_OTHERS, Priority
from runs.compare.baselines import LAST_PASS, check_choice
from runs.errors import RequestError
from runs.launch.inputs import GivenDocument, keep_document, place_document, registry_from
from runs.launch.lift import NO_PREVIOUS, NO_SKILL
from runs.launch.new_run_page.run_choices import (
    DescriptionsField,
    JsonField,
    NamedChoice,
    NamesField,
    RunChoices,
    form_field,
)
from runs.launch.request import Request
from runs.launch.run_request import LimitedRequest, RunRequest, asked_fields
from scenarios.archives import MAX_FILE_BYTES, MAX_PATH
from scenarios.guidance import Unplaced
from scenarios.models import Guidance, SuiteVersion
from scenarios.naming import LONGEST_NAME
from scenarios.storing import plan_guidance


def edited_guidance(offer: RunChoices, suite: int, edit: str) -> Guidance | None:
    """Return the version of the suite whose text is edited, with its documents. One query, none without one."""
    chosen = next((each for each in offer.guidance if str(each.pk) == edit and each.suite_id == suite), None)
    return Guidance.objects.select_related("suite").get(pk=chosen.pk) if chosen else None


ASKED = {each.name: each for each in asked_fields() if each.asked.in_form}
STEPS = ("only", "tags", "tier", "models", "trials", "max_trials", "max_usd")
"""Fields that the page shows in its steps; all others are under *More*."""
SOURCES = ("seed", "snapshot", "registry", "descriptions")
MORE = (
    "baseline_run",
    *(name for name, each in ASKED.items() if name not in STEPS and each.kind not in (bool, list)),
    *("priority", *SOURCES),
)


def previous_choices(offer: RunChoices, slug: str) -> list[tuple[str, str]]:
    """Return the choices of a lift's third arm for a suite: the last other skill, no third arm, or a stored version."""
    version = offer.versions.get(slug)
    stored = offer.guidance_of(version.suite) if version else []
    return [
        ("", "Last other skill"),
        (NO_PREVIOUS, "None"),
        *((str(each.number), str(each)) for each in stored if each.name != NO_SKILL),
    ]


class RunForm(forms.Form):
    """What to run, on what, how often."""

    suite = forms.ChoiceField()
    guidance = forms.MultipleChoiceField(
        required=False, help_text="Choose several to run each, trials in turn, and compare them."
    )
    edit = forms.CharField(required=False, max_length=20, widget=forms.HiddenInput)
    document_text = forms.CharField(
        label="Text of the document",
        required=False,
        strip=False,
        max_length=MAX_FILE_BYTES,
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false"}),
        help_text="A changed text is a new version, and one more run.",
    )
    document = forms.FileField(
        label="Guidance document",
        required=False,
        allow_empty_file=True,
        max_length=LONGEST_NAME,
        help_text="A file that replaces the suite's document.",
    )
    document_path = forms.CharField(
        label="Path of the document",
        required=False,
        max_length=MAX_PATH,
        help_text="In the workspace, such as AGENTS.md. Needed if the suite has several documents.",
    )
    targets = forms.MultipleChoiceField(
        required=False,
        error_messages={"invalid_choice": "There is no target “%(value)s” that can run this suite."},
    )
    baseline_run = forms.ChoiceField(
        label="Baseline",
        required=False,
        error_messages={"invalid_choice": "This run can't be the baseline. Choose one of the list."},
        help_text="A finished run of this suite.",
    )
    previous = forms.ChoiceField(
        label="Previous version",
        required=False,
        error_messages={
            "invalid_choice": "This isn't a version of the suite's guidance. Choose one of the list."
        },
        help_text="Of the skill: the third arm of a lift, tested once at the end.",
    )
    priority = forms.ChoiceField(
        required=False,
        error_messages={"invalid_choice": RAISED_BY_OTHERS},
        help_text="Within this project. Only admins can choose high.",
    )
    seed = JsonField(label="Seed values", help_text="JSON for {{seed:…}}. Default: the suite's.")
    snapshot = JsonField(help_text="JSON for {{snapshot:…}}.")
    registry = JsonField(
        label="Tool registry", help_text="JSON: a list of tools, or an MCP server's answer to tools/list."
    )
    descriptions = DescriptionsField(
        label="Tool descriptions",
        help_text="YAML: instructions and tools, in place of the MCP server's own. Default: the server's.",
    )

    def __init__(
        self,
        offer: RunChoices,
        data: QueryDict,
        files: MultiValueDict[str, Any] | None = None,
        *,
        access: Access | None = None,
        baselines: Sequence[tuple[str, str]] = (),
        offered: Mapping[str, list[NamedChoice]] | None = None,
    ) -> None:
        super().__init__(data, files)
        self.fields.update({name: form_field(each) for name, each in ASKED.items()})
        for name, known in (offered or {}).items():
            self.names_field(name).known = known
        self.fields["judge_model"].widget.attrs["list"] = "judges"
        self.given_document: GivenDocument | None = None
        self.laid: Guidance | None = None
        most = Priority.HIGH if access and access.may("prioritize") else Priority.NORMAL
        names = [each.label for each in Priority if each <= most]
        self._choose_from("priority", [(name, name) for name in names])
        self._offer = offer
        if not (access and access.may("upload")):
            for name in ("document", "document_path", "document_text", "edit"):
                del self.fields[name]
        self._choose_from("suite", [(suite.slug, suite.name) for suite in offer.suites])
        self._choose_from(
            "guidance", [("", "Latest upload"), *((str(each.pk), str(each)) for each in offer.guidance)]
        )
        self._choose_from(
            "baseline_run", [("", "Pinned, else the newest"), (LAST_PASS, "Last that passed"), *baselines]
        )
        self._choose_from("previous", previous_choices(offer, data.get("suite", "")))
        self._choose_from("targets", [(each.target.name, each.target.name) for each in offer.targets])
        for name, field in self.fields.items():
            if name != "edit" and not isinstance(field, forms.BooleanField):
                field.widget.attrs["aria-describedby"] = f"{name}-note"

    def names_field(self, name: str) -> NamesField:
        """Return a field of names."""
        return cast(NamesField, self.fields[name])

    def offered_names(self, name: str) -> list[NamedChoice]:
        """Return the choices of a field of names."""
        return self.names_field(name).offered(self[name].value())

    def chosen_names(self, name: str) -> list[str]:
        """Return the chosen names of a field, before the form is valid, too."""
        return self.names_field(name).names(self[name].value())

    @property
    def more(self) -> list[forms.BoundField]:
        return [self[name] for name in MORE]

    @property
    def opens_more(self) -> bool:
        """Return whether something under *More* differs from its default or is wrong."""
        usual = ("", None, False, Priority.NORMAL.label)
        names = (*MORE, "experiment")
        if self["run_tags"].errors or self.chosen_names("run_tags"):
            return True
        return any(self[name].errors or self[name].value() not in usual for name in names)

    @property
    def opens_document(self) -> bool:
        """Return whether a document is added to the guidance."""
        names = [name for name in ("document", "document_path") if name in self.fields]
        return any(self[name].errors or self[name].value() for name in names)

    @property
    def is_narrowed(self) -> bool:
        """Return whether only some scenarios are chosen, or a choice of them is wrong."""
        names = ("only", "tags", "tier")
        chosen = self.chosen_names("only") or self.chosen_names("tags") or self["tier"].value()
        return bool(chosen) or any(self[name].errors for name in names)

    def _choose_from(self, name: str, choices: list[Any]) -> None:
        field = self.fields[name]
        if isinstance(field, forms.ChoiceField):
            field.choices = choices

    def clean_guidance(self) -> list[Guidance]:
        """Return the chosen guidance, empty for the last upload's alone."""
        chosen = self.cleaned_data["guidance"]
        guidance = [each for each in self._offer.guidance if str(each.pk) in chosen]
        version = self._offer.versions.get(self.data.get("suite", ""))
        default = self._offer.defaults.get(version.suite_id) if version else None
        if guidance and "" in chosen and default is not None and default not in guidance:
            guidance.append(default)
        return guidance[::-1]

    def _read_edited(self, suite: int, values: dict[str, Any]) -> GivenDocument | None:
        """Return the document whose text was changed in place; None for an unchanged one."""
        base = edited_guidance(self._offer, suite, values.get("edit", ""))
        path, text = values.get("document_path", ""), values.get("document_text", "").replace("\r\n", "\n")
        if base is None or not text:
            return None
        # Browsers leave out the line break at the end of a text area's own text or not.
        before = {each["path"]: each["content"].strip() for each in base.files}
        if before.get(path) == text.strip():
            return None
        return GivenDocument(posixpath.basename(path) or "AGENTS.md", text.encode(), path, base)

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        version = self._offer.versions.get(values.get("suite", ""))
        foreign = [
            guidance
            for guidance in values.get("guidance", ())
            if version and guidance.suite_id != version.suite_id
        ]
        if version and foreign:
            owner = next(suite for suite in self._offer.suites if suite.pk == foreign[0].suite_id)
            self.add_error(
                "guidance", f"This guidance belongs to {owner.name}. Choose guidance of {version.suite.name}."
            )
        edited = self._read_edited(version.suite_id, values) if version else None
        if edited and values.get("document"):
            self.add_error("document", "Upload a file or change the text, not both.")
        elif version and edited:
            self._lay(version, edited)
        elif version and values.get("document"):
            self._read(version, values["document"], values.get("document_path", ""))
        if values.get("registry") is not None:
            try:
                values["registry"] = registry_from(values["registry"], "The registry")
            except RequestError as error:
                self.add_error("registry", str(error))
        if version and values.get("baseline"):
            try:
                check_choice(version.suite.project_id, values["baseline"])
            except RequestError as error:
                self.add_error("baseline", str(error))
        self._read_asked(values)
        return values

    def _read_asked(self, cleaned: dict[str, Any]) -> None:
        """Set `asked`, or say at each field what is wrong with it."""
        values = {name: cleaned[name] for name in ASKED if name in cleaned}
        # One entry, of whose tags any may match.
        values["tags"] = [",".join(cleaned["tags"])] if cleaned.get("tags") else []
        values["targets"] = list(dict.fromkeys(cleaned.get("targets", ())))
        values["baseline"] = cleaned.get("baseline") or cleaned.get("baseline_run", "")
        # The lift was unticked after a previous version was chosen.
        values["previous"] = cleaned.get("previous", "") if cleaned.get("lift") else ""
        values["priority"] = cleaned.get("priority") or Priority.NORMAL.label
        try:
            self.asked: RunRequest = LimitedRequest(**values)
        except ValidationError as error:
            for problem in error.errors():
                name = str(problem["loc"][0])
                if name not in self.errors:
                    self.add_error(name, f"{problem['msg']}.")

    def _read(self, version: SuiteVersion, file: UploadedFile, path: str) -> None:
        if (file.size or 0) > MAX_FILE_BYTES:
            self.add_error(
                "document", f"The file is larger than {MAX_FILE_BYTES:,} bytes. Choose another one."
            )
            return
        self._lay(version, GivenDocument(str(file.name), file.read(), path))

    def _lay(self, version: SuiteVersion, document: GivenDocument) -> None:
        self.given_document = document
        try:
            laid = place_document(version, document)
        except Unplaced as error:
            field = "document_path" if document.path else "document"
            self.add_error(field, f"{error} Enter its path in the workspace under “Path of the document”.")
            return
        self.laid = plan_guidance(version.suite, laid.files, name=laid.name)
        field = "document_text" if document.base else "document"
        self[field].help_text = f"Its path in the workspace: {laid.path}."

    @property
    def document_argument(self) -> str:
        """Return the document as `--guidance` takes it; empty without one."""
        if self.given_document is None:
            return ""
        return "=".join(filter(None, (self.given_document.path, self.given_document.file)))

    def store_document(self, by: User) -> None:
        """Store the suite's guidance with the document, if there is one, for `request`. Requires a valid form."""
        if self.given_document is None:
            return
        self.laid, new = keep_document(self.version, self.given_document, by=by)
        if new:
            suite = self.version.suite
            audit.append_event(suite.project, by, "guidance.create", self.laid, suite=suite.slug)

    @property
    def version(self) -> SuiteVersion:
        """Return the suite version uploaded last. Requires a valid form."""
        return self._offer.versions[self.cleaned_data["suite"]]

    def request(self) -> Request:
        """Return the request. Requires a valid form."""
        values = self.cleaned_data
        guidance = [*values["guidance"], *([self.laid] if self.laid else [])]
        return self.asked.resolve([self.version], guidance, **{name: values[name] for name in SOURCES})
