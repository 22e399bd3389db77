"""Copies of jobs, and jobs that are created again."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from smallapi import JOBS, RUNTIMES, SmallAPI

from openshift_ai_sdk.training import InvalidJobError, _clone

TESTDATA = Path(__file__).resolve().parents[4] / "internal" / "jobs" / "testdata"
GOLDEN = TESTDATA / "clone_output.json"
PATCHES: Any = yaml.safe_load((TESTDATA / "pod_patches.yaml").read_text())

HELD = "mpi.opendatahub.io/suspend-in-queue"


def held(client: Any, small: SmallAPI) -> Any:
    """Return a job that its user has suspended in its queue."""
    job = client.create_job("train", container_image="image", command="train.py", queue="team")
    manifest = job.manifest
    manifest["spec"]["runPolicy"]["suspend"] = True
    small.put(JOBS, {**manifest, "metadata": {**manifest["metadata"], "annotations": {HELD: "true", "note": "kept"}}})
    return client.get_job("train")


def test_a_clone_is_not_suspended_in_its_queue(small_client: Any, small: SmallAPI) -> None:
    clone = held(small_client, small).clone()
    assert clone.manifest["metadata"]["annotations"] == {"note": "kept"}
    assert "suspend" not in clone.manifest["spec"]["runPolicy"]


def test_a_job_that_is_created_again_stays_suspended(small_client: Any, small: SmallAPI) -> None:
    job = held(small_client, small)
    job.delete()
    again = job.create()
    assert again.manifest["metadata"]["annotations"] == {HELD: "true", "note": "kept"}
    assert again.manifest["spec"]["runPolicy"]["suspend"] is True


def test_a_clone_of_an_admitted_job_is_placed_as_its_user_wrote_it(small_client: Any, small: SmallAPI) -> None:
    job = small_client.create_job(
        "train", container_image="image", command="train.py", queue="team", node_selector={"disk": "ssd"}
    )
    small.report(job, "Running", specification={"version": "1", "manifest": yaml.safe_dump(job.manifest)})
    admitted = deepcopy(job.manifest)
    for role in admitted["spec"]["mpiReplicaSpecs"].values():
        role["template"]["spec"]["nodeSelector"] = {"disk": "ssd", "flavor": "spot"}
        role["template"]["spec"]["tolerations"] = [{"key": "spot", "operator": "Exists"}]
    small.put(JOBS, admitted)
    clone = small_client.get_job("train").clone()
    for role in clone.manifest["spec"]["mpiReplicaSpecs"].values():
        pod = role["template"]["spec"]
        assert pod["nodeSelector"] == {"disk": "ssd"}
        assert "tolerations" not in pod


@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text()), ids=lambda case: case["name"])
def test_a_clone_has_its_own_folder_for_results(case: dict[str, Any]) -> None:
    spec = deepcopy(case["spec"])
    _clone.rename_output(spec, "train", "copy")
    assert spec == case["want"]


def folders(job: Any) -> set[str]:
    return {each["subPath"] for each in _clone.objects_in(job.manifest) if "subPath" in each}


def test_a_clone_writes_results_where_it_is_told_to(small_client: Any) -> None:
    job = small_client.create_job("train", container_image="image", command="train.py", output_dir="results:/results")
    assert folders(job) == {"train"} and folders(job.clone()) == {"train-2"}
    roles = {
        f"spec.mpiReplicaSpecs.{role}.template.spec.containers[0].volumeMounts[0].subPath": "train"
        for role in ("Launcher", "Worker")
    }
    assert folders(job.clone(**roles)) == {"train"}


def test_ranks_follow_the_workers_of_a_clone_with_other_flags(small_client: Any) -> None:
    job = small_client.create_job("train", container_image="image", command="train.py", num_workers=2)
    clone = job.clone(workers=4, mpi_flags="--bind-to core", node_selector={"gpu": "a100"})
    launcher, worker = (role["template"]["spec"] for role in clone.manifest["spec"]["mpiReplicaSpecs"].values())
    words = ["mpirun", "--tag-output", "--bind-to", "core", "-n", "4", "train.py"]
    assert launcher["containers"][0]["command"] == words
    assert launcher["nodeSelector"] == worker["nodeSelector"] == {"gpu": "a100"}


def test_pods_of_a_cloned_trainjob_are_those_of_its_runtime(small_client: Any, small: SmallAPI) -> None:
    small.put(RUNTIMES, PATCHES["runtime"])
    schema: Any = {"metadata": {"name": "v1alpha1"}, "fields": ["runtimePatches"]}
    small.put("/openapi/v3/apis/trainer.kubeflow.org", schema)
    job = small_client.create_job("train", job_kind="TrainJob", runtime="torch", command="train.py")
    clone = job.clone(node_selector={"pool": "mpi"}, output_dir="results:/results")
    (patch,) = clone.manifest["spec"]["runtimePatches"]
    jobs = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    pods = {each["name"]: each["template"]["spec"]["template"]["spec"] for each in jobs}
    assert {name: pod["nodeSelector"] for name, pod in pods.items()} == {
        name: {"pool": "mpi"} for name in ("node", "dataset-initializer", "model-initializer")
    }
    assert [name for name, pod in pods.items() if "containers" in pod] == ["node"]
    assert folders(clone) == {"train-2"}
    for change in ({"connections": ["store"]}, {"retries": 2}, {"workdir": "/app"}):
        with pytest.raises(InvalidJobError, match="cannot be combined with runtime torch"):
            job.clone(**change)
