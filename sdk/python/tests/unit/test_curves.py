"""Curves in the record of a job, and the figures that a program reports."""

from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from openshift_ai_sdk.training import JobStatus, _curves, _report, _training_history, report


def status_of(**fields: Any) -> JobStatus:
    return JobStatus.model_validate({"kind": "MPIJob", "name": "pi", "namespace": "ns", "phase": "Running", **fields})


def test_a_job_without_figures_has_no_curves() -> None:
    assert _curves.curves(status_of()) == {}


def test_curves_have_the_places_and_values_of_the_record() -> None:
    figures = [
        {"name": "loss", "by": "Step", "width": 1, "at": [10, 20], "values": ["2.31", "NaN"], "notFiniteAt": 20},
        {"name": "accuracy", "by": "Epoch", "width": 1, "at": [500], "values": ["0.875"]},
        {"name": "throughput", "by": "Time", "width": 1, "at": [1700000000], "values": ["Inf"]},
        {"name": "none", "by": "Step", "width": 1},
    ]
    curves = _curves.curves(status_of(curves={"until": "2026-11-26T12:00:00.123456Z", "figures": figures}))
    assert list(curves) == ["loss", "accuracy", "throughput"]
    assert curves["loss"].by == "step" and curves["loss"].points[0] == (10, 2.31) and math.isnan(curves["loss"].latest)
    assert curves["accuracy"].points == ((0.5, 0.875),)
    assert curves["throughput"].points == ((datetime.fromtimestamp(1700000000, timezone.utc), math.inf),)


class Tensor:
    def __float__(self) -> float:
        return 0.25


TRAIN_JOB = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "0"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "4"}
IN_A_POD = "# Kubernetes-managed hosts file.\n127.0.0.1 localhost\n"
IN_A_JOB = {"K_MPI_JOB_ROLE": "worker", "OMPI_COMM_WORLD_RANK": "0"}


def printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, env: dict[str, str], **values: Any
) -> str:
    of_ranks = [name for names in _report.RANK_VARIABLES for name in names if name]
    for name in (*of_ranks, *_report.JOB_VARIABLES, _report.POD_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    report(**values)
    return capsys.readouterr().out


def test_rank_0_prints_a_line_that_is_read_as_by_the_operator(capsys: Any, monkeypatch: Any) -> None:
    line = printed(
        capsys, monkeypatch, IN_A_JOB, step=1200, epoch=2.5, loss=Tensor(), grad_norm=math.nan, note="x", none=None
    )
    assert line.endswith("}\n") and line.count("\n") == 1
    assert json.loads(line) == {"training": {"step": 1200, "epoch": 2.5, "loss": 0.25, "grad_norm": "nan"}}
    assert _training_history.parse(line) == {"step": "1200", "epoch": "2.5", "loss": "0.25"}


@pytest.mark.parametrize(
    ("env", "prints"),
    [
        ({}, False),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, False),
        (IN_A_JOB, True),
        ({"K_MPI_JOB_ROLE": "worker", "OMPI_COMM_WORLD_RANK": "1"}, False),
        ({"K_MPI_JOB_ROLE": "worker"}, False),
        ({"K_MPI_JOB_ROLE": "launcher"}, True),
        (TRAIN_JOB | {"PMI_RANK": "0"}, True),
        (TRAIN_JOB | {"PMI_RANK": "3"}, False),
        (TRAIN_JOB | TORCHRUN | {"OMPI_COMM_WORLD_RANK": "0", "RANK": "0"}, True),
        (TRAIN_JOB | TORCHRUN | {"OMPI_COMM_WORLD_RANK": "0", "RANK": "3"}, False),
        (TRAIN_JOB | TORCHRUN | {"OMPI_COMM_WORLD_RANK": "1", "RANK": "0"}, True),
        (TRAIN_JOB | {"OMPI_COMM_WORLD_RANK": "1", "RANK": "0", "WORLD_SIZE": "2"}, False),
        # Horovod with Gloo sets no variables of MPI, and a rank without a number of ranks is none.
        ({"K_MPI_JOB_ROLE": "worker", "HOROVOD_RANK": "0", "HOROVOD_SIZE": "2"}, True),
        ({"K_MPI_JOB_ROLE": "worker", "HOROVOD_RANK": "1", "HOROVOD_SIZE": "2"}, False),
        ({"K_MPI_JOB_ROLE": "launcher", "HOROVOD_RANK": "1", "HOROVOD_SIZE": "2"}, False),
        ({"K_MPI_JOB_ROLE": "worker", "HOROVOD_RANK": "0"}, False),
        ({"K_MPI_JOB_ROLE": "worker", "RANK": "0"}, False),
        ({"K_MPI_JOB_ROLE": "launcher", "RANK": "1"}, True),
        ({"JOB_COMPLETION_INDEX": "0", "RANK": "0", "WORLD_SIZE": "2"}, True),
        ({"MPI_AGENT_KEY": "/etc/mpi-agent/id_rsa", "PMIX_RANK": "0"}, True),
        # Outside of a job: mpirun and torchrun on a workstation, and in a workbench.
        ({"PMI_RANK": "0"}, False),
        ({"RANK": "0", "WORLD_SIZE": "2"}, False),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "OMPI_COMM_WORLD_RANK": "0"}, False),
    ],
)
def test_only_one_process_of_a_job_prints(capsys: Any, monkeypatch: Any, env: dict[str, str], prints: bool) -> None:
    monkeypatch.setattr(_report, "HOSTS_FILE", "/does/not/exist")
    assert bool(printed(capsys, monkeypatch, env, step=1, loss=0.5)) is prints


@pytest.mark.parametrize(
    ("env", "hosts", "prints"),
    [
        ({"OMPI_COMM_WORLD_RANK": "0"}, IN_A_POD, True),
        ({"OMPI_COMM_WORLD_RANK": "1"}, IN_A_POD, False),
        ({"OMPI_COMM_WORLD_RANK": "0", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, IN_A_POD, False),
        ({"OMPI_COMM_WORLD_RANK": "0"}, "127.0.0.1 localhost\n", False),
        ({"OMPI_COMM_WORLD_RANK": "0"}, "", False),
    ],
)
def test_rank_0_that_sshd_started_prints(
    capsys: Any, monkeypatch: Any, tmp_path: Path, env: dict[str, str], hosts: str, prints: bool
) -> None:
    (tmp_path / "hosts").write_text(hosts)
    monkeypatch.setattr(_report, "HOSTS_FILE", str(tmp_path / "hosts"))
    assert bool(printed(capsys, monkeypatch, env, step=1, loss=0.5)) is prints


@pytest.mark.parametrize("name", ["Loss", "", "a b", "x" * 33, "1st"])
def test_names_that_the_record_cannot_have_are_refused_everywhere(capsys: Any, monkeypatch: Any, name: str) -> None:
    for env in ({}, IN_A_JOB):
        with pytest.raises(ValueError, match="is not allowed"):
            printed(capsys, monkeypatch, env, **{name: 1.0})
