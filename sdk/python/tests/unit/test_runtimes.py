"""What a runtime offers and requires, from its object."""

from __future__ import annotations

from typing import Any

from openshift_ai_sdk.training._runtimes import read


def job(name: str, image: str, **pod: Any) -> dict[str, Any]:
    containers = [{"name": "log", "image": "logger"}, {"name": "node", "image": image}]
    return {"name": name, "template": {"spec": {"template": {"spec": {"containers": containers, **pod}}}}}


def test_a_runtime_of_mpi_is_read() -> None:
    notes = {
        "mpi-implementation": "MPICH",
        "min-workers": "2",
        "max-workers": "8",
        "max-gpus-per-worker": "4",
        "required-node-labels": "pool=gpu",
        "schedule-timeout-seconds": "300",
    }
    jobs = [job("launcher", "launch:1"), job("node", "train:1", priorityClassName="urgent"), job("other", "x")]
    item = {
        "metadata": {
            "name": "mine",
            "namespace": "team",
            "annotations": {f"mpi.opendatahub.io/{name}": value for name, value in notes.items()},
        },
        "spec": {"mlPolicy": {"mpi": {"numProcPerNode": 2}}, "template": {"spec": {"replicatedJobs": jobs}}},
    }
    found = read(item)
    assert (found.name, found.namespace, found.kind) == ("mine", "team", "TrainingRuntime")
    assert (found.implementation, found.slots, found.image, found.priority_class) == ("MPICH", 2, "train:1", "urgent")
    assert (found.min_workers, found.max_workers, found.max_gpus) == ("2", "8", "4")
    assert (found.node_labels, found.gang_timeout) == ("pool=gpu", "300")
    assert found.manifest is item


def test_a_runtime_without_limits_is_read() -> None:
    found = read({"metadata": {"name": "shared"}, "spec": {"mlPolicy": {"mpi": {}}}})
    assert (found.namespace, found.kind) == (None, "ClusterTrainingRuntime")
    assert (found.implementation, found.slots, found.image, found.max_workers) == ("OpenMPI", 1, None, None)


def test_a_runtime_without_mpi_is_read() -> None:
    jobs = [job("node", "torch:1")]
    spec = {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": jobs}}}
    found = read({"metadata": {"name": "torch", "annotations": None}, "spec": spec})
    assert (found.implementation, found.slots, found.image) == (None, None, "torch:1")
    assert read({"metadata": {"name": "empty"}}).implementation is None
