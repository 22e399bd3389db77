"""Reports the figures of a training from inside a job, in a line that the operator reads."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import threading
from collections.abc import Mapping
from typing import SupportsFloat

# The variables in which launchers pass the rank of a process, and the one without which it is none, if there is one:
# Open MPI, PMIx, MPICH and Intel MPI, Horovod with Gloo, and torchrun and DeepSpeed. The agent has the same list
# (mpirun.go).
RANK_VARIABLES = (
    ("OMPI_COMM_WORLD_RANK", ""),
    ("PMIX_RANK", ""),
    ("PMI_RANK", ""),
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("RANK", "WORLD_SIZE"),
)
ROLE_VARIABLE = "K_MPI_JOB_ROLE"
# The variables of which each container of a job has one: those of MPIJobs, of TrainJobs with MPI, and of all TrainJobs,
# whose pods are those of indexed Jobs.
JOB_VARIABLES = (ROLE_VARIABLE, "MPI_AGENT_KEY", "JOB_COMPLETION_INDEX")
# The kubelet sets this one in every container, and writes this file.
POD_VARIABLE = "KUBERNETES_SERVICE_HOST"
HOSTS_FILE = "/etc/hosts"
NAME = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)

_lock = threading.Lock()


def report(
    *, step: SupportsFloat | None = None, epoch: SupportsFloat | None = None, **figures: SupportsFloat | None
) -> None:
    """Report figures of the training, such as its loss, so that the record of the job has them as curves.

    Call it on every rank: rank 0 prints one line of JSON, and the others nothing, so that the curves have the values of
    rank 0. Pass the mean of all ranks where they differ. Outside of a job, it does nothing. It never raises an error
    for a value: what is no number is left out.

    Args:
        step: The step of the training, counted from its start.
        epoch: The epoch, which may have a fraction.
        figures: The figures by their names, such as ``loss=0.41``: numbers, or what ``float()`` accepts, such as a
            tensor with one element. The record keeps eight names of at most 32 lower-case letters, digits and
            underscores.

    Raises:
        ValueError: A name has other characters, or is too long.

    Example:
        >>> from openshift_ai_sdk.training import report
        >>> report(step=1200, loss=0.41, accuracy=0.87)  # outside of a job: nothing
    """
    for name in figures:
        if not NAME.fullmatch(name):
            raise ValueError(
                f"{name}: is not allowed; use at most 32 lower-case letters, digits and underscores, a letter first"
            )
    if not prints(os.environ):
        return
    values = {"step": step, "epoch": epoch, **figures}
    numbers = {name: number for name, value in values.items() if (number := _number(value)) is not None}
    line = json.dumps({"training": numbers})
    with _lock:
        # One write, with its line break before other output of this process.
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def prints(environment: Mapping[str, str]) -> bool:
    """Return whether the process is the one of a job that reports: rank 0, or a launcher without ranks."""
    if not _is_in_job(environment):
        return False
    # Under torchrun, the variables of the mpirun that has started it are those of another process.
    for variable, needed in RANK_VARIABLES[-1:] if environment.get("TORCHELASTIC_RUN_ID") else RANK_VARIABLES:
        rank = environment.get(variable)
        if rank and (not needed or environment.get(needed)):
            return rank == "0"
    return environment.get(ROLE_VARIABLE) == "launcher"


def _is_in_job(environment: Mapping[str, str]) -> bool:
    """Return whether the process runs in a pod of a job."""
    if any(variable in environment for variable in JOB_VARIABLES):
        return True
    # What sshd starts for a rank has no variables of the container.
    return POD_VARIABLE not in environment and _is_in_pod()


def _is_in_pod() -> bool:
    try:
        with open(HOSTS_FILE, encoding="utf-8", errors="replace") as hosts:
            return hosts.readline().startswith("# Kubernetes-managed hosts file")
    except OSError:
        return False


def _number(value: object) -> float | int | str | None:
    """Return a value as JSON has it: numbers that are none as text; None for what is no number."""
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
    if not math.isfinite(number):
        return str(number)
    return int(number) if number.is_integer() and abs(number) < 1e15 else number
