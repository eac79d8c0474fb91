"""docker/: what the files say, and the very commands of compose.yaml as processes, where no engine runs."""

from __future__ import annotations

import json
import re
import subprocess
import time
from typing import Any

import pytest
import redis
from django.core.management import get_commands

from runs.sandbox.filtered_network import PACKAGES
from tests.docker.stack import DOCKER, ROOT, compose, env_file
from tests.operations.test_operations_page import settings_documented
from tests.services.servers import redis_program

pytestmark = pytest.mark.one_database

WORKERS = ("worker", "worker-2", "worker-3")
OWN = ("migrate", "web", *WORKERS, "beat", "bucket", "backup")
LASTING = ("web", *WORKERS, "beat", "postgres", "redis", "store")
OF_COMPOSE = frozenset(("DATABASE_URL", "EVALHUB_BROKER_URL", "EVALHUB_SECRET_KEY", "EVALHUB_METRICS_TOKEN"))
"""Read from files in secrets/."""
PROFILE = ["worker-2", "worker-3", "store", "bucket"]


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return compose()["services"]


@pytest.mark.parametrize("name", LASTING)
def test_every_service_that_lasts_restarts_and_is_looked_after(services, name):
    service = services[name]
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert service["healthcheck"]["interval"]


@pytest.mark.parametrize("name", OWN)
def test_own_services_have_a_read_only_root_and_no_capability(services, name):
    service = services[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["tmpfs"] == ["/tmp"]
    mounted = [volume.rpartition(":")[2] for volume in service["volumes"]]
    assert mounted == (["/data", "/backup"] if name == "backup" else ["/data"])


def test_web_and_workers_share_a_disk_where_there_is_no_store(services):
    shared = {name for name in services if "data:/data" in services[name]["volumes"]}
    assert shared == {"migrate", "web", "worker", "beat", "backup"}


def test_with_a_store_no_two_services_share_a_disk():
    services = compose(**env_file("three-workers.env"))["services"]
    disks = [volume.split(":")[0] for service in services.values() for volume in service["volumes"]]
    # The backup has one for its own, too.
    assert len(disks) == len(set(disks)) == len(services) + 1


def test_the_profile_adds_two_workers_and_a_store(services):
    assert [name for name in services if services[name].get("profiles") == ["three-workers"]] == PROFILE
    assert [name for name in services if "profiles" in services[name] and name not in PROFILE] == ["backup"]


def test_one_worker_of_the_profile_is_labelled():
    services = compose(**env_file("three-workers.env"))["services"]
    labels = [services[name]["environment"].get("EVALHUB_WORKER_LABELS") for name in WORKERS]
    assert labels == [None, None, "gpu"]


@pytest.mark.parametrize("name", WORKERS[1:])
def test_workers_of_the_profile_differ_in_disk_and_labels_alone(services, name):
    differing = {key for key in services[name] if services[name][key] != services["worker"].get(key)}
    assert differing <= {"profiles", "volumes", "environment"}
    extra = services[name]["environment"].items() - services["worker"]["environment"].items()
    assert dict(extra).keys() <= {"EVALHUB_WORKER_LABELS"}


def test_the_page_starts_the_profile_with_its_variables():
    page = (ROOT / "docs/high-availability.md").read_text()
    assert "docker compose --env-file three-workers.env --profile three-workers up" in page
    assert "s3://evalhub?endpoint=http://store:9000&" in env_file("three-workers.env")["EVALHUB_STORE"]


def test_the_bucket_is_made_by_a_command_of_evalhub(services):
    assert services["bucket"]["command"] == ["python", "manage.py", "make_bucket"]
    assert "make_bucket" in get_commands()


def test_services_without_the_profile_need_no_bucket(services):
    for name in ("web", "worker", "beat"):
        assert services[name]["depends_on"]["bucket"]["required"] is False


@pytest.mark.parametrize("name", OWN)
def test_secrets_come_from_files_that_the_service_is_given(services, name):
    service = services[name]
    files = {value for key, value in service["environment"].items() if key.endswith("_FILE")}
    assert files == {f"/run/secrets/{secret}" for secret in service["secrets"]}
    assert not any("password" in str(value).lower() for value in service["environment"].values())


def test_every_secret_and_volume_is_declared():
    whole = compose()
    for service in whole["services"].values():
        assert set(service.get("secrets", ())) <= set(whole["secrets"])
        assert {each.split(":")[0] for each in service["volumes"]} <= set(whole["volumes"])


def test_every_variable_is_a_setting(services):
    known = (ROOT / "evalhub/settings.py").read_text() + (ROOT / "evalhub/environment.py").read_text()
    for name in OWN:
        for variable in services[name]["environment"]:
            assert f'"{variable.removesuffix("_FILE")}"' in known, variable


def test_pages_are_served_on_loopback_only(services):
    assert services["web"]["ports"] == ["127.0.0.1:8000:8000"]
    assert [name for name in services if "ports" in services[name]] == ["web"]


def test_everything_waits_for_the_migration(services):
    for name in ("web", *WORKERS, "beat"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_only_workers_may_make_namespaces(services):
    profiles = {
        name: [o for o in services[name].get("security_opt", ()) if "seccomp" in o] for name in services
    }
    assert [name for name, found in profiles.items() if found] == [*WORKERS]
    assert {*map(tuple, (profiles[name] for name in WORKERS))} == {("seccomp=./seccomp-bubblewrap.json",)}


def test_the_profile_lets_bubblewrap_work_and_keeps_the_kernel_shut():
    profile = json.loads((DOCKER / "seccomp-bubblewrap.json").read_text())
    denied = {name for rule in profile["syscalls"] for name in rule["names"]}
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ERRNO"}
    assert not denied & {
        "clone",
        "clone3",
        "unshare",
        "mount",
        "umount2",
        "pivot_root",
        "setns",
        "seccomp",
        "prctl",
    }
    assert denied >= {
        "init_module",
        "finit_module",
        "kexec_load",
        "bpf",
        "perf_event_open",
        "keyctl",
        "reboot",
    }


def test_the_image_is_not_root_and_has_what_the_lock_names():
    lines = (DOCKER / "Dockerfile").read_text().splitlines()
    assert "USER evalhub" in lines
    assert lines.index("USER evalhub") > max(n for n, line in enumerate(lines) if line.startswith("RUN"))
    assert any("--require-hashes --requirement requirements.lock" in line for line in lines)
    assert any("collectstatic" in line for line in lines)
    assert [line for line in lines if line.startswith("FROM")] == [
        "FROM python:3.11.14-slim-bookworm AS build",
        "FROM python:3.11.14-slim-bookworm",
    ]


def test_every_image_is_pinned_to_a_release(services):
    images = {service["image"] for name, service in services.items() if name not in OWN}
    assert len(images) == 3
    for image in images:
        assert re.search(r":(\d+\.\d+|RELEASE\.)", image), image


def test_the_image_dumps_the_database_that_compose_starts(services):
    (client,) = re.findall(r"postgresql-client-(\d+)", (DOCKER / "Dockerfile").read_text())
    assert services["postgres"]["image"].startswith(f"postgres:{client}.")
    assert services["backup"]["command"] == ["python", "manage.py", "backup", "/backup"]


@pytest.mark.parametrize("setting", sorted(settings_documented() - OF_COMPOSE))
def test_every_documented_setting_reaches_every_service(setting):
    """One line of .env is enough, which an engine also reads for the variables in compose.yaml."""
    services = compose(**{setting: "chosen"})["services"]
    assert [
        name for name in OWN if {"path": ".env", "required": False} not in services[name]["env_file"]
    ] == []
    differing = [name for name in OWN if services[name]["environment"].get(setting, "chosen") != "chosen"]
    assert differing == (["worker-3"] if setting == "EVALHUB_WORKER_LABELS" else [])


def test_only_workers_get_the_keys_of_providers(services):
    given = {name for name in OWN for each in services[name]["env_file"] if each["path"] == "providers.env"}
    assert given == set(WORKERS)


def test_the_image_starts_what_the_web_service_starts(services):
    (last,) = [line for line in (DOCKER / "Dockerfile").read_text().splitlines() if line.startswith("CMD")]
    assert json.loads(last.removeprefix("CMD ")) == services["web"]["command"]


@pytest.mark.parametrize(
    "name",
    ["manage.py", "gunicorn.conf.py", "evaluators", "scenarios", "runs", "evalhub", "templates", "static"],
)
def test_the_image_holds_what_the_build_context_lets_in(name):
    assert f"!{name}" in (ROOT / ".dockerignore").read_text().splitlines()
    copied = [
        line.split()[1:-1]
        for line in (DOCKER / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY")
    ]
    assert any(name in names for names in copied)


def test_workers_have_what_filters_the_network(services):
    assert services["worker"]["devices"] == ["/dev/net/tun"]
    image = (DOCKER / "Dockerfile").read_text()
    assert [name for name in PACKAGES.replace(" and", ",").split(", ") if name not in image] == []


def test_redis_gets_its_password_outside_its_arguments(services):
    server = services["redis"]
    assert server["command"][1] == "/run/secrets/broker_conf"
    assert {"broker_conf", "broker_password"} <= set(server["secrets"])
    assert not any("password" in word for word in services["store"]["command"])
    assert not any("requirepass" in word for word in server["command"])
    page = (ROOT / "docs/operations.md").read_text()
    for name in compose()["secrets"]:
        assert name in page.split("## A server with containers")[1].split("```")[1], name


@pytest.mark.slow
def test_redis_with_that_configuration_refuses_strangers(services, tmp_path):
    config = tmp_path / "broker_conf"
    config.write_text("requirepass known-to-nobody\n")
    command = [
        str(config) if word == "/run/secrets/broker_conf" else word for word in services["redis"]["command"]
    ]
    socket = tmp_path / "socket"
    place = ["--port", "0", "--unixsocket", str(socket), "--dir", str(tmp_path)]
    server = subprocess.Popen([redis_program(), *command[1:], *place], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 20
        while not socket.exists() and time.monotonic() < end:
            time.sleep(0.05)
        with pytest.raises(redis.AuthenticationError), redis.Redis(unix_socket_path=str(socket)) as stranger:
            stranger.ping()
        with redis.Redis(unix_socket_path=str(socket), password="known-to-nobody") as friend:
            assert friend.ping()
    finally:
        server.terminate()
        server.wait(20)
