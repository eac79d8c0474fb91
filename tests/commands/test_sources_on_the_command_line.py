"""Seed manifests, snapshots, registries, configuration files and results on the command line."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from runs.models import Run
from tests.runs.servers import Reply, serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

CASE = {
    "id": "case-1",
    "description": "says the number",
    "input": {"message": "Which number?"},
    "expect": {"responseContains": ["{{snapshot:a.number}}", "{{seed:word}}"]},
}
METADATA = {"toolName": "count", "descriptionHash": "000000000000", "registrySize": 1, "toolVersion": "1.0.0"}
TOOLS = {
    "tools": [
        {"name": name, "description": f"Does {name}.", "version": "2.0.0"} for name in ("count", "add", "sub")
    ]
}
TARGETS = "targets:\n  - {name: agent, provider: mock, response: 'seven 7'}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "count.golden.json").write_text(json.dumps({"metadata": METADATA, "cases": [CASE]}))
    (tmp_path / "targets.yaml").write_text(TARGETS)
    (tmp_path / "seed.json").write_text('{"word": "seven"}')
    (tmp_path / "snapshot.json").write_text('{"a": {"number": 7}}')
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    return tmp_path


def run(folder: Path, *options: str) -> tuple[int, str]:
    """Return exit code and output of a run in this process."""
    out = StringIO()
    code = 0
    try:
        call_command(
            "run_scenarios", str(folder / "count.golden.json"), "--targets", str(folder / "targets.yaml"), "--now",
            "--seed-manifest", str(folder / "seed.json"), *options, stdout=out, stderr=out,
        )  # fmt: skip
    except SystemExit as ended:
        code = int(str(ended.code))
    return code, out.getvalue()


@pytest.mark.parametrize(
    "source", ["{folder}/snapshot.json", 'echo \'{{"a": {{"number": 7}}}}\''], ids=["a file", "a command"]
)
@pytest.mark.spec("tool-forge", "Snapshot captured before the run")
def test_a_snapshot_comes_from_a_file_or_a_command(folder: Path, source: str) -> None:
    code, text = run(folder, "--snapshot", source.format(folder=folder))
    assert code == 0, text
    assert Run.objects.get().options["snapshot"] == {"a": {"number": 7}}


@pytest.mark.spec("tool-forge", "Snapshot captured before the run")
def test_a_snapshot_comes_from_an_address(folder: Path) -> None:
    with serving(Reply({"a": {"number": 7}})) as server:
        code, text = run(folder, "--snapshot", server.url)
    assert code == 0, text


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("echo nothing", "printed no JSON"),
        ("exit 3", "ended with exit code 3"),
        ("http://169.254.169.254/latest", "is never called"),
        ("http://127.0.0.1:1/", "could not be fetched"),
    ],
)
def test_a_snapshot_that_cannot_be_had_spends_no_trial(folder: Path, source: str, sentence: str) -> None:
    code, text = run(folder, "--snapshot", source)
    stored = Run.objects.get()
    assert (code, stored.outcome, stored.cancelled) == (1, "error", 1)
    assert sentence in stored.error
    assert sentence in " ".join(text.split())


@pytest.mark.spec("tool-forge", "Another description warns and marks as stale")
def test_stale_evals_are_marked(folder: Path) -> None:
    code, text = run(
        folder, "--snapshot", str(folder / "snapshot.json"), "--tool-registry", str(folder / "tools.json")
    )
    stored = Run.objects.get()
    assert code == 0
    assert stored.fingerprint["staleness"]["stale"] is True
    assert len(stored.warnings) == 3
    assert "Registry has grown from 1 to 3 tools." in " ".join(text.split())


@pytest.mark.spec("tool-forge", "Endpoint, manifest, snapshot, folder, registry, concurrency")
def test_a_configuration_fills_in_missing_options(folder: Path) -> None:
    with serving(Reply({"response": "seven 7", "toolCalls": []})) as server:
        config = {
            "agentEndpoint": server.url, "snapshotEnabled": True, "snapshot": "echo '{\"a\": {\"number\": 7}}'",
            "outputDir": "results", "toolRegistryPath": "tools.json", "concurrency": 2, "timeoutMs": 5000,
        }  # fmt: skip
        (folder / "runner.json").write_text(json.dumps(config))
        code, text = run(folder, "--config", str(folder / "runner.json"))
    stored = Run.objects.get()
    assert code == 0, text
    assert (stored.target.name, stored.target.provider, stored.concurrency) == ("agent-endpoint", "http", 2)
    (result,) = (folder / "results").iterdir()
    written = json.loads(result.read_text())
    assert (written["runId"], written["agentEndpoint"], written["summary"]["passed"]) == (
        str(stored.uuid),
        server.url,
        1,
    )
    assert written["metadata"]["registrySize"] == 3


@pytest.mark.spec("tool-forge", "Defaults of the configuration")
def test_a_configuration_has_the_defaults_of_the_contract(folder: Path) -> None:
    snapshot = str(folder / "snapshot.json")
    (folder / "runner.json").write_text("{}")
    assert run(folder, "--snapshot", snapshot, "--config", str(folder / "runner.json"))[0] == 0
    assert Run.objects.get().options["timeout_seconds"] == 60.0
    assert list((folder / "evals/results").iterdir())


@pytest.mark.spec("tool-forge", "The baseline from disk")
def test_a_baseline_is_a_file_or_a_uuid(folder: Path) -> None:
    (folder / "snapshot.json").write_text('{"a": {"number": 8}}')
    baseline = {"runId": "7d9c", "cases": [{"id": "case-1", "passed": True}, {"id": "gone", "passed": True}]}
    (folder / "before.json").write_text(json.dumps(baseline))
    where = ["--snapshot", str(folder / "snapshot.json"), "--output-dir", str(folder / "out")]
    assert run(folder, *where, "--baseline", str(folder / "before.json"), "--fail-on-regression")[0] == 3
    first, imported = Run.objects.all()
    (written,) = (json.loads(path.read_text()) for path in (folder / "out").iterdir())
    assert (written["runId"], written["runNumber"], written["baselineRunId"]) == (
        str(first.uuid),
        first.pk,
        "7d9c",
    )
    assert (written["regressions"], written["removed"], first.baseline) == (["case-1"], ["gone"], imported)
    assert "compared by their ids" in " ".join(first.warnings)
    (folder / "out/before.json").write_text(json.dumps(baseline))
    for choice, stored in (
        ("7d9c", imported),
        (str(first.uuid), first),
        (str(next((folder / "out").glob("*.run-*"))), first),
    ):
        assert run(folder, *where, "--baseline", choice)[0] == 1
        assert Run.objects.first().baseline == stored


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "There is no run '6ba7"), ("snapshot.json", "evalhub imports")],
)
def test_a_baseline_that_is_none_is_refused(folder: Path, choice: str, sentence: str) -> None:
    path = folder / choice
    code, text = run(folder, "--baseline", str(path) if path.exists() else choice)
    assert (code, sentence in text) == (2, True)


@pytest.mark.spec("tool-forge", "Written to disk after each run")
def test_every_closed_run_is_written_to_a_configured_folder(folder: Path, settings) -> None:
    settings.OUTPUT_DIR = str(folder / "all")
    run(folder, "--snapshot", str(folder / "snapshot.json"))
    (path,) = (folder / "all").iterdir()
    assert json.loads(path.read_text())["runId"] == str(Run.objects.get().uuid)
    (folder / "file").write_text("")
    settings.OUTPUT_DIR = str(folder / "file")
    assert run(folder, "--snapshot", str(folder / "snapshot.json"))[0] == 0
    assert "EVALHUB_OUTPUT_DIR:" in " ".join(Run.objects.first().warnings)


def test_a_missing_configuration_is_wrong_use(folder: Path) -> None:
    code, text = run(folder, "--config", str(folder / "nowhere.json"))
    assert code == 2
    assert "cannot be read" in text
