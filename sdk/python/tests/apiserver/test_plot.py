"""What a training has reported and what its pods use, as values and plotted."""

from __future__ import annotations

from typing import Any

import pytest
from servers import Operator

from openshift_ai_sdk.training import NotSupportedError, _usage


def test_history_and_plot_of_a_training(client: Any, operator: Operator) -> None:
    job = client.create_job("train", container_image="image", command="x")
    operator.report(job, "Running")
    log = operator.pod(job, "train-launcher-abc", "succeeded")
    for epoch in range(1, 4):
        log.say(f'[1,0]<stdout>:{{"epoch": {epoch}, "loss": {1 / epoch}, "accuracy": {1 - 0.3 / epoch}}}')
    log.end()
    history = job.get_training_history()
    assert [(point.epoch, point.accuracy) for point in history] == [(1, 0.7), (2, 0.85), (3, 0.9)]
    with pytest.raises(NotSupportedError, match="no metrics server"):
        job.get_usage()
    plotted = job.plot()
    loss, accuracy = plotted.figure.subfigs[0].axes
    assert list(loss.lines[0].get_xdata()) == [1, 2, 3]
    assert list(accuracy.lines[0].get_ydata()) == [0.7, 0.85, 0.9]
    assert plotted._repr_png_().startswith(b"\x89PNG")


def test_use_of_a_job_that_runs(client: Any, operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    # The API server has no metrics server behind it: another group has objects of the same form.
    served = _usage.Resource("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", "trainingruntimes")
    monkeypatch.setattr(_usage, "POD_METRICS", served)
    job = client.create_job("train", container_image="image", command="x")
    operator.report(job, "Running")
    operator.pod(job, "train-worker-0").end()
    labels = {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "train"}
    usage = {"cpu": "1500000000n", "memory": "2097152Ki"}
    place = ("trainer.kubeflow.org", "v1alpha1", operator.namespace, "trainingruntimes")
    metrics = {
        "apiVersion": served.api_version,
        "kind": served.kind,
        "containers": [{"name": "worker", "usage": usage}],
    }
    operator.custom.create_namespaced_custom_object(
        *place, {**metrics, "metadata": {"name": "train-worker-0", "labels": labels}}
    )
    (pod,) = job.get_usage()
    assert (pod.pod, pod.cpu, pod.memory, pod.cpu_requested) == ("train-worker-0", pytest.approx(1.5), 2 << 30, 0)
    used = job.plot().figure.subfigs[1].axes[0]
    assert [bar.get_width() for bar in used.patches] == [0, pytest.approx(1.5)]


def test_plot_of_a_deleted_job(client: Any, operator: Operator) -> None:
    job = client.create_job("train", container_image="image", command="x")
    metrics = [
        {"metric": "CPU", "mean": 2000, "p95": 3900, "max": 3990, "limit": 4000, "points": [500, -1, 3500]},
        {"metric": "Memory", "mean": 1024, "p95": 2048, "max": 2048},
    ]
    minute = "2026-01-02T10:0{}:00Z"
    figures = [{"name": "loss", "by": "Step", "width": 1, "at": [10, 20], "values": ["2.5", "0.5"]}]
    operator.report(
        job,
        "Succeeded",
        curves={"until": minute.format(3), "figures": figures},
        usage={
            **{"since": minute.format(0), "until": minute.format(3), "pointsSince": minute.format(0)},
            **{"pointSeconds": 60, "pods": 1, "metrics": metrics},
        },
    )
    job.cancel()
    progress, used = client.get_job("train").plot().figure.subfigs
    (loss,) = progress.axes
    assert (list(loss.lines[0].get_xdata()), list(loss.lines[0].get_ydata())) == ([10, 20], [2.5, 0.5])
    cores, memory = used.axes
    assert list(cores.lines[0].get_ydata()) == [0.5, pytest.approx(float("nan"), nan_ok=True), 3.5]
    assert list(cores.lines[1].get_ydata()) == [4, 4]
    assert list(memory.lines[0].get_ydata()) == [1, 1]
