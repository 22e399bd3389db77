"""Real training on a real cluster, through both faces of the SDK."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from examples import python_in
from kubernetes import client

from openshift_ai_sdk.training import JobNotFoundError, Logs, MPIJob, MPIJobFailed, TrainingClient, aio, train

ROOT = Path(__file__).resolve().parents[4]
IMAGE = os.environ.get("SAMPLE_IMG", "odh/mpi-sample-openmpi:dev")
LIMIT = "5m"


def epochs(logs: Logs) -> list[dict[str, Any]]:
    return [json.loads(line.text) for line in logs if line.text.startswith("{") and '"accuracy"' in line.text]


def check_training(logs: Logs, ranks: int) -> None:
    """The reference training has to reach its accuracy."""
    trained = epochs(logs)
    assert [entry["epoch"] for entry in trained] == list(range(1, 11)), str(logs)
    assert trained[-1]["ranks"] == ranks
    assert trained[-1]["loss"] < trained[0]["loss"] / 2
    assert trained[-1]["accuracy"] >= 0.9


def test_reference_training_with_open_mpi(project: str) -> None:
    job = MPIJob("train", project, workers=4, image=IMAGE, command="train.py --epochs 10", run_as_user=1000).create()
    status = job.wait_for_completion(timeout=LIMIT)
    check_training(job.get_logs(), ranks=4)
    assert status.mpi.ranks == 4
    assert next(event.name for event in job.stream_events()) == "Created"


def test_reference_training_with_mpich_and_asyncio(project: str) -> None:
    async def run() -> tuple[Logs, list[str], list[str]]:
        async with aio.TrainingClient(project) as cluster:
            job = await cluster.create_job(
                "train",
                container_image=IMAGE.replace("openmpi", "mpich"),
                command="train --epochs 10",
                num_workers=2,
                num_procs_per_worker=2,
                mpi_implementation="MPICH",
                run_as_user=1000,
            )

            async def follow() -> Logs:
                return Logs([line async for line in await job.get_logs(follow=True)])

            async def watch() -> list[str]:
                return [event.name async for event in job.stream_events()]

            phases: list[str] = []
            logs, events, _ = await asyncio.gather(
                follow(),
                watch(),
                job.wait_for_completion(timeout=LIMIT, on_phase=lambda status: phases.append(str(status.phase))),
            )
            return logs, events, phases

    logs, events, phases = asyncio.run(run())
    check_training(logs, ranks=4)
    assert (events[0], events[-1], phases[-1]) == ("Created", "Succeeded", "Succeeded")


def test_reference_training_with_a_runtime_which_kubeflow_sees(project: str, api: client.ApiClient) -> None:
    install_runtime(api, project)
    with TrainingClient(project) as cluster:
        job = MPIJob("train", workers=4, runtime="mpi", command="train.py --epochs 10", client=cluster).create()
        job.wait_for_completion(timeout=LIMIT)
        check_training(job.get_logs(), ranks=4)

    from kubeflow.trainer import KubernetesBackendConfig, TrainerClient

    upstream = TrainerClient(KubernetesBackendConfig(namespace=project))
    assert [(each.name, each.status) for each in upstream.list_jobs()] == [("train", "Complete")]
    found = upstream.get_job("train")
    assert (found.status, found.num_nodes, found.runtime.name) == ("Complete", 4, "mpi")
    assert any('"epoch": 10' in line for line in upstream.get_job_logs("train"))


def install_runtime(api: client.ApiClient, project: str) -> None:
    """Put the runtime for Open MPI into a project, with this cluster's images."""
    folder = ROOT / "config" / "runtimes" / "kubernetes"
    kubectl = ROOT / "bin" / "kubectl"
    command = [str(kubectl) if kubectl.exists() else "kubectl", "kustomize", str(folder)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    text = text.replace("quay.io/opendatahub/mpijob-agent:latest", os.environ.get("AGENT_IMG", "odh/mpijob-agent:dev"))
    text = text.replace("quay.io/opendatahub/mpi-sample-openmpi:latest", IMAGE)
    runtime = next(each for each in yaml.safe_load_all(text) if each["metadata"]["name"] == "mpi-openmpi")
    runtime["kind"] = "TrainingRuntime"
    runtime["metadata"].update(name="mpi", namespace=project)
    client.CustomObjectsApi(api).create_namespaced_custom_object(
        "trainer.kubeflow.org", "v1alpha1", project, "trainingruntimes", runtime
    )


def test_a_runtime_is_created_tested_changed_and_deleted(project: str) -> None:
    """The schemas and webhooks of the installed Kubeflow Trainer accept what the SDK writes, and its jobs run."""
    with TrainingClient(project) as cluster:
        made = cluster.create_runtime("mine", image=IMAGE, slots=2, max_workers=3, run_as_user=1000)
        assert (made.name, made.slots, made.max_workers) == ("mine", 2, "3")

        test = cluster.test_runtime("mine", cpu=0.1, memory="128Mi", timeout=LIMIT)
        assert test.passed, test
        assert test.latency is not None
        assert 0 < test.latency < 1

        job = MPIJob("two", workers=2, runtime="mine", command="mpirun ranks", client=cluster).create()
        job.wait_for_completion(timeout=LIMIT)
        assert job.get_status().mpi.ranks == 4, "the runtime has two slots"

        cluster.update_runtime("mine", slots=1)
        job = MPIJob("one", workers=2, runtime="mine", command="mpirun ranks", client=cluster).create()
        job.wait_for_completion(timeout=LIMIT)
        assert job.get_status().mpi.ranks == 2, "the runtime has one slot now"

        cluster.delete_runtime("mine")
        with pytest.raises(JobNotFoundError):
            cluster.get_runtime("mine")


def greet(greeting: str) -> None:
    from mpi4py import MPI

    print(f"{greeting} from rank {MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size}", flush=True)


def test_a_function_runs_in_every_rank(project: str) -> None:
    job = train(greet, {"greeting": "Hello"}, name="hello", namespace=project, image=IMAGE, workers=2, run_as_user=1000)
    job.wait_for_completion(timeout=LIMIT)
    printed = sorted(line.text for line in job.get_logs() if "Hello" in line.text)
    assert printed == ["Hello from rank 0 of 2", "Hello from rank 1 of 2"]


def test_a_failure_has_a_cause_a_rank_and_remedies(project: str) -> None:
    command = "mpirun -n 2 sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then echo oh no >&2; exit 7; fi; sleep 60'"
    job = MPIJob("fails", project, workers=2, image=IMAGE, command=command, run_as_user=1000).create()
    with pytest.raises(MPIJobFailed) as failed:
        job.wait_for_completion(timeout=LIMIT)
    failure = failed.value
    assert failure.cause is not None and failure.remedies
    assert failure.rank == 1 and failure.pod == "fails-worker-1"
    assert any("oh no" in line for line in failure.log_tail)
    job.delete(wait=True, timeout=LIMIT)
    assert "oh no" in str(MPIJob.get("fails", project).get_logs())


def test_suspend_resume_clone_and_cancel(project: str) -> None:
    job = MPIJob("long", project, workers=2, image=IMAGE, command="sleep 600", run_as_user=1000).create()
    job.wait_for_phase("Running", timeout=LIMIT)
    job.suspend()
    job.wait_for_phase("Suspended", timeout=LIMIT)
    job.resume()
    events = []
    for event in job.stream_events():
        events.append(event.name)
        if events.count("Running") == 2:
            break
    assert "Suspended" in events and "Resumed" in events
    again = job.clone(command="mpirun -n 2 true")
    job.cancel(grace_period=1)
    assert again.wait_for_completion(timeout=LIMIT).phase == "Succeeded"
    assert job.wait_for_phase("Failed", timeout=LIMIT).reason == "JobDeleted"


def test_the_lines_that_make_run_prints(project: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (ROOT / "config" / "samples" / "pi.py").read_text()
    assert len(lines.splitlines()) == 5
    exec(lines.replace("mpijob-demo", project).replace("odh/mpi-sample-openmpi:dev", IMAGE), {})
    printed = capsys.readouterr().out
    assert "pi is approximately 3.14159265" in printed and "rank 3 of 4 on pi-from-python-worker-3" in printed


def test_the_example_of_the_readme(project: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = python_in("README.md", "Run a job in three ways")
    for before, after in (('"odh/mpi-sample-openmpi:dev"', f'"{IMAGE}"'), ('"mpijob-demo"', f'"{project}"')):
        assert before in lines
        lines = lines.replace(before, after)
    exec(lines, {})
    assert "pi is approximately 3.14159265" in capsys.readouterr().out
