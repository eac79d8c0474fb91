"""docker/kubernetes/: manifests that the API's schema accepts, and that name only what evalhub has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.core.management import get_commands
from django.urls import resolve

from evalhub.metrics import collect_metrics
from tests.docker.stack import DOCKER, ROOT, compose

pytestmark = pytest.mark.one_database

FOLDER = DOCKER / "kubernetes"
FILES = sorted(FOLDER.rglob("*.yaml"))
OLDEST = "1.33"
"""The oldest release of Kubernetes that docs/kubernetes.md names."""
LABELS = "EVALHUB_WORKER_LABELS"
Manifest = dict[str, Any]


def manifests(path: Path) -> list[Manifest]:
    return list(yaml.safe_load_all(path.read_text()))


ALL = [(path, manifest) for path in FILES for manifest in manifests(path)]
PODS = {
    manifest["metadata"]["name"]: manifest["spec"]["template"]["spec"]
    for _, manifest in ALL
    if manifest["kind"] in ("Deployment", "Job")
}
PODS |= {
    manifest["metadata"]["name"]: manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for _, manifest in ALL
    if manifest["kind"] == "CronJob"
}
WORKERS = ("evalhub-worker", "evalhub-worker-gpu")


def named(kind: str, name: str) -> Manifest:
    (found,) = [each for _, each in ALL if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def of_kind(kind: str) -> list[Manifest]:
    return [each for _, each in ALL if each["kind"] == kind]


def container(name: str) -> Manifest:
    (found,) = PODS[name]["containers"]
    return found


def title(value: object) -> str:
    return str(value.relative_to(FOLDER)) if isinstance(value, Path) else value["kind"]  # type: ignore[index]


@pytest.mark.parametrize("release", [OLDEST, kubernetes_validate.latest_version()])
@pytest.mark.parametrize(("path", "manifest"), ALL, ids=title)
def test_the_api_accepts_every_manifest(path, manifest, release):
    kubernetes_validate.validate(manifest, release, strict=True)


def test_a_misspelt_field_is_noticed():
    wrong = yaml.safe_load((FOLDER / "beat.yaml").read_text())
    wrong["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, OLDEST, strict=True)


def test_the_page_names_the_oldest_release_and_every_file():
    page = (ROOT / "docs/kubernetes.md").read_text()
    assert f"Kubernetes {OLDEST}" in page
    assert [path.name for path in FILES if f"`{path.relative_to(FOLDER)}`" not in page] == []


def test_every_variable_is_a_setting():
    known = (ROOT / "evalhub/settings.py").read_text() + (ROOT / "evalhub/environment.py").read_text()
    names = set(named("ConfigMap", "evalhub")["data"])
    names |= {each["name"] for pod in PODS for each in container(pod).get("env", ())}
    assert [name for name in names if f'"{name.removesuffix("_FILE")}"' not in known] == []


def test_every_secret_file_is_in_the_example():
    files = {value for value in named("ConfigMap", "evalhub")["data"].values() if "/run/secrets" in value}
    keys = {f"/run/secrets/evalhub/{key}" for key in named("Secret", "evalhub")["stringData"]}
    assert files == keys


def test_secrets_have_the_names_of_the_compose_secrets():
    assert set(named("Secret", "evalhub")["stringData"]) <= set(compose()["secrets"])


@pytest.mark.parametrize(
    ("pod", "service"),
    [
        ("evalhub-web", "web"),
        ("evalhub-worker", "worker"),
        ("evalhub-worker-gpu", "worker"),
        ("evalhub-beat", "beat"),
        ("evalhub-migrate", "migrate"),
        ("evalhub-backup", "backup"),
    ],
)
def test_pods_run_the_commands_of_the_compose_services(pod, service):
    assert container(pod)["command"] == compose()["services"][service]["command"]


def test_every_command_of_evalhub_exists():
    named_commands = set(re.findall(r"manage\.py[, ]+(\w+)", "".join(path.read_text() for path in FILES)))
    assert named_commands == {"backup", "migrate", "worker_health"}
    assert named_commands <= set(get_commands())


def test_web_is_reached_at_the_port_it_binds():
    web = container("evalhub-web")
    (port,) = web["ports"]
    assert f"0.0.0.0:{port['containerPort']}" in web["command"]
    (service,) = of_kind("Service")
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    selector = service["spec"]["selector"].items()
    assert selector <= named("Deployment", "evalhub-web")["spec"]["template"]["metadata"]["labels"].items()


def test_readiness_asks_health_under_a_host_that_is_served():
    probe = container("evalhub-web")["readinessProbe"]["httpGet"]
    assert resolve(probe["path"]).url_name == "healthz"
    (host,) = [each["value"] for each in probe["httpHeaders"] if each["name"] == "Host"]
    assert host in named("ConfigMap", "evalhub")["data"]["EVALHUB_HOSTS"].split(",")


def test_the_ingress_leads_to_the_service_for_that_host():
    (ingress,) = of_kind("Ingress")
    (rule,) = ingress["spec"]["rules"]
    assert rule["host"] in named("ConfigMap", "evalhub")["data"]["EVALHUB_HOSTS"].split(",")
    backend = rule["http"]["paths"][0]["backend"]["service"]
    service = named("Service", backend["name"])
    assert backend["port"]["name"] in [port["name"] for port in service["spec"]["ports"]]


def test_web_is_not_restarted_because_the_database_is_away():
    assert "httpGet" not in container("evalhub-web")["livenessProbe"]


@pytest.mark.parametrize("name", WORKERS)
def test_workers_outlive_a_database_that_is_away_for_minutes(name):
    probe = container(name)["livenessProbe"]
    assert probe["exec"]["command"] == compose()["services"]["worker"]["healthcheck"]["test"][1:]
    lease = int(named("ConfigMap", "evalhub")["data"]["EVALHUB_LEASE_SECONDS"])
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 5 * lease


@pytest.mark.parametrize("name", WORKERS)
def test_workers_have_the_same_time_to_drain_everywhere(name):
    assert compose()["services"]["worker"]["stop_grace_period"] == "5m"
    assert "TimeoutStopSec=5min" in (ROOT / "docs/operations.md").read_text()
    assert PODS[name]["terminationGracePeriodSeconds"] == 300


def test_there_is_exactly_one_beat():
    spec = named("Deployment", "evalhub-beat")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert "evalhub-beat" not in [each["metadata"]["name"] for each in of_kind("HorizontalPodAutoscaler")]


@pytest.mark.parametrize("name", PODS)
def test_pods_have_no_rights_and_a_read_only_root(name):
    pod = PODS[name]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    for each in [*pod["containers"], *pod.get("initContainers", ())]:
        security = each["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["readOnlyRootFilesystem"] is True
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in security
        assert each["resources"]["limits"]["memory"]


@pytest.mark.parametrize("name", PODS)
def test_pods_run_as_the_user_of_the_image(name):
    (line,) = [each for each in (DOCKER / "Dockerfile").read_text().splitlines() if "useradd" in each]
    assert f"--uid {PODS[name]['securityContext']['runAsUser']} " in line


@pytest.mark.parametrize("name", PODS)
def test_pods_share_no_disk(name):
    kinds = [set(volume) - {"name"} for volume in PODS[name]["volumes"]]
    own = [{"persistentVolumeClaim"}] if name == "evalhub-backup" else []
    assert kinds == [{"secret"}, {"emptyDir"}, {"emptyDir"}, *own]
    assert named("ConfigMap", "evalhub")["data"]["EVALHUB_STORE"].startswith("s3://")


def test_only_workers_may_make_sandboxes():
    profiles = {name: PODS[name]["securityContext"]["seccompProfile"] for name in PODS}
    local = {"type": "Localhost", "localhostProfile": "evalhub/seccomp-bubblewrap.json"}
    assert {name for name in PODS if profiles[name] == local} == set(WORKERS)
    assert all(profiles[name] == {"type": "RuntimeDefault"} for name in PODS if name not in WORKERS)
    unmasked = {name for name in PODS if "procMount" in container(name)["securityContext"]}
    assert unmasked == {name for name in PODS if PODS[name].get("hostUsers") is False} == set(WORKERS)


def test_only_workers_get_the_keys_of_model_providers():
    given = {name for name in PODS if "evalhub-providers" in str(container(name)["envFrom"])}
    assert given == set(WORKERS)


def test_workers_differ_in_their_label_alone():
    general, labelled = ({each["name"]: each["value"] for each in container(name)["env"]} for name in WORKERS)
    assert labelled == general | {LABELS: "gpu"}
    scaler = named("HorizontalPodAutoscaler", "evalhub-worker-gpu")["spec"]["metrics"][0]["external"]
    assert scaler["metric"]["selector"] == {"matchLabels": {"label": labelled[LABELS]}}


def test_disruption_budgets_select_their_pods():
    for budget in of_kind("PodDisruptionBudget"):
        template = named("Deployment", budget["metadata"]["name"])["spec"]["template"]
        assert budget["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert {each["metadata"]["name"] for each in of_kind("PodDisruptionBudget")} == {"evalhub-web", *WORKERS}


def rules() -> list[Manifest]:
    """Return the rules of prometheus-adapter."""
    (config,) = [each for each in of_kind("ConfigMap") if each["metadata"]["name"] == "prometheus-adapter"]
    found: list[Manifest] = yaml.safe_load(config["data"]["config.yaml"])["externalRules"]
    return found


@pytest.mark.slow
@pytest.mark.django_db
def test_the_adapters_rules_read_metrics_that_are_served():
    known = {metric.name for metric in collect_metrics()}
    for rule in rules():
        assert rule["seriesQuery"] in known
        assert set(re.findall(r"evalhub_\w+", rule["metricsQuery"])) <= known
        # Every web process reports the same numbers.
        assert "sum(" not in rule["metricsQuery"]


@pytest.mark.parametrize("name", WORKERS)
def test_workers_scale_by_metrics_that_the_adapter_makes(name):
    spec = named("HorizontalPodAutoscaler", name)["spec"]
    assert spec["scaleTargetRef"]["name"] == name
    (metric,) = spec["metrics"]
    assert metric["external"]["metric"]["name"] in [rule["name"]["as"] for rule in rules()]
    threads = {each["name"]: each["value"] for each in container(name)["env"]}["EVALHUB_WORKER_THREADS"]
    assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": threads}
    # The autoscaler decides; a number here would undo its decision on every apply.
    assert "replicas" not in named("Deployment", name)["spec"]
