"""What a trial keeps never holds the value of a secret."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from evalhub.teams.models import Project
from runs.models import Artifact, Target, Trial
from runs.results.files.workspace_archive import archive_workspace
from tests.kept_files import path_of
from tests.runs.carried import one, shell_project

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project() -> Project:
    return shell_project()


def everything_stored(trial: Trial) -> bytes:
    """Return all that is kept of a trial, files included and archives opened."""
    rows = [
        Trial.objects.filter(pk=trial.pk).values().get(),
        *trial.commands.values(),
        *trial.judgings.values(),
    ]
    text = "".join(str(row) for row in rows).encode() + str(trial.transcript.unpack()).encode()
    for artifact in Artifact.objects.filter(trial=trial):
        content = path_of(artifact.sha256).read_bytes()
        text += gzip.decompress(content) if artifact.media_type == "application/gzip" else content
    return text


def test_a_secret_is_masked_wherever_it_is_stored(project, monkeypatch):
    secret = "hunter2-and-more"
    monkeypatch.setenv("TOOL_KEY", secret)
    script = (
        'echo "key $TOOL_KEY"; echo "$TOOL_KEY" > left.txt; '
        'printf \'{"type":"tool_call","id":"1","name":"bash","command":"git push %s"}\\n\' "$TOOL_KEY" > "$EVENTS"'
    )
    criteria = {
        "tool": {"binary": "git", "env": {"TOOL_KEY": "${TOOL_KEY}"}},
        "gates": [
            {
                "type": "command_output_contains",
                "command": "cat left.txt; echo $TOOL_KEY >&2",
                "substring": "no",
            }
        ],
        "scripts": [{"name": "look", "command": "cat left.txt"}],
    }
    trial = one(project, prompt=script, criteria=criteria, post=[{"command": "echo $TOOL_KEY; exit 1"}])
    stored = everything_stored(trial)
    assert b"[REDACTED]" in stored
    assert secret.encode() not in stored
    assert {"events", "transcript", "workspace"} <= set(trial.artifacts.values_list("name", flat=True))


def test_a_secret_in_a_files_name_is_masked(project, monkeypatch):
    secret = "hunter2-and-more"
    monkeypatch.setenv("TOOL_KEY", secret)
    script = (
        'mkdir "in-$TOOL_KEY"; echo 1 > "in-$TOOL_KEY/file"; echo 2 > "$TOOL_KEY"; '
        'head -c 6000000 /dev/zero > "large-$TOOL_KEY"'
    )
    criteria = {"tool": {"binary": "git", "env": {"TOOL_KEY": "${TOOL_KEY}"}}}
    trial = one(project, prompt=script, criteria=criteria)
    stored = everything_stored(trial)
    assert secret.encode() not in stored
    archive = trial.artifacts.get(name="workspace")
    with tarfile.open(path_of(archive.sha256), "r:gz") as packed:
        assert packed.getnames() == ["[REDACTED]", "in-[REDACTED]/file"]
    assert trial.detail["workspace"]["left_out"] == ["large-[REDACTED]"]


def test_files_that_differ_in_their_secrets_only_are_all_kept(tmp_path):
    for name in ("key-hunter2", "key-hunter3", "key"):
        (tmp_path / name).write_text(name)
    packed = archive_workspace(tmp_path, secrets=("hunter2", "hunter3"))
    with tarfile.open(fileobj=io.BytesIO(packed.content)) as opened:
        assert opened.getnames() == ["key", "key-[REDACTED]", "key-[REDACTED].2"]


def test_a_secret_in_an_error_is_masked(project, monkeypatch):
    monkeypatch.setenv("TOOL_KEY", "hunter2-and-more")
    trial = one(
        project,
        setup=["echo $TOOL_KEY >&2; exit 1"],
        prompt="true",
        criteria={"tool": {"env": {"TOOL_KEY": "${TOOL_KEY}"}}},
    )
    assert "[REDACTED]" in trial.error
    assert "hunter2" not in trial.error


def test_a_secret_of_the_judge_is_masked(project, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "judge-key-123456")
    definition = {
        "name": "leaky",
        "provider": "cli",
        "command_template": "echo the key is $JUDGE_KEY",
        "env": {"JUDGE_KEY": "${{ JUDGE_KEY }}"},
    }
    Target.objects.create(project=project, name="leaky", provider="cli", definition=definition)
    rubric = {"criteria": [{"id": "quality", "weight": 1.0}]}
    trial = one(
        project,
        prompt="echo hi",
        criteria={"judge": {"rubric": rubric, "pass_threshold": 0.5, "model": "leaky"}},
    )
    stored = everything_stored(trial)
    assert b"the key is" in stored
    assert b"judge-key-123456" not in stored
