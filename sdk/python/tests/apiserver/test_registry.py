"""Registering models in a real Model Registry, by its official client. What it then returns is asserted.

Model Registry knows no users: in OpenShift AI a proxy before it checks their tokens. The test plays that proxy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from modelregistry import Gate, Registry, start
from servers import TOKEN, Operator, free_port

from openshift_ai_sdk.training import InvalidJobError, TrainingError, _model_registry

numbers = count(1)
URI = "s3://models/fraud/1"


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    for name, what in (("MODEL_REGISTRY", "the program model-registry"), ("MARIADB", "the program mariadbd")):
        if not os.environ.get(name):
            pytest.skip(f"{name} does not name {what}")
    started = Registry(tmp_path_factory.mktemp("registry"))
    yield started
    started.stop()


@pytest.fixture
def gate(registry: Registry) -> Iterator[Gate]:
    started = Gate(registry, TOKEN)
    yield started
    started.stop()


@pytest.fixture
def name() -> str:
    """The name of a model that no other test has."""
    return f"model-{next(numbers)}-x"


def succeeded(client: Any, operator: Operator, **report: Any) -> Any:
    """A job that has succeeded."""
    job = client.create_job("train", container_image="image", command="x")
    operator.report(job, "Succeeded", **report)
    return job


def register(url: Any, name: str, version: str = "1", uri: str = URI, **metadata: Any) -> Any:
    """Register the model of a job that is not in any cluster."""
    status: Any = SimpleNamespace(
        phase="Succeeded", kind="MPIJob", namespace="ns", name="train", uid="uid", job="train", mpi=None, training=None
    )
    credentials: Any = SimpleNamespace(token=lambda: TOKEN)
    model = _model_registry.Model(name, uri, version, ("", ""), None, metadata)
    model.check()
    return _model_registry.register(url, credentials, status, model)


def properties(version: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a version, each value with its type."""
    return {
        name: next((key.removesuffix("_value"), text) for key, text in value.items() if key != "metadataType")
        for name, value in version["customProperties"].items()
    }


def test_a_model_is_registered_with_its_training(
    client: Any, operator: Operator, registry: Registry, gate: Gate, name: str
) -> None:
    training = {"accuracy": "0.97", "loss": "0.13", "epoch": "10", "at": "2026-01-02T10:00:00Z"}
    job = succeeded(client, operator, training=training, mpi={"ranks": 8})
    model = job.register_model(
        name,
        uri=URI,
        version="1",
        registry=gate.url,
        format_name="onnx",
        format_version="2",
        description="with more data",
        metadata={"seed": 7, "rate": 0.5, "augmented": True, "dataset": "v2"},
    )
    assert gate.tokens == {f"Bearer {TOKEN}"}
    found = registry.get("registered_model", name=name)
    assert (found["id"], found["name"], found["state"]) == (model.id, name, "LIVE")
    (version,) = registry.versions(name)
    assert (version["name"], version["description"], version["state"]) == ("1", "with more data", "LIVE")
    uid = job.manifest["metadata"]["uid"]
    assert properties(version) == {
        "job": ("string", f"{operator.namespace}/train"),
        "job_kind": ("string", "MPIJob"),
        "job_uid": ("string", uid),
        "ranks": ("int", "8"),
        "accuracy": ("string", "0.97"),
        "loss": ("string", "0.13"),
        "epoch": ("string", "10"),
        "seed": ("int", "7"),
        "rate": ("double", 0.5),
        "augmented": ("bool", True),
        "dataset": ("string", "v2"),
    }
    (artifact,) = version["artifacts"]
    expected = {
        "artifactType": "model-artifact",
        "name": name,
        "uri": URI,
        "modelFormatName": "onnx",
        "modelFormatVersion": "2",
        "modelSourceKind": "mpijob",
        "modelSourceClass": "openshift-ai",
        "modelSourceGroup": operator.namespace,
        "modelSourceId": uid,
        "modelSourceName": "train",
    }
    assert {key: artifact.get(key) for key in expected} == expected


def test_a_model_has_many_versions(client: Any, operator: Operator, registry: Registry, gate: Gate, name: str) -> None:
    job = succeeded(client, operator)
    first = job.register_model(name, uri=URI, version="1", registry=gate.url)
    with pytest.raises(TrainingError, match=f"^Model Registry rejects {name}, version 1: Version 1 already exists$"):
        job.register_model(name, uri="s3://models/other", version="1", registry=gate.url)
    # At the end of the address of a browser there is often a slash.
    second = job.register_model(name, uri="s3://models/fraud/2", version="2", registry=f"{gate.url}/")
    assert first.id == second.id
    found = [
        (version["name"], [artifact["uri"] for artifact in version["artifacts"]]) for version in registry.versions(name)
    ]
    assert found == [("1", [URI]), ("2", ["s3://models/fraud/2"])]


def test_a_client_of_the_user_is_used(
    client: Any, operator: Operator, registry: Registry, gate: Gate, name: str
) -> None:
    from model_registry import ModelRegistry

    own = ModelRegistry(gate.url, author="ann", user_token=TOKEN, async_runner=_model_registry.in_a_thread)
    succeeded(client, operator).register_model(name, uri=URI, version="1", registry=own)
    assert [version["author"] for version in registry.versions(name)] == ["ann"]
    artifact = own.get_model_artifact(name, "1")
    assert artifact is not None and artifact.uri == URI


def test_only_a_job_that_has_succeeded_has_a_model(
    client: Any, operator: Operator, registry: Registry, name: str
) -> None:
    job = client.create_job("train", container_image="image", command="x")
    operator.report(job, "Running")
    with pytest.raises(TrainingError, match="mpijob/train has not succeeded"):
        job.register_model(name, uri=URI, version="1", registry=registry.url)
    with pytest.raises(InvalidJobError) as invalid:
        job.register_model(name, uri="", version=1, registry=registry.url)
    assert [problem.field for problem in invalid.value.problems] == ["uri", "version"]
    assert registry.get("registered_model", name=name) is None


@pytest.mark.parametrize(
    "title",
    ["my model", "a/b", "50%", "modèle 模型", 'it\'s "x" & y?z=1#h', "a:b", " x ", "n" * _model_registry.MAX_NAME],
)
def test_names_may_have_any_characters(registry: Registry, title: str) -> None:
    assert register(registry.url, title, version=title, uri=f"s3://{title}").name == title
    found = [(version["name"], version["artifacts"][0]["uri"]) for version in registry.versions(title)]
    assert found == [(title, f"s3://{title}")]


@pytest.mark.parametrize("similar", ["{}-A", "{}_a", "{}%"])
def test_a_model_of_a_similar_name_gets_no_version(registry: Registry, name: str, similar: str) -> None:
    existing = f"{name}-a"
    register(registry.url, existing)
    with pytest.raises(TrainingError, match=f"it finds the model {existing} by this name"):
        register(registry.url, similar.format(name), version="2")
    assert [version["name"] for version in registry.versions(existing)] == ["1"]


def test_types_of_metadata(registry: Registry, name: str) -> None:
    metadata = {
        "seed": -7,
        "parameters": 7_000_000_000,
        "float": 0.25,
        "whole": 3.0,
        "nan": float("nan"),
        "no": False,
        "text": "模型 " * 1000,
        "empty": "",
        "array": np.int64(5),
        "scalar": np.float32(0.5),
        "k" * _model_registry.MAX_KEY: "long",
    }
    register(registry.url, name, **metadata)
    (version,) = registry.versions(name)
    found = {key: value for key, value in properties(version).items() if not key.startswith("job")}
    assert found == {
        "seed": ("int", "-7"),
        "parameters": ("string", "7000000000"),
        "float": ("double", 0.25),
        "whole": ("double", 3.0),
        "nan": ("string", "nan"),
        "no": ("bool", False),
        "text": ("string", "模型 " * 1000),
        "empty": ("string", ""),
        "array": ("int", "5"),
        "scalar": ("double", 0.5),
        "k" * _model_registry.MAX_KEY: ("string", "long"),
    }


def at_once(registry: Registry, number: int, attempt: Callable[[Any, int], Any]) -> list[Any]:
    """What attempts return that begin at the same time, each with a client of its own."""
    clients = [_model_registry.connect(registry.url, TOKEN) for _ in range(number)]
    barrier = Barrier(number)

    def begin(index: int) -> Any:
        barrier.wait()
        return attempt(clients[index], index)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(begin, range(number)))


def test_versions_of_a_new_model_can_be_registered_at_once(registry: Registry, name: str) -> None:
    models = at_once(registry, 6, lambda client, index: register(client, name, str(index)))
    assert len({model.id for model in models}) == 1
    assert sorted(version["name"] for version in registry.versions(name)) == ["0", "1", "2", "3", "4", "5"]


def test_of_those_who_register_a_version_at_once_one_succeeds(registry: Registry, name: str) -> None:
    def attempt(client: Any, index: int) -> str:
        try:
            register(client, name, uri=f"s3://models/{index}")
        except TrainingError as error:
            return str(error)
        return "registered"

    *refused, succeeded = sorted(at_once(registry, 6, attempt))
    assert succeeded == "registered"
    assert all(
        text.startswith(f"Model Registry rejects {name}, version 1: Version 1 already exists") for text in refused
    )
    (version,) = registry.versions(name)
    assert len(version["artifacts"]) == 1


def test_a_registration_that_was_interrupted_is_told(registry: Registry, gate: Gate, name: str) -> None:
    gate.fails = "/artifacts"
    with pytest.raises(TrainingError, match=f"^Model Registry did not register {name}, version 1: 502 Bad Gateway: "):
        register(gate.url, name)
    gate.fails = ""
    with pytest.raises(TrainingError, match="already exists, but its registration was interrupted; register another"):
        register(gate.url, name)
    register(gate.url, name, version="2")
    assert [len(version["artifacts"]) for version in registry.versions(name)] == [0, 1]


def test_a_token_that_is_refused_is_told(registry: Registry, name: str) -> None:
    gate = Gate(registry, "of somebody else")
    with pytest.raises(TrainingError) as refused:
        register(gate.url, name)
    gate.stop()
    assert str(refused.value) == f"Model Registry did not register {name}, version 1: 401 Unauthorized: Unauthorized"
    assert registry.get("registered_model", name=name) is None


def test_a_wrong_address_is_told(registry: Registry, name: str) -> None:
    with pytest.raises(TrainingError, match=r"version 1: 404 Not Found: 404 page not found; check the address, and "):
        register(f"{registry.url}/models", name)


def test_a_registry_without_its_database_is_told(registry: Registry, tmp_path: Path, name: str) -> None:
    server, url = start(tmp_path, tmp_path / "none")
    with pytest.raises(TrainingError, match="503 Service Unavailable: Datastore service is down or unavailable"):
        register(url, name)
    server.terminate()
    server.wait()


def test_a_registry_that_is_away_is_told(client: Any, operator: Operator, name: str) -> None:
    job = succeeded(client, operator)
    with pytest.raises(TrainingError, match=f"Model Registry did not register {name}, version 1: Cannot connect"):
        job.register_model(name, uri=URI, version="1", registry=f"http://127.0.0.1:{free_port()}")
