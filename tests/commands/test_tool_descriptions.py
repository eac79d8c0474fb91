"""`run_scenarios --tool-descriptions`."""

from __future__ import annotations

import pytest

from runs.models import Run
from tests.commands.calling import call

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
SCENARIO = "name: a\ntask: Hi.\ntarget: {mcp: {name: notes, command: x}}\ngates: [{type: mcp_not_called}]\n"
TARGETS = "targets: [{name: local, provider: mock}]\n"


def run(tmp_path, texts: str | None):
    (tmp_path / "a.yaml").write_text(SCENARIO)
    (tmp_path / "targets.yml").write_text(TARGETS)
    file = tmp_path / "texts.yml"
    if texts is not None:
        file.write_text(texts)
    targets = str(tmp_path / "targets.yml")
    return call(
        "run_scenarios", str(tmp_path / "a.yaml"), "--targets", targets, "--tool-descriptions", str(file)
    )


def test_they_are_stored_with_the_run(tmp_path):
    called = run(tmp_path, "instructions: Be quick.\ntools: {search: Find.}\n")
    assert called.code == 0, called.err
    stored = Run.objects.get().options["descriptions"]
    assert (stored["instructions"], stored["tools"]["search"]["description"]) == ("Be quick.", "Find.")


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (None, "The tool descriptions cannot be read: No such file or directory. Check the path."),
        ("tools:\n  search: 7\n", "texts.yml:2: tools.search"),
        ("tool: {}\n", "texts.yml:1: tool: Unknown key 'tool'. Did you mean 'tools'?"),
    ],
)
def test_wrong_files_are_refused_with_their_line(tmp_path, texts, sentence):
    called = run(tmp_path, texts)
    assert called.code == 2
    assert sentence in called.err
