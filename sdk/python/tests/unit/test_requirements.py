"""Code that users have from elsewhere: it has to run as it is written."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from smallapi import JOBS, SmallAPI

import openshift_ai_sdk.training as sdk
from openshift_ai_sdk.training import InvalidJobError, JobStatus, LogLine, Logs, TrainingClient

TAGS_MISSING = "no line of mpijob/train is tagged"


def make(client: Any, small: SmallAPI, name: str = "train", **options: Any) -> Any:
    return client.create_job(name, **{"container_image": "image", "command": "train.py", **options})


def test_the_example_of_a_job(small: SmallAPI, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    cluster = TrainingClient(configuration=small.configuration())
    monkeypatch.setattr("openshift_ai_sdk.training.client.default_client", lambda: cluster)
    from openshift_ai_sdk.training import MPIJob, ResourceRequirements

    job = MPIJob(
        name="pytorch-distributed",
        namespace="default",
        workers=4,
        image="quay.io/my-org/pytorch-horovod:latest",
        command=["mpirun", "python", "train.py", "--epochs", "10"],
        resources=ResourceRequirements(cpu=8, memory="64Gi", gpu=1),
        volume_mounts=[{"name": "training-data", "mountPath": "/data"}],
    )
    job.create()
    small.report(job, "Running")
    status = job.get_status()
    assert status not in ["Succeeded", "Failed"]
    small.report(job, "Succeeded")
    small.pod(job, "pytorch-distributed-launcher-x", ["Rank 0", "Rank 1"])
    small.pod(job, "pytorch-distributed-worker-0", [AGENT])

    final_status = job.wait_for_completion(timeout=7200)
    assert final_status == "Succeeded" and final_status in ["Succeeded", "Failed"]
    assert f"Job completed with status: {final_status}" == "Job completed with status: Succeeded"

    logs = job.get_logs()
    with pytest.warns(UserWarning, match="no line of mpijob/pytorch-distributed is tagged"):
        worker_logs = job.get_logs(worker_index=0)
    assert "Rank 0" in logs and "Rank 7" not in logs
    assert str(worker_logs) == "Rank 0\nRank 1"


def test_arguments_by_position(face: Any) -> None:
    mounts = [{"name": "data", "mountPath": "/data"}]
    job = face.MPIJob("train", "ns", 2, "image", ["train"], {"cpu": 1}, mounts, {"A": "1"}, {"disk": "fast"})
    worker = job.manifest["spec"]["mpiReplicaSpecs"]["Worker"]
    spec = worker["template"]["spec"]
    assert (worker["replicas"], spec["nodeSelector"]) == (2, {"disk": "fast"})
    assert spec["containers"][0]["env"] == [{"name": "A", "value": "1"}]


def test_a_status_is_equal_to_its_phase() -> None:
    status = JobStatus(kind="MPIJob", name="a", namespace="b", phase="Running")
    assert status == "Running" and status != "Succeeded" and status == sdk.Phase.RUNNING
    assert status in {"Running"} and status == status.model_copy() and status != status.model_copy(update={"name": "x"})
    assert JobStatus(kind="MPIJob", name="a", namespace="b") not in ("", None, "None")


def test_text_is_searched_for_in_logs() -> None:
    line = LogLine("epoch 1 loss 0.5", "pod", "launcher")
    logs = Logs([line, LogLine("epoch 2", "pod", "launcher")])
    assert "loss" in logs and "1 loss 0.5\nepoch" in logs and "accuracy" not in logs and line in logs and 3 not in logs


def test_an_update_takes_the_names_of_create_job(small_client: Any, small: SmallAPI) -> None:
    make(small_client, small, "failed-job")
    job = small_client.update_job(name="failed-job", container_image="quay.io/company/custom-mpi:latest")
    assert job.name == "failed-job-2"
    job = small_client.update_job(
        "failed-job",
        num_workers=3,
        num_procs_per_worker=2,
        resources_per_worker={"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"},
    )
    spec = small.objects[f"{JOBS}/failed-job-3"]["spec"]
    worker = spec["mpiReplicaSpecs"]["Worker"]
    limits = worker["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert (worker["replicas"], spec["slotsPerWorker"]) == (3, 2)
    assert limits == {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"container_image": "a", "image": "b"}, "container_image: is given twice, as image, too"),
        ({"num_workers": 0}, "workers: 0 is not allowed"),
        ({"resources_per_worker": {"cpu": "x"}}, "resources_per_worker"),
        ({"resources_per_worker": 4}, "resources_per_worker: 4 is not allowed"),
        ({"resources_per_worker": {"rdma/hca": 1}}, "resources_per_worker: can change cpu, memory"),
        ({"container_imag": "a"}, "container_imag: cannot be changed"),
    ],
)
def test_an_update_that_is_wrong_is_told(changes: Any, message: str, small_client: Any, small: SmallAPI) -> None:
    with pytest.raises(InvalidJobError, match=message):
        small_client.update_job("train", **changes)
    assert small.requests == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"worker": 4}, "worker: is not an option; did you mean workers"),
        ({"num_workers": 4}, "num_workers: is not an option; use workers"),
        ({"xyz": 4, "workers": 0}, "workers: 0 is not allowed"),
    ],
)
def test_an_option_that_does_not_exist_is_told(options: Any, message: str, face: Any) -> None:
    with pytest.raises(InvalidJobError, match=message) as caught:
        face.MPIJob("x", image="image", command="train", **options)
    assert len(caught.value.problems) == len(options)


def test_kinds_of_before_are_explained(face: Any, small_client: Any) -> None:
    with pytest.raises(InvalidJobError, match="use one of MPIJob, TrainJob; in Kubeflow Trainer it is a TrainJob with"):
        small_client.create_job("score", job_kind="PyTorchJob", container_image="image", command="score.py")


def test_yaml_without_a_job_is_told(face: Any) -> None:
    with pytest.raises(InvalidJobError, match="'hello' is no job; use YAML of a job, or the path of a file"):
        face.MPIJob.from_yaml("hello")
    with pytest.raises(InvalidJobError, match="the text has 2 documents; use one, with one job"):
        face.MPIJob.from_yaml("a: 1\n---\nb: 1\n")


AGENT = json.dumps(
    {"time": "2026-01-02T10:00:00Z", "level": "INFO", "msg": "rank started", "logger": "mpi-agent", "rank": 1},
    separators=(",", ":"),
)
AGENT_FAILS = AGENT.replace("INFO", "ERROR")
REST = [AGENT_FAILS, "of worker 1"]


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize(
    ("workers", "options", "lines", "wanted", "warns"),
    [
        (2, {}, ["start", "[1,0]<stdout>:zero", "[1,1]<stdout>:one"], ["one", *REST], False),
        (2, {"command": "mpirun train"}, ["start", "some"], ["start", "some", *REST], True),
        (2, {"command": "mpirun --tag-output train"}, ["start", "[1,1]<stdout>:one"], ["one", *REST], False),
    ],
)
def test_the_lines_of_a_worker(
    follow: bool, workers: int, options: Any, lines: Any, wanted: Any, warns: bool, small_client: Any, small: SmallAPI
) -> None:
    job = make(small_client, small, num_workers=workers, **options)
    small.report(job, "Running" if follow else "Succeeded")
    small.pod(job, "train-launcher-x", lines)
    small.pod(job, "train-worker-0", [AGENT, "of worker 0"])
    small.pod(job, "train-worker-1", [AGENT, AGENT_FAILS, "of worker 1"])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if follow:
            found = []
            for line in job.get_logs(worker_index=1, follow=True):
                found.append(line.text)
                if len(found) == len(wanted):
                    small.report(job, "Succeeded")
        else:
            found = [line.text for line in job.get_logs(worker_index=1)]
    assert sorted(found) == sorted(wanted)
    assert any(TAGS_MISSING in str(each.message) for each in warned) == warns


def test_one_worker_has_all_ranks(small_client: Any, small: SmallAPI, recwarn: Any) -> None:
    job = make(small_client, small, num_workers=1, command="mpirun train", num_procs_per_worker=2)
    small.report(job, "Succeeded")
    small.pod(job, "train-launcher-x", ["first", "second"])
    assert str(job.get_logs(worker_index=0)) == "first\nsecond"
    assert not [each for each in recwarn if TAGS_MISSING in str(each.message)]


def test_ranks_that_are_unknown_are_told(small_client: Any, small: SmallAPI) -> None:
    job = make(small_client, small, num_workers=2, command="mpirun train")
    small.report(job, "Succeeded")
    small.pod(job, "train-launcher-x", ["first", "second"])
    with pytest.warns(UserWarning, match="is tagged with its rank, so that none is selected"):
        assert len(job.get_logs(ranks=0)) == 0
