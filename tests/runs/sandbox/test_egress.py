"""What a sandboxed command reaches over the network, by policy."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from runs.engine.workspace.workspace import LocalWorkspace
from runs.errors import ProviderError
from runs.sandbox import filtered_network
from runs.sandbox.egress import GATEWAY6, Allowed, Egress, parse_allowed, resolver_settings
from runs.sandbox.process import run_process
from runs.sandbox.profiles import AGENT, COMMAND
from runs.sandbox.sandbox import Containment, Level
from runs.targets.providers.registry import OPTIONS
from tests.requirements import missing
from tests.runs.containments import containment
from tests.runs.sandbox.small_world import PORT, PRIVATE, PUBLIC, WORKER
from tests.waiting import until

ROOT = Path(__file__).parents[3]
OPEN = ("127.0.0.1:8000", "192.168.9.9:8000", "[fd12::1]:8000", "[::1]:8000")
PUBLIC_ONES = {f"{kind} {address}:{PORT}" for kind in ("tcp", "udp") for address in PUBLIC}


@pytest.fixture(autouse=True)
def _needs_a_filter() -> None:
    containment(Level.BWRAP)
    if problem := filtered_network.filtering_problem():
        missing("sandbox", f"Networks cannot be filtered here: {problem}.")


@cache
def world(egress: str, allow: tuple[str, ...] = (), command: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return what a worker and a sandboxed command reach in a small world of their own."""
    asked = json.dumps({"egress": egress, "allow": allow, "command": command})
    namespaces = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--kill-child"]
    program = [sys.executable, str(ROOT / "tests/runs/sandbox/small_world.py"), asked]
    ended = subprocess.run(
        [*namespaces, *program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def reached(egress: str, allow: tuple[str, ...] = ()) -> set[str]:
    found = world(egress, allow)
    assert found["code"] == 0, found["stderr"]
    # The addresses do answer: the worker reaches all of them.
    assert {f"tcp {address}:{PORT}" for address in (*PUBLIC, *PRIVATE, *WORKER)} <= set(found["worker"])
    return {each for each in json.loads(found["sandbox"]) if not each.startswith("model.test")}


@pytest.mark.slow
def test_internet_means_public_addresses_and_no_others():
    assert reached("internet") == PUBLIC_ONES


@pytest.mark.slow
def test_what_the_operator_opens_answers_and_nothing_beside():
    opened = {f"{kind} {each}" for kind in ("tcp", "udp") for each in ("127.0.0.1:8000", "192.168.9.9:8000")}
    opened |= {"tcp fd12::1:8000", "udp fd12::1:8000"}
    # What else leads to the worker's loopback, on the ports that are open.
    gateway = {"tcp 198.18.77.2:8000", "tcp fd00::2:8000"}
    assert reached("internet", OPEN) == PUBLIC_ONES | opened | gateway


def test_names_are_resolved_by_a_resolver_on_loopback():
    assert "model.test is 9.9.9.9" in world("internet", ())["sandbox"]


def test_none_reaches_nothing():
    assert reached("none") == set()


@pytest.mark.slow
def test_full_reaches_what_the_worker_reaches():
    found = world("full", ())
    assert set(json.loads(found["sandbox"])) == set(found["worker"])


ATTACKS = """
nft flush ruleset
nft delete table inet egress
unshare --user --map-root-user nft flush ruleset
unshare --user --map-current-user --keep-caps nft flush ruleset
nsenter --target 1 --user nft flush ruleset
nsenter --target 1 --net --preserve-credentials nft flush ruleset
ip link delete tap0
ip route replace 10.0.0.0/8 dev lo
ip tuntap add mine mode tap
echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
exec 2>/dev/null
grep CapEff /proc/self/status
for address in 10.1.2.3 169.254.169.254 5.5.5.1; do
  python3 -IS -c "import socket; socket.create_connection(('$address', 8000), timeout=2)" && echo $address
done
python3 -IS -c "import socket; socket.create_connection(('9.9.9.9', 8000), timeout=2)" && echo public
"""


def test_a_trial_cannot_take_the_filter_away():
    found = world("internet", (), ("/bin/sh", "-c", ATTACKS))
    assert found["sandbox"].split() == ["CapEff:", "0000000000000000", "public"]
    assert found["stderr"].count("not permitted") >= 5


@pytest.fixture
def server() -> Iterator[int]:
    """Serve on the worker's loopback and return the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            while True:
                try:
                    listening.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=answer, daemon=True).start()
        yield int(listening.getsockname()[1])


def filtering(*allow: str, egress: Egress = Egress.INTERNET, level: Level = Level.BWRAP) -> Containment:
    return replace(containment(level), egress=egress, allowed=parse_allowed(allow))


def connecting(port: int) -> str:
    program = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=3)"
    return f'{sys.executable} -IS -c "{program}"'


@pytest.mark.parametrize("opened", [False, True], ids=["closed", "opened"])
def test_setup_commands_are_treated_as_agents(folders, server, opened):
    contained = filtering(f"localhost:{server}") if opened else filtering()
    workspace = LocalWorkspace(*folders, contained)
    if opened:
        workspace.run_setup([connecting(server)])
        return
    with pytest.raises(ProviderError, match="refused"):
        workspace.run_setup([connecting(server)])


@pytest.mark.parametrize("network", [False, True], ids=["as it is", "with network: true"])
def test_a_gate_or_script_reaches_no_more_than_an_agent(folders, server, network):
    result = LocalWorkspace(*folders, filtering()).run(
        connecting(server), timeout_seconds=20, network=network
    )
    assert result.exit_code == 1
    assert "refused" in result.stderr
    devices = LocalWorkspace(*folders, filtering()).run(
        "ls /proc/sys/net/ipv4/conf", timeout_seconds=20, network=network
    )
    assert ("tap0" in devices.stdout) is network


def test_nothing_of_a_network_is_left(folders):
    sandbox = filtering().around(*folders, profile=AGENT)
    before, children = psutil.Process().num_fds(), psutil.Process().children(recursive=True)
    for command in ("true", "exit 3", "kill -9 $$"):
        run_process(command, cwd=folders[0], env={}, timeout_seconds=20, sandbox=sandbox)
    with pytest.raises(ProviderError):
        run_process("true", cwd=folders[0], env={"A": "\0"}, timeout_seconds=20, sandbox=sandbox)
    # Helper processes of earlier tests may still be here, or end meanwhile.
    assert set(psutil.Process().children(recursive=True)) <= set(children)
    assert psutil.Process().num_fds() <= before


def children() -> list[int]:
    """Return this process's children in the order of their starts; faster than psutil, which reads every process."""
    lists = [file.read_text() for file in Path("/proc/self/task").glob("*/children")]
    return sorted(int(word) for text in lists for word in text.split())


def test_a_network_that_is_slow_to_come_up_has_its_route():
    """On a busy machine the forwarder's own announcement has set a route first."""
    earlier = children()

    def shown_routes(holder: int) -> str:
        inside = [f"--{kind}=/proc/{holder}/ns/{kind}" for kind in ("user", "net")]
        command = ["nsenter", "--preserve-credentials", *inside, "ip", "-6", "route"]
        return subprocess.check_output(command, text=True)

    def delay() -> None:
        """Stop the process that configures the network while the forwarder starts, until its announcement is there."""
        end = time.monotonic() + 60
        while len(started := [pid for pid in children() if pid not in earlier]) < 2:
            assert time.monotonic() < end, "no forwarder was started"
        os.kill(started[0], signal.SIGSTOP)
        until(lambda: "proto ra" in shown_routes(started[0]))
        os.kill(started[0], signal.SIGCONT)

    with ThreadPoolExecutor() as beside:
        delayed = beside.submit(delay)
        with filtered_network.filtered_network(()) as network:
            delayed.result()
            routes = subprocess.check_output([*network.enter, "ip", "-6", "route"], text=True)
    assert f"default via {GATEWAY6}" in routes


def started_by(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(worker.pid).children(recursive=True)


def test_a_network_goes_with_a_killed_worker(folders):
    program = (
        "import sys; from pathlib import Path; from dataclasses import replace\n"
        "from tests.runs.containments import containment\n"
        "from runs.sandbox.egress import Egress\n"
        "from runs.sandbox.profiles import AGENT\n"
        "from runs.sandbox.process import run_process\n"
        "contained = replace(containment(), egress=Egress.INTERNET)\n"
        "sandbox = contained.around(Path(sys.argv[1]), Path(sys.argv[2]), profile=AGENT)\n"
        "run_process('sleep 64.5', cwd=sandbox.workspace, env={}, timeout_seconds=60, sandbox=sandbox)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, *map(str, folders)], cwd=ROOT) as worker:
        try:
            until(lambda: "sleep" in [child.name() for child in started_by(worker)], 10)
            started = started_by(worker)
            assert {"slirp4netns", "bwrap", "sleep"} <= {child.name() for child in started}
        finally:
            worker.send_signal(signal.SIGKILL)
    assert psutil.wait_procs(started, timeout=5)[1] == []


@pytest.mark.parametrize("level", [Level.LANDLOCK, Level.LIMITS, Level.OFF])
@pytest.mark.parametrize("egress", [Egress.INTERNET, Egress.NONE])
def test_a_policy_that_cannot_be_enforced_is_refused(folders, level, egress):
    contained = filtering(egress=egress, level=level)
    with pytest.raises(
        ProviderError, match=r"there is no bubblewrap\. Install bubblewrap, slirp4netns"
    ) as caught:
        contained.around(*folders, profile=AGENT)
    assert caught.value.kind == "configuration"
    assert "EVALHUB_EGRESS_UNENFORCED=1" in str(caught.value)
    assert contained.around(*folders, profile=COMMAND)
    sandbox = replace(contained, unenforced=True).around(*folders, profile=AGENT)
    assert sandbox.egress is Egress.FULL


HIDDEN = """
mount --bind /dev/null {program}
exec {python} -c "
from dataclasses import replace
from runs.sandbox.egress import Egress
from tests.runs.containments import containment
print(replace(containment(), egress=Egress.INTERNET).agent_problem)"
"""


def test_it_says_what_is_not_installed():
    program = shutil.which("slirp4netns")
    script = HIDDEN.format(program=program, python=sys.executable)
    ended = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "because the worker has no slirp4netns. Install bubblewrap, slirp4netns" in ended.stdout


def test_a_target_says_that_no_agent_may_run():
    target = OPTIONS["cli"](command_template="x")
    contained = filtering(level=Level.LANDLOCK).for_target(target)
    assert "No agent may run on this worker" in contained.agent_problem


def test_a_target_may_ask_for_less(folders, server):
    less = filtering(egress=Egress.FULL).for_target(OPTIONS["cli"](command_template="x", egress="none"))
    sandbox = less.around(*folders, profile=AGENT)
    assert sandbox.egress is Egress.NONE
    result = run_process(connecting(server), cwd=folders[0], env={}, timeout_seconds=20, sandbox=sandbox)
    assert result.exit_code == 1


@pytest.mark.parametrize(("asked", "allowed"), [("full", "internet"), ("internet", "none"), ("full", "none")])
def test_a_target_gets_no_wider_policy(asked, allowed):
    options = OPTIONS["cli"](command_template="x", egress=asked)
    with pytest.raises(ProviderError, match=f"asks for egress '{asked}', and this worker allows '{allowed}'"):
        filtering(egress=Egress(allowed)).for_target(options)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("models.internal:8000", Allowed("models.internal", 8000)),
        ("10.0.0.5:443", Allowed("10.0.0.5", 443)),
        ("[fd12::1]:443", Allowed("fd12::1", 443)),
    ],
)
def test_it_reads_what_is_opened(word, expected):
    assert parse_allowed([word]) == (expected,)


@pytest.mark.parametrize(
    "word", ["models", "models:", ":80", "models:http", "models:0", "models:70000", "10.0.0.0/8:80", "a b:1"]
)
def test_it_says_what_cannot_be_opened(word):
    with pytest.raises(ValueError, match=r"EVALHUB_EGRESS_ALLOW: .* is not 'host:port'.*\.$"):
        parse_allowed([word])


def test_it_refuses_a_loopback_address_out_of_reach():
    with pytest.raises(ValueError, match=r"Use 127\.0\.0\.1"):
        parse_allowed(["127.0.0.9:80"])


@pytest.mark.parametrize(
    ("of_worker", "inside"),
    [
        ("nameserver 127.0.0.53\nsearch a.test\n", "nameserver 198.18.77.3\nsearch a.test\n"),
        ("nameserver fd12::53\n", "nameserver fd00::3\n"),
        ("# none\n", "nameserver 198.18.77.3\n"),
    ],
    ids=["IPv4", "IPv6 only", "no server"],
)
def test_the_resolver_inside_is_the_forwarders(of_worker, inside):
    assert resolver_settings(of_worker) == inside


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "full"),
        ({"EVALHUB_HOSTS": "evals.example.org", "EVALHUB_SECRET_KEY": "x"}, "internet"),
        ({"EVALHUB_EGRESS": "none"}, "none"),
    ],
    ids=["embedded", "team", "set"],
)
def test_the_default_follows_the_mode(tmp_path, changes, expected):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("EVALHUB_", "DATABASE"))}
    program = "from evalhub import settings; print(settings.EGRESS)"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**env, "EVALHUB_DATA": str(tmp_path), **changes},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == expected
