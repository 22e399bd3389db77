"""Jobs as their users wrote them."""

from __future__ import annotations

import json
from typing import Any

from openshift_ai_sdk.training import _written

PATH = "/spec/mpiReplicaSpecs/Worker/template/spec/containers/0/resources/limits/rdma~1hca"


def admitted() -> dict[str, object]:
    """Return an MPIJob that Kueue has admitted, and whose request for RDMA the operator has removed."""
    removed = [{"op": "add", "path": PATH, "value": 1}, {"op": "add", "path": "/spec/x/3/limits/rdma~1hca", "value": 1}]
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {
            "name": "pi",
            "namespace": "ns",
            "labels": {"kueue.x-k8s.io/queue-name": "team"},
            "annotations": {_written.ANNOTATION_REMOVED_RDMA: json.dumps(removed)},
        },
        "spec": {
            "runPolicy": {"suspend": False},
            "mpiReplicaSpecs": {
                "Launcher": {
                    "template": {
                        "metadata": {
                            "labels": {"kueue.x-k8s.io/podset": "launcher"},
                            "annotations": {"kueue.x-k8s.io/workload": "w"},
                        },
                        "spec": {
                            "containers": [{"name": "l"}],
                            "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
                        },
                    }
                },
                "Worker": {
                    "template": {
                        "metadata": {
                            "labels": {"team": "a", "kueue.x-k8s.io/podset": "worker"},
                            "annotations": {"kueue.x-k8s.io/podset-required-topology": "zone"},
                        },
                        "spec": {"containers": [{"name": "w", "resources": {"limits": {"cpu": 1}}}]},
                    }
                },
            },
        },
    }


def test_admitted_job_is_as_written() -> None:
    """What Kueue wrote is removed, and the requests for RDMA are there again."""
    written = _written.as_written(admitted())
    assert "annotations" not in written["metadata"]
    assert written["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "team"}
    replicas = written["spec"]["mpiReplicaSpecs"]
    assert replicas["Launcher"]["template"] == {"spec": {"containers": [{"name": "l"}]}}
    assert replicas["Worker"]["template"] == {
        "metadata": {
            "labels": {"team": "a"},
            "annotations": {"kueue.x-k8s.io/podset-required-topology": "zone"},
        },
        "spec": {"containers": [{"name": "w", "resources": {"limits": {"cpu": 1, "rdma/hca": 1}}}]},
    }


def test_admitted_job_is_placed_as_before() -> None:
    """Node selectors and tolerations are those in the report, unless Kueue cannot have changed them."""
    launcher, worker = "{template: {spec: {}}}", "{template: {spec: {nodeSelector: {d: s}}}}"
    recorded = f"spec: {{mpiReplicaSpecs: {{Launcher: {launcher}, Worker: {worker}}}}}"
    report: Any = {
        "metadata": {"namespace": "ns"},
        "spec": {"jobRef": {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "pi"}},
        "status": {"specification": {"manifest": "metadata: {}\n" + recorded}},
    }
    flavor = {"nodeSelector": {"d": "s", "flavor": "spot"}, "tolerations": [{"key": "spot"}]}

    def placements(queue: bool, suspended: bool, report: Any) -> list[Any]:
        job: Any = admitted()
        job["spec"]["runPolicy"]["suspend"] = suspended
        if not queue:
            job["metadata"]["labels"] = {}
        for replica in job["spec"]["mpiReplicaSpecs"].values():
            replica["template"]["spec"] |= flavor
        written = _written.as_written(job)
        _written.keep_placement(written, job, report)
        pods = [replica["template"]["spec"] for replica in written["spec"]["mpiReplicaSpecs"].values()]
        return [{name: pod[name] for name in flavor if name in pod} for pod in pods]

    assert placements(True, False, report) == [{}, {"nodeSelector": {"d": "s"}}]
    assert placements(True, True, report) == [flavor, flavor]
    assert placements(False, False, report) == [flavor, flavor]
    assert placements(True, False, None) == [flavor, flavor]
    assert placements(True, False, {**report, "status": {}}) == [flavor, flavor]


def test_invalid_annotation_changes_nothing() -> None:
    """An annotation that a user has written adds nothing but requests."""
    for text in ("x", "{}", "[1]", '[{"path": "/metadata/name", "value": "y"}]', '[{"path": ""}]'):
        job = admitted()
        job["metadata"]["annotations"][_written.ANNOTATION_REMOVED_RDMA] = text  # type: ignore[index]
        written = _written.as_written(job)
        assert written["metadata"]["name"] == "pi"
        container = written["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
        assert container["resources"]["limits"] == {"cpu": 1}
