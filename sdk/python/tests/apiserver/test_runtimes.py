"""Runtimes are created, changed, tested and deleted on a real API server."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import yaml
from kubernetes import client as kubernetes
from kubernetes.client import ApiException
from servers import CRDS, Cluster, Operator, wait_until

from openshift_ai_sdk.training import (
    InvalidJobError,
    JobExistsError,
    JobNotFoundError,
    TrainingClient,
    TrainingError,
    _runtime_tests,
)
from openshift_ai_sdk.training._runtime_settings import pods_of

GROUP = ("trainer.kubeflow.org", "v1alpha1")
TESTS = ("mpi.opendatahub.io", "v1alpha1")
IMAGE = "quay.io/me/train:1"
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def agent(cluster: Cluster) -> Iterator[str]:
    """The image of the agent that an installed operator names."""
    core, apps = kubernetes.CoreV1Api(cluster.api), kubernetes.AppsV1Api(cluster.api)
    manager = CRDS.parent / "manager"
    objects = yaml.safe_load_all((manager / "manager.yaml").read_text())
    deployment = next(each for each in objects if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (variable,) = [each for each in container["env"] if each["name"] == "AGENT_IMAGE"]
    variable["value"] = "registry.example.com/agent:7"
    namespace = yaml.safe_load((manager / "namespace.yaml").read_text())["metadata"]["name"]
    core.create_namespace({"metadata": {"name": namespace}})
    apps.create_namespaced_deployment(namespace, deployment)
    yield variable["value"]
    apps.delete_namespaced_deployment(deployment["metadata"]["name"], namespace)


def agent_of(manifest: dict[str, Any]) -> set[str]:
    return {each["image"] for pod in pods_of(manifest) for each in pod["initContainers"] if each["name"] == "mpi-agent"}


def test_a_runtime_of_the_namespace_is_created_changed_and_deleted(client: Any, operator: Operator, agent: str) -> None:
    made = client.create_runtime("mine", image=IMAGE, slots=2, max_workers=6, min_workers=2, gang_timeout="5m")
    assert (made.kind, made.namespace, made.implementation) == ("TrainingRuntime", operator.namespace, "OpenMPI")
    assert (made.image, made.slots, made.max_workers, made.min_workers) == (IMAGE, 2, "6", "2")
    assert (made.max_gpus, made.gang_timeout, made.priority_class) == ("16", "300", None)
    assert client.get_runtime("mine") == made
    assert agent_of(made.manifest) == {agent}
    assert [pod["securityContext"]["runAsUser"] for pod in pods_of(made.manifest)] == [1000, 1000]

    changed = client.update_runtime("mine", image="quay.io/me/train:2", max_gpus=None, priority_class="urgent")
    assert (changed.image, changed.max_gpus, changed.priority_class) == ("quay.io/me/train:2", None, "urgent")
    assert (changed.slots, changed.max_workers, changed.gang_timeout) == (2, "6", "300")
    assert client.get_runtime("mine") == changed
    assert client.update_runtime("mine", priority_class=None, min_workers=None).priority_class is None
    limited = client.update_runtime("mine", required_node_labels={"pool": "a"}, allow_egress="namespace/minio:9000")
    assert (limited.node_labels, limited.allow_egress) == ("pool=a", "namespace/minio:9000")
    assert [pod["nodeSelector"] for pod in pods_of(limited.manifest)] == [{"pool": "a"}, {"pool": "a"}]
    with pytest.raises(InvalidJobError, match=r"^max_workers: 1 is not allowed; use 3 or more, the minimum$"):
        client.update_runtime("mine", min_workers=3)
        client.update_runtime("mine", max_workers=1)

    copied = client.create_runtime("copy", from_runtime="mine", agent_image="registry.example.com/agent:8")
    assert (copied.image, copied.max_workers) == ("quay.io/me/train:2", "6")
    assert agent_of(copied.manifest) == {"registry.example.com/agent:8"}
    assert client.create_runtime("other", from_runtime="mine", dry_run="server").name == "other"
    assert [each.name for each in client.list_runtimes() if each.namespace] == ["copy", "mine"]

    with pytest.raises(JobExistsError, match=r"^runtime 'mine' already exists; use another name, or delete it first$"):
        client.create_runtime("mine", image=IMAGE)
    with pytest.raises(JobNotFoundError, match=r"^runtime 'mein' does not exist; did you mean mine\?; list_runtimes"):
        client.create_runtime("other", from_runtime="mein")
    for call in (client.delete_runtime, lambda name: client.update_runtime(name, slots=1)):
        text = rf"^runtime 'mime' does not exist in the namespace {operator.namespace}; did you mean mine\?; list_run"
        with pytest.raises(JobNotFoundError, match=text):
            call("mime")
    client.delete_runtime("mine")
    assert [each.name for each in client.list_runtimes() if each.namespace] == ["copy"]


def test_a_runtime_of_the_cluster_is_named_as_such(client: Any, operator: Operator) -> None:
    name = f"shared-{next(numbers)}"
    made = client.create_runtime(name, implementation="MPICH", image=IMAGE, cluster=True, run_as_user=7)
    assert (made.kind, made.namespace, made.implementation) == ("ClusterTrainingRuntime", None, "MPICH")
    assert [pod["securityContext"]["runAsUser"] for pod in pods_of(made.manifest)] == [7, 7]
    # That of all namespaces is not changed or deleted by mistake.
    for call in (lambda: client.delete_runtime(name), lambda: client.update_runtime(name, slots=2)):
        with pytest.raises(
            JobNotFoundError, match="the cluster has one, for all namespaces: cluster=True means that one"
        ):
            call()
    assert client.update_runtime(name, slots=2, cluster=True).slots == 2
    of_namespace = client.create_runtime(name, from_runtime=name, slots=3)
    assert (of_namespace.kind, of_namespace.slots, of_namespace.image) == ("TrainingRuntime", 3, IMAGE)
    both = f"^there are two runtimes '{name}'; use trainingruntime/{name} or clustertrainingruntime/{name}$"
    for call in (lambda: client.create_runtime("x", from_runtime=name), lambda: client.test_runtime(name)):
        with pytest.raises(InvalidJobError, match=both):
            call()
    assert client.create_runtime("x", from_runtime=f"clustertrainingruntime/{name}", dry_run="server").slots == 2
    client.delete_runtime(name, cluster=True)
    with pytest.raises(
        JobNotFoundError, match=rf"in the cluster; the namespace {operator.namespace} has one: leave out"
    ):
        client.delete_runtime(name, cluster=True)


def test_finalizers_that_keep_a_runtime_are_named(client: Any, operator: Operator) -> None:
    client.create_runtime("mine", image=IMAGE)
    place = (*GROUP, operator.namespace, "trainingruntimes", "mine")
    operator.custom.patch_namespaced_custom_object(*place, {"metadata": {"finalizers": ["example.com/in-use"]}})
    with pytest.warns(UserWarning, match=r"'mine' is deleted when its finalizers allow it: example\.com/in-use$"):
        client.delete_runtime("mine")
    operator.custom.patch_namespaced_custom_object(*place, {"metadata": {"finalizers": []}})
    with pytest.raises(JobNotFoundError), warnings.catch_warnings():
        warnings.simplefilter("error")
        client.delete_runtime("mine")


def test_changes_at_the_same_time_are_all_made(cluster: Cluster, operator: Operator) -> None:
    with TrainingClient(operator.namespace, configuration=cluster.configuration()) as client:
        client.create_runtime("mine", image=IMAGE)
        changes = [{"slots": 3}, {"max_workers": 4}, {"max_gpus": 5}]
        threads = [threading.Thread(target=client.update_runtime, args=("mine",), kwargs=each) for each in changes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = client.get_runtime("mine")
    assert (found.slots, found.max_workers, found.max_gpus) == (3, "4", "5")


@contextmanager
def played(operator: Operator, status: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Play the operator: write the status of the next RuntimeTest, which is returned when the context ends."""
    seen: list[dict[str, Any]] = []

    def play() -> None:
        place = (*TESTS, operator.namespace, "runtimetests")
        found: list[dict[str, Any]] = []

        def begun() -> bool:
            with suppress(ApiException):  # While its storage is initializing, the server answers 429.
                found[:] = operator.custom.list_namespaced_custom_object(*place)["items"]
            return bool(found)

        wait_until(begun, "a test is started")
        seen.extend(found)
        name = found[0]["metadata"]["name"]
        operator.custom.patch_namespaced_custom_object_status(*place, name, {"status": status})

    thread = threading.Thread(target=play)
    thread.start()
    yield seen
    thread.join()


def started_tests(operator: Operator) -> list[Any]:
    return list(operator.custom.list_namespaced_custom_object(*TESTS, operator.namespace, "runtimetests")["items"])


def test_a_runtime_is_tested(client: Any, operator: Operator) -> None:
    client.create_runtime("mine", image=IMAGE)
    check = {"name": "ImagePull", "result": "Pass", "message": "All 3 pods have the image.", "milliseconds": 1200}
    ended = {"phase": "Passed", "message": "The runtime works.", "completionTime": "2026-01-02T10:10:00Z"}
    figures = {"latencyNanoseconds": 10746, "bytesPerSecond": 1862151712, "method": "Open MPI 5.0.7"}
    with played(operator, {**ended, "checks": [check], "communication": figures}) as seen:
        found = client.test_runtime("mine", cpu="500m", timeout="90s")
    assert found.passed
    assert (found.runtime, found.namespace, found.phase) == ("mine", operator.namespace, "Passed")
    assert (found.latency, found.bandwidth, found.method) == (pytest.approx(10.746e-6), 1862151712, "Open MPI 5.0.7")
    assert [(each.name, each.result, each.milliseconds) for each in found.checks] == [("ImagePull", "Pass", 1200)]
    spec = seen[0]["spec"]
    assert spec["runtimeRef"] == {"kind": "TrainingRuntime", "name": "mine"}
    assert (spec["timeoutSeconds"], spec["resourcesPerNode"]["requests"]) == (90, {"cpu": "500m"})
    assert started_tests(operator) == [], "a test that has passed is deleted"

    failed = {"name": "ImagePull", "result": "Fail", "message": "No such image.", "finding": "ImagePullFailed"}
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "rtt-1", "uid": "1"}
    with played(operator, {**ended, "phase": "Failed", "message": "It fails.", "checks": [failed], "jobRef": job}):
        found = client.test_runtime("mine")
    assert (found.passed, found.message, found.job, found.latency) == (False, "It fails.", "rtt-1", None)
    assert [each["metadata"]["name"] for each in started_tests(operator)] == [found.name]


def test_a_test_without_an_end_is_an_error(client: Any, operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    client.create_runtime("mine", image=IMAGE)
    begun = client.test_runtime("mine", wait=False)
    assert (begun.phase, begun.checks, begun.passed) == ("Pending", [], False)
    assert [each["spec"]["ttlSecondsAfterFinished"] for each in started_tests(operator)] == [86400]
    monkeypatch.setattr(_runtime_tests, "PATIENCE", -9.9)
    with pytest.raises(TrainingError, match=r"^runtimetest/mine-\w+ has no result after 0 s: no message; check that"):
        client.test_runtime("mine", timeout=10)
