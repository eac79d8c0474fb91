"""`model_server`: a scripted model on loopback, to rehearse a suite with real agents without paying."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from evalhub.web.commands import port_number
from runs.targets.model_server.script import read_script
from runs.targets.model_server.server import LOOPBACK, ScriptPlayer, SeenRequest, serve_models
from scenarios.commands import EvalhubCommand, Refused, Result, read_bytes


class Command(EvalhubCommand):
    help = (
        "Serve a scripted model on 127.0.0.1 until Ctrl-C: rehearse a suite with real agents without paying."
    )
    examples = ("--script rehearsal.yaml", "--script rehearsal.yaml --port 8900 --record requests.jsonl")

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--script", required=True, metavar="FILE", help="YAML: what the model does")
        parser.add_argument(
            "--port", type=port_number, default=8900, help="port on 127.0.0.1 (default: 8900)"
        )
        parser.add_argument(
            "--record", metavar="FILE", help="append each request as a line of JSON, without keys"
        )

    def work(self, options: dict[str, Any]) -> Result:
        script = read_script(read_bytes(options["script"], "the script"), options["script"])
        player = ScriptPlayer(script)
        with ExitStack() as stack:
            if options["record"]:
                player.record = _recorder(stack.enter_context(_open_log(options["record"])))
            try:
                url = stack.enter_context(serve_models(player, options["port"]))
            except OSError as error:
                raise Refused(
                    f"Port {options['port']} on {LOOPBACK} can't be used: {error.strerror}. Choose another --port.",
                    id="model-server/port",
                ) from error
            self.stderr.write(f"Serving {url}. Write it as `base_url` in a target. Ctrl-C ends it.")
            _wait_for_signal()
        return Result(f"{len(player.seen)} requests.", {"requests": len(player.seen), "url": url})


def _open_log(path: str) -> IO[str]:
    try:
        return Path(path).open("a", encoding="utf-8")
    except OSError as error:
        raise Refused(
            f"{path}: the record can't be written: {error.strerror}. Check the path.", id="command/unwritable"
        ) from error


def _recorder(file: IO[str]) -> Any:
    def record(request: SeenRequest) -> None:
        file.write(request.as_json() + "\n")
        file.flush()

    return record


def _wait_for_signal() -> None:
    ended = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: ended.set())
    ended.wait()
