from __future__ import annotations
import os, json, sys
from pathlib import Path
import pytest
from runs.targets.definitions import define, resolve_definition
from runs.targets.providers.registry import make_provider
from tests.real_agents.real import *
from tests.real_agents.real import on_agents_path, turns, playing


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", [503])
@pytest.mark.parametrize("kind", ["copilot_cli"])
def test_x(kind, fault, tmp_path):
    with playing({"command": COMMANDS[3]}, {"fault": fault}) as model:
        env = LOOPBACK_ONLY | (DIRECT if kind == "qwen_code" else {})
        given = {"model": MODELS[kind], "base_url": model.url, "api_key": "${{ KEY }}", "env": env}
        entry = define(
            {
                "name": kind,
                "provider": kind,
                "executable": os.environ.get("PROG") or str(PROGRAMS / SESSION_AGENTS[kind]),
                **given,
            }
        )
        provider = make_provider(resolve_definition(entry, {"KEY": KEY}), on_agents_path())
        AGENTS[kind] = ("x", "AGENTS.md")
        r = provider.invoke(
            invocation(
                tmp_path, kind, in_workspace=True, timeout_seconds=float(os.environ.get("LIMIT", "45"))
            )
        )
        out = Path(f"/tmp/agents_out/{os.environ.get('OUT', '')}{kind}-{fault}")
        out.mkdir(parents=True, exist_ok=True)
        (out / "raw").write_bytes(r.raw)
        (out / "stderr").write_text(r.stderr)
        (out / "info").write_text(
            f"{r.exit_code} {r.timed_out} {r.seconds} seen={len(model.seen)} {r.version}"
        )
        for k, v in r.logs.items():
            (out / k).write_bytes(v)
        import shutil

        shutil.copytree(tmp_path / "scratch", out / "scratch", dirs_exist_ok=True, symlinks=True)
