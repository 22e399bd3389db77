"""Logs of jobs without a launcher: TrainJobs of runtimes without MPI, such as PyTorch's."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest
from smallapi import RUNTIMES, TRAIN_JOBS, SmallAPI

PODS = [{"role": "worker", "index": index, "name": f"torch-node-0-{index}"} for index in range(2)]
WORKERS = {"summary": "2", "wanted": 2, "ready": 2, "running": 2, "succeeded": 0, "failed": 0}


def torch(client: Any, small: SmallAPI, slots: int = 1, policy: str = "torch", reported: bool = True) -> Any:
    """Return a TrainJob whose nodes print a line each second."""
    small.put(
        RUNTIMES, {"kind": "ClusterTrainingRuntime", "metadata": {"name": "some"}, "spec": {"mlPolicy": {policy: {}}}}
    )
    small.put(
        TRAIN_JOBS,
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "torch"},
            "spec": {"runtimeRef": {"name": "some"}, "trainer": {"command": ["torchrun", "train.py"]}},
        },
    )
    job = client.get_job("torch")
    for index in range(2):
        small.pod(job, f"torch-node-0-{index}", [f"epoch {step} loss 0.{index}{step} of {index}" for step in (1, 2)])
    if reported:
        report(small, job, "Running", slots)
    return job


def report(small: SmallAPI, job: Any, phase: str, slots: int = 1) -> None:
    pods = [{"phase": "Running", "ready": True, **pod} for pod in PODS]
    small.report(job, phase, pods=pods, workers=WORKERS, mpi={"slotsPerWorker": slots, "ranks": 2 * slots})


@pytest.mark.parametrize("reported", [True, False])
def test_all_workers_are_read(small_client: Any, small: SmallAPI, reported: bool) -> None:
    job = torch(small_client, small, reported=reported)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = job.get_logs()
        assert {line.pod for line in lines} == {"torch-node-0-0", "torch-node-0-1"} and len(lines) == 4
        assert {line.pod for line in job.get_logs(worker_index=1)} == {"torch-node-0-1"}
        # Those of other workers are the same figures again.
        assert [point.loss for point in job.get_training_history()] == [0.01, 0.02]


def test_a_rank_is_the_worker_that_runs_it_alone(small_client: Any, small: SmallAPI) -> None:
    job = torch(small_client, small)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {line.pod for line in job.get_logs(ranks=0)} == {"torch-node-0-0"}
        assert {line.pod for line in job.get_logs(ranks="1")} == {"torch-node-0-1"}


def test_ranks_that_share_a_worker_are_unknown(small_client: Any, small: SmallAPI) -> None:
    job = torch(small_client, small, slots=2)
    with pytest.warns(UserWarning, match="none is selected; worker_index selects the lines of a worker"):
        assert not job.get_logs(ranks=0)
    small.pod(job, "torch-node-0-1", ["[rank3]: of three", "of any"])
    assert str(job.get_logs(ranks=3)) == "of three"


def test_following_reads_all_workers(small_client: Any, small: SmallAPI) -> None:
    job = torch(small_client, small)
    threading.Timer(0.5, lambda: report(small, job, "Succeeded")).start()
    assert {line.pod for line in job.get_logs(follow=True)} == {"torch-node-0-0", "torch-node-0-1"}


def test_a_trainjob_with_mpi_has_the_log_of_its_launcher(small_client: Any, small: SmallAPI) -> None:
    job = torch(small_client, small, policy="mpi", reported=False)
    small.pod(job, "torch-launcher-0-0", ["of the launcher"])
    assert str(job.get_logs()) == "of the launcher"
