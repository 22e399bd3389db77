"""Earlier jobs suggest what the command line shows."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from openshift_ai_sdk.training._advice import advise, duration_text, program_of, repository_of

GOLDEN = Path(__file__).resolve().parents[4] / "internal" / "jobs" / "testdata" / "advice.yaml"
CASES: list[dict[str, Any]] = yaml.safe_load(GOLDEN.read_text())


def reports_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"status": past["status"]} for past in case["past"] or [] for _ in range(past["jobs"])]


def test_the_cases_give_advice_and_none() -> None:
    assert {"advice" in case for case in CASES} == {True, False}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_advice_is_that_of_the_command_line(case: dict[str, Any]) -> None:
    assert advise(reports_of(case), case["job"], case["user"]) == case.get("advice", [])


def test_train_jobs_are_compared_with_those_of_their_runtime() -> None:
    case = next(case for case in CASES if case["name"] == "far more than is used")
    trainer = {
        "image": "quay.io/me/train:v3",
        "command": ["python", "train.py"],
        "numNodes": 4,
        "resourcesPerNode": {"limits": {"memory": "64Gi"}},
    }
    job = {"kind": "TrainJob", "spec": {"runtimeRef": {"name": "mpi"}, "trainer": trainer}}
    reports = deepcopy(reports_of(case))
    assert advise(reports, job, "ann") == []
    for report in reports:
        report["status"]["run"]["runtime"] = "mpi"
    assert advise(reports, job, "ann") == [case["advice"][0]]
    # A job does not name the image of its runtime. If the user is unknown, the jobs of all users count.
    del trainer["image"]
    assert advise(reports, job, "") == [case["advice"][0]]


def test_programs_and_images_are_identified() -> None:
    for command, program in {
        "mpirun -np 4 python train.py --epochs 3": "python train.py",
        "sh -c 'set -e; mpirun -n 2 -x NCCL_DEBUG=INFO /app/solve in.7'": "solve in.7",
        "deepspeed --hostfile=/etc/mpi/hostfile train.py --x 1": "train.py",
        "mpirun": "",
        "": "",
    }.items():
        assert program_of(command) == program
    for image, repository in {
        "quay.io/me/train:v1": "quay.io/me/train",
        "localhost:5000/train": "localhost:5000/train",
        "train@sha256:0123": "train",
        "localhost:5000/train:v1@sha256:0123": "localhost:5000/train",
    }.items():
        assert repository_of(image) == repository


def test_durations_are_those_of_kubectl() -> None:
    minute, hour, day = 60, 3600, 86400
    for seconds, text in {
        119: "119s",
        2 * minute: "2m",
        2 * minute + 5: "2m5s",
        179 * minute: "179m",
        3 * hour: "3h",
        3 * hour + 4 * minute: "3h4m",
        47 * hour: "47h",
        2 * day: "2d",
        2 * day + hour: "2d1h",
        8 * day + hour: "8d",
    }.items():
        assert duration_text(seconds) == text
