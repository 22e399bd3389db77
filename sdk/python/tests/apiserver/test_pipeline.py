"""The component for pipelines: compiled by KFP, and its program run against a real API server."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from kfp import compiler, dsl, local
from servers import Cluster, Operator, wait_until

from openshift_ai_sdk.training.kfp import mpijob_component


def test_the_component_compiles_into_a_pipeline(tmp_path: Path) -> None:
    run = mpijob_component("quay.io/me/sdk", ["openshift-ai-sdk"])

    @dsl.pipeline(name="train")
    def pipeline(workers: int = 4) -> float:
        first = run(name="first", image="quay.io/me/train", command="train.py", workers=workers)
        second = run(name="second", image="quay.io/me/train", command="evaluate.py").after(first)
        return second.outputs["accuracy"]

    compiler.Compiler().compile(pipeline, str(tmp_path / "pipeline.yaml"))
    compiled = next(yaml.safe_load_all((tmp_path / "pipeline.yaml").read_text()))
    tasks = compiled["root"]["dag"]["tasks"]
    assert tasks["run-mpijob-2"]["dependentTasks"] == ["run-mpijob"]
    assert set(compiled["components"]["comp-run-mpijob"]["outputDefinitions"]["parameters"]) == {
        "job",
        "accuracy",
        "loss",
    }


def run_component(cluster: Cluster, operator: Operator, folder: Path) -> subprocess.Popen[bytes]:
    """Run the component as KFP's launcher does: the compiled program in a process, with its input as JSON."""
    spec = mpijob_component("image").component_spec.implementation.container
    outputs = {name: {"outputFile": str(folder / name)} for name in ("job", "accuracy", "loss")}
    executor_input = {
        "inputs": {"parameterValues": {"name": "train", "image": "image", "command": "train.py", "workers": 2}},
        "outputs": {"parameters": outputs, "outputFile": str(folder / "output.json")},
    }
    program = spec.command[-1]
    source = folder / "component.py"
    source.write_text(program)
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig(folder / "config", namespace=operator.namespace))}
    arguments = ["--component_module_path", str(source), "--executor_input", json.dumps(executor_input)]
    command = [sys.executable, "-m", "kfp.dsl.executor_main", *arguments, "--function_to_execute", "run_mpijob"]
    return subprocess.Popen(command, env=environment)


def created(operator: Operator) -> dict[str, Any]:
    wait_until(lambda: operator.jobs() == ["train"], "the component has created its job")
    place = ("kubeflow.org", "v2beta1", operator.namespace, "mpijobs", "train")
    found: dict[str, Any] = operator.custom.get_namespaced_custom_object(*place)
    return found


def test_the_component_runs_a_job_and_returns_its_accuracy(
    cluster: Cluster, operator: Operator, tmp_path: Path
) -> None:
    process = run_component(cluster, operator, tmp_path)
    uid = created(operator)["metadata"]["uid"]
    training = {"accuracy": "0.97", "at": "2026-01-02T10:00:00Z"}
    operator.write_report("MPIJob", "train", uid, "Succeeded", training=training)
    assert process.wait(60) == 0
    written = json.loads((tmp_path / "output.json").read_text())["parameterValues"]
    assert (written["job"], written["accuracy"]) == ("train", 0.97)
    assert written["loss"] == sys.float_info.max


def test_the_step_fails_with_the_job(cluster: Cluster, operator: Operator, tmp_path: Path) -> None:
    process = run_component(cluster, operator, tmp_path)
    operator.write_report("MPIJob", "train", created(operator)["metadata"]["uid"], "Failed")
    assert process.wait(60) != 0


VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
MOUNTS = [{"name": "data", "mountPath": "/data"}]


def test_a_pipeline_runs_in_the_local_runner_of_kfp(
    cluster: Cluster, operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KFP compiles the pipeline and runs its steps in order: an MPIJob, and after it a TrainJob of PyTorch."""
    kubeconfig = cluster.kubeconfig(tmp_path / "config", namespace=operator.namespace)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    operator.custom.create_cluster_custom_object(
        "trainer.kubeflow.org",
        "v1alpha1",
        "clustertrainingruntimes",
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": operator.namespace},
            "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": []}}},
        },
    )
    run = mpijob_component("python:3.12", install_kfp_package=False)

    @dsl.pipeline(name="train")
    def pipeline(runtime: str) -> float:
        first = run(
            name="first",
            image="image",
            command="simulate.py",
            slots=2,
            connections=["store"],
            volumes=VOLUMES,
            volume_mounts=MOUNTS,
            retries=3,
            deadline="4h",
        )
        second = run(name="second", image="image", command="torchrun train.py", workers=2, runtime=runtime)
        second.after(first)
        return second.outputs["accuracy"]

    made: dict[str, dict[str, Any]] = {}
    order: list[str] = []

    def play_operator() -> None:
        for kind, group, version, plural, name in (
            ("MPIJob", "kubeflow.org", "v2beta1", "mpijobs", "first"),
            ("TrainJob", "trainer.kubeflow.org", "v1alpha1", "trainjobs", "second"),
        ):
            place = (group, version, operator.namespace, plural)
            names = lambda place=place: [  # noqa: E731
                item["metadata"]["name"] for item in operator.custom.list_namespaced_custom_object(*place)["items"]
            ]
            wait_until(lambda names=names, name=name: name in names(), f"the step creates {name}", 120)
            trainers = operator.custom.list_namespaced_custom_object(
                "trainer.kubeflow.org", "v1alpha1", operator.namespace, "trainjobs"
            )["items"]
            order.append(f"{name}, TrainJobs: {len(trainers)}")
            made[name] = operator.custom.get_namespaced_custom_object(*place, name)
            training = {"accuracy": "0.97", "at": "2026-01-02T10:00:00Z"}
            operator.write_report(kind, name, made[name]["metadata"]["uid"], "Succeeded", training=training)

    thread = threading.Thread(target=play_operator)
    thread.start()
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "outputs"))
    result = pipeline(runtime=operator.namespace)
    thread.join(60)
    assert result.output == 0.97
    assert order == ["first, TrainJobs: 0", "second, TrainJobs: 1"]
    spec = made["first"]["spec"]
    pods = spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert (pods["volumes"], pods["containers"][0]["volumeMounts"]) == (VOLUMES, MOUNTS)
    assert (spec["slotsPerWorker"], spec["runPolicy"]["backoffLimit"]) == (2, 3)
    assert spec["runPolicy"]["activeDeadlineSeconds"] == 4 * 3600
    assert made["first"]["metadata"]["annotations"]["opendatahub.io/connections"] == "store"
    # A runtime without MPI runs the command as it is.
    assert made["second"]["spec"]["trainer"]["command"] == ["torchrun", "train.py"]
