"""Edit a suite's files in the browser; saving is an upload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from evalhub.teams.access import ProjectRequest, project_page
from evalhub.web.middleware import error_page, page_or_fragment
from evalhub.web.paging import key_of
from runs.models import Trial
from runs.results.drafts import Draft, draft_scenarios, scenario_schema_address
from runs.suites.suite_page.views import find_suite_or_404
from scenarios.bundles import Bundle
from scenarios.commands import Quoted, quote_lines
from scenarios.formats.llm_tool_test.draft import name_schema
from scenarios.formats.parsed import Problem, ScenarioFileError
from scenarios.formats.text_files import MAX_BYTES
from scenarios.imports import Imported, Preview, import_files, preview, slug_of
from scenarios.models import Suite
from scenarios.sources import Source, bundle_of, find_scenario, parse_bundle, source_of
from scenarios.spec import ScenarioSpec

NEW_FILE = """\
name: my-scenario
description: What it shows.
target:
  binary: git
  command_pattern: 'git (\\S+)'
task:
  prompt: Say what the agent should do.
evaluation:
  gates:
    - type: command_succeeds
      command: test -e out.txt
"""


@dataclass
class SuiteEditor:
    """One file of a suite in the editor, and what validation says of it."""

    request: ProjectRequest
    suite: Suite | None
    """None for a new suite."""
    source: Source | None
    path: str = ""
    text: str = ""
    name: str = ""
    """The new suite's name."""
    base: str = ""
    """The hash of the files that the text was read from."""
    is_new_file: bool = False
    key: str = ""
    """The scenario that was opened."""
    line: int = 0
    is_checked: bool = False
    problems: list[Quoted] = field(default_factory=list)
    hints: list[Quoted] = field(default_factory=list)
    previews: Sequence[Preview] = ()
    crossed: str = ""
    """Who saved other files meanwhile, in a sentence."""

    @property
    def lines(self) -> range:
        return range(1, self.text.count("\n") + 2)

    @property
    def marked(self) -> set[int]:
        """Return the lines of this file with problems."""
        return {each.problem.line for each in self.problems if each.problem.file == self.path}

    @property
    def other_files(self) -> list[str]:
        return sorted(self.source.files) if self.source else []

    def read_post(self) -> None:
        """Take what was typed."""
        posted = self.request.POST
        self.path = posted.get("path", "").strip()
        self.text = posted.get("text", "").replace("\r\n", "\n")
        self.name = posted.get("name", "").strip()[:200]
        self.base = posted.get("base", "")
        self.is_new_file = self.source is None or self.path not in self.source.files

    def bundle(self, *, removing: bool = False) -> Bundle:
        """Return the suite's files with this one. Raises `ScenarioFileError`."""
        if not self.path:
            problem = Problem(
                "new file", 1, "path", "The file has no name.", "Enter one, such as list.yaml.", "editor/path"
            )
            raise ScenarioFileError([problem])
        content = None if removing else self.text.encode("utf-8", "replace")
        if self.source:
            return self.source.changed(self.path, content)
        return bundle_of(self.name or self.path.rpartition("/")[2].split(".")[0], (), self.path, content)

    def check(self, *, removing: bool = False) -> Bundle | None:
        """Validate as an upload; return the files, or None with the problems in the editor."""
        self.is_checked = True
        project = self.request.access.project
        files = {self.path: self.text.encode("utf-8", "replace")}
        try:
            bundle = self.bundle(removing=removing)
            files = dict(bundle.files)
            suites = parse_bundle(bundle, project.command_pattern)
            self.previews = [preview(suite, project) for suite in suites]
            self._refuse_foreign()
        except ScenarioFileError as error:
            self.problems = quote_lines([problem for problem in error.problems if not problem.lint], files)
            self.hints = quote_lines([problem for problem in error.problems if problem.lint], files)
            return None
        self.hints = quote_lines([lint for suite in suites for lint in suite.lints], files)
        return bundle

    def _refuse_foreign(self) -> None:
        """Raise `ScenarioFileError` if saving would change another suite, or leave this one without files."""
        slugs = {slug_of(each.parsed) for each in self.previews}
        if self.suite and self.suite.slug not in slugs:
            what = f"The files no longer describe the suite {self.suite.name}."
            raise ScenarioFileError([Problem(self.path, 1, "", what, "Keep its name.", "editor/other-suite")])
        taken = next((each.suite for each in self.previews if each.suite), None)
        if self.suite is None and taken:
            what = f"There is already a suite {taken.name}."
            fix = "Choose another name, or edit that suite."
            raise ScenarioFileError([Problem(self.path, 1, "name", what, fix, "editor/taken")])

    def is_crossed(self) -> bool:
        """Return whether somebody saved this suite since its text was read; the next save overwrites."""
        if self.source is None or self.base in ("", self.source.sha256) or self.suite is None:
            return False
        last = self.suite.uploads.select_related("created_by", "suite_version").first()
        who = last.created_by.get_username() if last and last.created_by else "Somebody"
        number = self.source.version.number
        self.crossed = (
            f"{who} saved version {number} in the meantime. Compare with it, or save again to keep its other "
            f"files and replace {self.path}."
        )
        self.base = self.source.sha256
        return True

    def save(self, bundle: Bundle) -> HttpResponse:
        """Store the files as an upload does, and open the suite."""
        imported = import_files(bundle, project=self.request.access.project, by=self.request.user)
        mine = next((each for each in imported if each.suite == self.suite), imported[0])
        messages.success(self.request, _saved_sentence(mine))
        return redirect(mine.suite.get_absolute_url())

    def render(self, status: int = 200) -> HttpResponse:
        """Return the page, or what validation says for htmx."""
        page, part = "suites/suites/editor.html", "suites/suites/_editor_problems.html"
        return page_or_fragment(self.request, page, part, {"editor": self}, status=status)


def _saved_sentence(imported: Imported) -> str:
    number = imported.version.number
    if not imported.new_version:
        return f"Saved. The scenarios of version {number} did not change."
    return f"Saved version {number} of {imported.suite.name}."


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("upload")
def suite_new(request: ProjectRequest) -> HttpResponse:
    """Write the first file of a new suite."""
    text = name_schema(scenario_schema_address()) + NEW_FILE
    editor = SuiteEditor(request, None, None, "my-scenario.yaml", text, is_new_file=True)
    if draft := _draft(request):
        editor.path, editor.text, editor.name = f"{draft.name}.yaml", draft.text, draft.name
    return _show_edited(editor)


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("upload")
def suite_edit(request: ProjectRequest, suite_slug: str) -> HttpResponse:
    """Edit a file of a suite, or add one."""
    suite = find_suite_or_404(request, suite_slug)
    source = source_of(suite)
    if source is None:
        return render(request, "suites/suites/no_source.html", {"suite": suite})
    editor = SuiteEditor(request, suite, source, base=source.sha256)
    if request.method != "POST":
        _open(editor, source)
    return _show_edited(editor)


def _open(editor: SuiteEditor, source: Source) -> None:
    """Show the file that the query names: a scenario's, a path, a draft's, or the first text."""
    query = editor.request.GET
    if draft := _draft(editor.request):
        editor.path, editor.text, editor.is_new_file = f"{draft.name}.yaml", draft.text, True
        return
    if "new" in query:
        editor.path, editor.text, editor.is_new_file = "", "", True
        return
    if spec := _scenario(editor, source):
        editor.path, editor.line, editor.key = spec.file, spec.line, spec.key
    else:
        texts = (path for path in editor.other_files if source.text(path) is not None)
        editor.path = query.get("file", "") or next(texts, "")
    text = source.text(editor.path)
    if text is None:
        raise Http404
    editor.text = text


def _scenario(editor: SuiteEditor, source: Source) -> ScenarioSpec | None:
    key = editor.request.GET.get("scenario", "")
    try:
        match = find_scenario(source, key, editor.request.access.project.command_pattern) if key else None
    except ScenarioFileError:
        # The stored files were valid once; a newer release may require more.
        return None
    return match[0] if match else None


def _draft(request: ProjectRequest) -> Draft | None:
    """Return the draft from the trial that the query names."""
    key = key_of(request.GET.get("draft", ""))
    if key is None or request.method == "POST":
        return None
    trials = Trial.objects.select_related("run__suite", "scenario_version", "transcript")
    trial = trials.filter(run__project=request.access.project, pk=key).first()
    drafts = draft_scenarios(trial) if trial else []
    if not drafts:
        raise Http404
    return drafts[min(key_of(request.GET.get("stretch", "")) or 1, len(drafts)) - 1]


def _show_edited(editor: SuiteEditor) -> HttpResponse:
    request = editor.request
    if request.method != "POST":
        return editor.render()
    if len(request.POST.get("text", "")) > MAX_BYTES:
        sentence = f"The editor takes texts of up to {MAX_BYTES >> 20} MB. Upload larger files as an archive."
        return error_page(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "This text is too large", sentence, "web/form-too-large"
        )
    editor.read_post()
    removing = "remove" in request.POST
    bundle = editor.check(removing=removing)
    if "save" not in request.POST and not removing:
        return editor.render(200 if bundle or request.htmx else 422)
    if editor.is_crossed() or bundle is None:
        return editor.render(422)
    return editor.save(bundle)


@require_POST
@project_page("upload")
def suite_retire(request: ProjectRequest, suite_slug: str) -> HttpResponse:
    """Retire a scenario: save the suite without its file, or open the file if others share it."""
    suite = find_suite_or_404(request, suite_slug)
    key, source = request.POST.get("scenario", ""), source_of(suite)
    address = reverse("suite-edit", args=[request.access.project.slug, suite.slug])
    if source is None:
        return redirect(address)
    try:
        scenario = find_scenario(source, key, request.access.project.command_pattern)
        if scenario is None:
            raise Http404
        spec, sharing = scenario
        if sharing > 1:
            others = sharing - 1
            messages.error(
                request,
                f"{key} shares its file with {others} other scenario{'s' if others > 1 else ''}. "
                "Remove its lines here, then save.",
            )
            return redirect(f"{address}?{urlencode({'scenario': key})}")
        import_files(source.changed(spec.file, None), project=request.access.project, by=request.user)
    except ScenarioFileError as error:
        messages.error(request, f"{key} was not retired: {error.problems[0].what} {error.problems[0].fix}")
        return redirect(f"{address}?{urlencode({'scenario': key})}")
    messages.success(request, f"Retired {key}. Its results stay; upload its file again to bring it back.")
    return redirect(suite.get_absolute_url())
