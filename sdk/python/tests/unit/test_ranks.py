"""The number of ranks in the command of a copy follows the number of its slots."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest

from openshift_ai_sdk.training import _changes, _ranks

RUNTIME = {
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "mpi"},
    "spec": {
        "mlPolicy": {"numNodes": 1, "mpi": {"numProcPerNode": 1, "runLauncherAsNode": True}},
        "template": {"spec": {"replicatedJobs": []}},
    },
}


async def find(resource: Any, namespace: str | None, name: str) -> Any:
    return RUNTIME if resource.kind == RUNTIME["kind"] and name == "mpi" else None


CLUSTER: Any = SimpleNamespace(api=SimpleNamespace(find=find))


def mpi_job(*command: str) -> dict[str, Any]:
    def role(name: str, **fields: Any) -> dict[str, Any]:
        return {"template": {"spec": {"containers": [{"name": name, "image": "i", **fields}]}}}

    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {
            "slotsPerWorker": 2,
            "mpiReplicaSpecs": {
                "Launcher": role("launcher", command=list(command)),
                "Worker": {"replicas": 2, **role("worker")},
            },
        },
    }


def train_job(runtime: str, *command: str) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {"runtimeRef": {"name": runtime}, "trainer": {"numNodes": 4, "command": list(command)}},
    }


TAGGED = ("mpirun", "--tag-output", "-n", "4", "train", "-n", "4")
SCRIPT = ("sh", "-c", "mpirun -np 4 train && x")

CASES = {
    "of create": (mpi_job(*TAGGED), {"workers": 8}, ["mpirun", "--tag-output", "-n", "16", "train", "-n", "4"], ""),
    "of a user": (
        mpi_job("/usr/bin/mpiexec", "--mca", "btl", "tcp", "--bind-to", "core", "-np", "4", "train"),
        {"workers": 8},
        ["/usr/bin/mpiexec", "--mca", "btl", "tcp", "--bind-to", "core", "-np", "16", "train"],
        "",
    ),
    "other slots": (
        mpi_job("mpirun", "-n", "4", "x"),
        {"spec.slotsPerWorker": 3},
        ["mpirun", "-n", "6", "x"],
        "",
    ),
    "another number": (
        mpi_job("mpirun", "-n", "3", "x"),
        {"workers": 8},
        ["mpirun", "-n", "3", "x"],
        "the command still starts 3 ranks, and the job now has 16 slots instead of 4",
    ),
    "a script": (mpi_job(*SCRIPT), {"workers": 8}, list(SCRIPT), "the command still starts 4 ranks"),
    "two programs": (
        mpi_job("mpirun", "-n", "1", "a", ":", "-n", "3", "b"),
        {"workers": 8},
        ["mpirun", "-n", "1", "a", ":", "-n", "3", "b"],
        "the command still starts 4 ranks, and",
    ),
    "no number": (mpi_job("mpirun", "x", "-n", "4"), {"workers": 8}, ["mpirun", "x", "-n", "4"], ""),
    "another command": (
        mpi_job("mpirun", "-n", "4", "x"),
        {"workers": 8, "command": "mpirun -n 5 y"},
        ["mpirun", "-n", "5", "y"],
        "",
    ),
    "a TrainJob": (train_job("mpi", "mpirun", "-n", "4", "x"), {"workers": 8}, ["mpirun", "-n", "8", "x"], ""),
    "its GPUs": (train_job("mpi", "mpirun", "-n", "4", "x"), {"gpu": 2}, ["mpirun", "-n", "8", "x"], ""),
    "its image": (train_job("gone", "mpirun", "-n", "4", "x"), {"image": "y"}, ["mpirun", "-n", "4", "x"], ""),
    "an unknown runtime": (
        train_job("gone", "mpirun", "-n", "4", "x"),
        {"workers": 8},
        ["mpirun", "-n", "4", "x"],
        "the number of slots is unknown: the runtime gone does not exist",
    ),
}


@pytest.mark.parametrize(("job", "changes", "want", "note"), CASES.values(), ids=CASES)
def test_ranks_follow(job: dict[str, Any], changes: dict[str, Any], want: list[str], note: str) -> None:
    clone = deepcopy(job)
    assert not _changes.apply(clone, changes)
    said = asyncio.run(_ranks.follow(CLUSTER, job, clone))
    assert _ranks.command_of(clone) == want
    assert (note in said) if note else not said
