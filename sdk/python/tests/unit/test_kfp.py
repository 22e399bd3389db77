"""What a step of a pipeline takes and returns."""

import inspect
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

import openshift_ai_sdk.training
from openshift_ai_sdk.training import ResourceRequirements

pytest.importorskip("kfp")


class Done:
    """A job that has succeeded with some figures."""

    name = "train"
    training: Any = None
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, *args: Any, **options: Any) -> None:
        Done.options = {**dict(zip(("name", "namespace"), args, strict=True)), **options}

    def create(self) -> "Done":
        return self

    def wait_for_completion(self, **options: Any) -> Any:
        return SimpleNamespace(training=self.training)


@pytest.mark.parametrize(
    ("accuracy", "loss", "want"),
    [
        (None, None, (-1, sys.float_info.max)),
        ("0.97", "0.1", (0.97, 0.1)),
        ("97%", "1,234.5", (0.97, 1234.5)),
        ("0", "0.0", (0, 0)),
        ("high", "nan", (-1, sys.float_info.max)),
        ("inf", "-inf", (-1, sys.float_info.max)),
    ],
)
def test_figures_are_numbers_in_json(
    accuracy: str | None, loss: str | None, want: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    from openshift_ai_sdk.training.kfp import run_mpijob

    monkeypatch.setattr(Done, "training", SimpleNamespace(accuracy=accuracy, loss=loss))
    monkeypatch.setattr(openshift_ai_sdk.training, "MPIJob", Done)
    job, *figures = run_mpijob("train", "image", "train.py")
    assert job == "train" and tuple(figures) == pytest.approx(want)
    json.dumps(figures, allow_nan=False)


def test_a_job_without_figures_has_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    from openshift_ai_sdk.training.kfp import run_mpijob

    monkeypatch.setattr(openshift_ai_sdk.training, "MPIJob", Done)
    assert run_mpijob("train", "image", "train.py") == ("train", -1.0, sys.float_info.max)


SETTINGS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "settings.json").read_text())
# Parameters of a step for what is one argument of MPIJob: KFP has no objects.
PARTS = {
    "slots_per_worker": {"slots"},
    "resources": {"cpu", "memory", "gpu", "gpu_resource"},
    "launcher_resources": {"launcher_cpu", "launcher_memory"},
    "volume_mounts": {"volumes", "volume_mounts"},
}
# Settings that a step does not have.
ABSENT = {"suspend": "a step waits for the end of its job, and a suspended one does not end"}
# What a step hands on, by its parameter: the value, and if they differ the argument of MPIJob and its value.
GIVEN: dict[str, tuple[Any, ...]] = {
    "name": ("train",),
    "image": ("image",),
    "command": ("train.py",),
    "namespace": ("team",),
    "runtime": ("mpi",),
    "labels": ({"example.com/team": "a"},),
    "annotations": ({"example.com/a": "b"},),
    "mpi_flags": ("--bind-to core",),
    "mpi_implementation": ("MPICH",),
    "workdir": ("/app",),
    "env": ({"A": "1"},),
    "connections": (["data"],),
    "mlflow_tracking_uri": ("https://mlflow.example.com",),
    "run_as_user": (1000,),
    "workers": (3,),
    "slots": (2, "slots_per_worker", 2),
    "gpu": (1, "resources", ResourceRequirements(gpu=1)),
    "gpu_resource": ("amd.com/gpu", "resources", ResourceRequirements(gpu_resource="amd.com/gpu")),
    "cpu": ("4", "resources", ResourceRequirements(cpu="4")),
    "memory": ("8Gi", "resources", ResourceRequirements(memory="8Gi")),
    "shm": ("8Gi",),
    "launcher_cpu": ("1", "launcher_resources", ResourceRequirements(cpu="1", memory="1Gi")),
    "launcher_memory": ("2Gi", "launcher_resources", ResourceRequirements(cpu="100m", memory="2Gi")),
    "volumes": ([{"name": "data", "emptyDir": {}}],),
    "volume_mounts": ([{"name": "data", "mountPath": "/data"}],),
    "output_dir": ("results:/results",),
    "queue": ("team",),
    "priority": ("high",),
    "node_selector": ({"gpu": "a100"},),
    "tolerations": (["nvidia.com/gpu"],),
    "topology": ("topology.kubernetes.io/zone",),
    "rdma": ("required",),
    "profile": (True,),
    "wait_for_quota": (True,),
    "gang_timeout": ("10m",),
    "image_pull_secrets": (["registry"],),
    "service_account": ("trainer",),
    "retries": (0,),
    "deadline": ("4h",),
    "grace_period": ("2m",),
    "ttl": ("24h",),
}


def test_a_step_has_all_settings_of_a_job() -> None:
    from openshift_ai_sdk.training.kfp import run_mpijob

    arguments = {each["Python"] for each in SETTINGS if each["Python"]}
    assert set(ABSENT) <= arguments
    settings = {part for name in arguments - set(ABSENT) for part in PARTS.get(name, {name})}
    assert set(inspect.signature(run_mpijob).parameters) == settings | {"timeout"}
    assert set(GIVEN) == settings


@pytest.mark.parametrize("name", GIVEN)
def test_a_step_hands_its_options_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from openshift_ai_sdk.training.kfp import run_mpijob

    monkeypatch.setattr(openshift_ai_sdk.training, "MPIJob", Done)
    value, *differs = GIVEN[name]
    argument, wanted = differs or (name, value)
    run_mpijob(**{"name": "other", "image": "other", "command": "other", name: value})
    assert Done.options[argument] == wanted


def test_a_step_sets_nothing_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from openshift_ai_sdk.training import MPIJob
    from openshift_ai_sdk.training.kfp import run_mpijob

    monkeypatch.setattr(openshift_ai_sdk.training, "MPIJob", Done)
    run_mpijob("train", "image", "train.py")
    assert MPIJob(**Done.options).manifest == MPIJob("train", image="image", command="train.py").manifest
