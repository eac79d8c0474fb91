"""What can be downloaded of a trial, by whom, and what is redacted."""

from __future__ import annotations

import pytest

from evaluators.model import Event
from runs.models import Artifact
from runs.results.files.artifacts import keep_content
from tests.builders import make_project, make_trial
from tests.shell_events import shell
from tests.trial_parts import make_transcript
from tests.web.results.trials.pages import address, page

pytestmark = pytest.mark.one_database


def test_a_line_of_a_megabyte_is_cut_and_can_be_downloaded(signed_in, run):
    trial = make_trial(run)
    make_transcript(trial, shell("cat big", "x" * 1_000_000), text="y" * 1_000_000)
    client = signed_in()
    text = page(client, trial)
    assert len(text) < 60_000
    assert "Download all 1,000,000 characters" in text
    assert len(client.get(address(trial, "transcript/")).content) == 1_000_000


def test_an_artifact_is_a_download_whatever_is_in_it(signed_in, run, settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path
    trial = make_trial(run)
    kept = keep_content("page.html", b"<script>alert(1)</script>", "text/html")
    Artifact.objects.create(
        trial=trial, name=kept.name, sha256=kept.sha256, size=kept.size, media_type=kept.media_type
    )
    response = signed_in().get(address(trial, "artifacts/page.html/"))
    assert b"".join(response.streaming_content) == b"<script>alert(1)</script>"
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize("part", ["transcript/", "artifacts/transcript/"])
def test_files_of_another_project_are_not_found(signed_in, run, part):
    trial = make_trial(run)
    other = signed_in(of=make_project("other"))
    assert other.get(f"/p/other/trials/{trial.pk}/{part}").status_code == 404
    assert other.get(address(trial, part)).status_code == 404


@pytest.mark.parametrize("part", ["commands", "messages", "raw"])
def test_what_looks_like_a_key_is_redacted(signed_in, run, part):
    key = "sk-ant-api03-" + "a" * 40
    trial = make_trial(run, answer=key)
    make_transcript(trial, [Event("message", role="user", text=key), *shell(f"use {key}", key)], text=key)
    assert key not in page(signed_in(), trial, f"?part={part}")


@pytest.mark.parametrize(("role", "is_whole"), [("viewer", False), ("runner", False), ("author", True)])
def test_only_authors_download_what_is_not_redacted(signed_in, run, role, is_whole):
    key = "sk-ant-api03-" + "a" * 40
    trial = make_trial(run)
    make_transcript(trial, [], text=key)
    client = signed_in(role)
    assert (key in client.get(address(trial, "transcript/")).content.decode()) is is_whole
    assert client.get(address(trial, "artifacts/any/")).status_code == (404 if is_whole else 403)


def test_a_missing_artifact_is_reported(signed_in, run):
    assert signed_in().get(address(make_trial(run), "artifacts/gone/")).status_code == 404
