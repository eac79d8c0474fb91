"""Seed manifests, snapshots, registries and the runner's configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs.errors import RequestError
from runs.launch.inputs import read_config, read_json_file, read_registry_file, registry_from

pytestmark = pytest.mark.one_database


def written(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


@pytest.mark.spec("tool-forge", "Endpoint, manifest, snapshot, folder, registry, concurrency")
def test_the_contracts_configuration_is_read(tmp_path: Path) -> None:
    config, target = read_config(
        written(
            tmp_path / "runner.json",
            {
                "agentEndpoint": "http://localhost:3000/chat",
                "seedManifestPath": "evals/seed-manifest.json",
                "snapshotEnabled": True,
                "snapshot": "node snapshot.js",
                "outputDir": "evals/results/",
                "baselineRunId": 7,
                "concurrency": 3,
                "timeoutMs": 60000,
                "toolRegistryPath": "tools/tools.exports.ts",
            },
        )
    )
    assert target == {"name": "agent-endpoint", "provider": "http", "url": "http://localhost:3000/chat"}
    assert config["seed_manifest"] == str(tmp_path / "evals" / "seed-manifest.json")
    assert config["tool_registry"] == str(tmp_path / "tools" / "tools.exports.ts")
    assert (config["snapshot"], config["baseline"], config["concurrency"], config["timeout_seconds"]) == (
        "node snapshot.js",
        "7",
        3,
        60,
    )


def test_the_programs_own_configuration_is_read(tmp_path: Path) -> None:
    agent = {"endpoint": "http://localhost:1/x", "method": "PUT", "inputField": "q", "outputField": "a"}
    config, target = read_config(
        written(tmp_path / "forge.config.json", {"agent": agent, "evals": {"seedManifestFile": "s.json"}})
    )
    assert target == {
        "name": "agent-endpoint", "provider": "http", "url": "http://localhost:1/x",
        "method": "PUT", "input_field": "q", "output_field": "a",
    }  # fmt: skip
    assert config["seed_manifest"] == str(tmp_path / "s.json")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("[]", "not a JSON object"),
        ('{"agent": 3}', "'agent' is not an object"),
        ('{"concurrency": -1}', "'concurrency' is -1"),
        ('{"timeoutMs": true}', "'timeoutMs' is True"),
        ('{"snapshotEnabled": true}', "without 'snapshot'"),
        ('{"outputDir": 3}', "3 is not a path"),
    ],
)
def test_a_broken_configuration_is_refused_with_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        read_config(written(tmp_path / "c.json", text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for read in (read_config, lambda path: read_json_file(path, "The seed manifest"), read_registry_file):
        with pytest.raises(RequestError, match=r"nowhere\.json"):
            read(tmp_path / "nowhere.json")


def test_a_registry_is_read_from_json_and_from_a_barrel(tmp_path: Path) -> None:
    tools = {"tools": [{"name": "a", "description": "Does a.", "version": "1.0.0"}]}
    assert read_registry_file(written(tmp_path / "tools.json", tools))["size"] == 1
    written(tmp_path / "js" / "tools.exports.ts", "export { a } from './a.tool.js';\n")
    written(
        tmp_path / "js" / "a.tool.js",
        "export const a = { name: 'a', description: 'Does a.', version: '2.0.0' };\n",
    )
    found = read_registry_file(tmp_path / "js")
    assert found["tools"]["a"]["version"] == "2.0.0"


def test_an_invalid_registry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no tool"):
        read_registry_file(tmp_path)
    with pytest.raises(RequestError, match="no list of tools"):
        registry_from({"x": 1}, "http://localhost/mcp")
