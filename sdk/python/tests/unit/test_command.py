"""Commands are read as the command line reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openshift_ai_sdk.training import MPIJob, _command, _program

GOLDEN = Path(__file__).resolve().parents[4] / "internal" / "jobs" / "testdata" / "commands.json"
CASES = json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("case", CASES["parse"], ids=lambda case: case["text"])
def test_words(case: dict[str, Any]) -> None:
    assert _command.words_of(case["text"]) == case["want"]


@pytest.mark.parametrize("case", CASES["startsRanks"], ids=lambda case: " ".join(case["command"]))
def test_starts_ranks(case: dict[str, Any]) -> None:
    assert _command.starts_ranks(case["command"]) is case["want"]


def test_a_function_that_names_a_launcher_runs_on_all_ranks() -> None:
    def train() -> None:
        import deepspeed  # type: ignore[import-not-found] # what mpirun starts

        print(deepspeed)

    job = MPIJob("train", image="image", workers=4, command=_program.command_of(train))
    (container,) = job.manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    assert container["command"][:4] == ["mpirun", "--tag-output", "-n", "4"]
