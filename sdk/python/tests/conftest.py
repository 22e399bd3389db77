from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from faces import Aio, Sync
from servers import Cluster, Operator, running
from smallapi import SmallAPI

from openshift_ai_sdk.training import RetryPolicy

numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker in {"apiserver", "cluster"} & set(item.path.parts):
            item.add_marker(marker)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real API server. A test that kills it starts it again."""
    if "KUBEBUILDER_ASSETS" not in os.environ:
        pytest.skip("KUBEBUILDER_ASSETS does not name a folder with kube-apiserver and etcd")
    with running(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(params=["sync", "aio"])
def face(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Either face of the package."""
    made: Sync | Aio = Sync() if request.param == "sync" else Aio()
    yield made
    made.close()


@pytest.fixture
def operator(cluster: Cluster) -> Operator:
    """The operator, played by the test, in a namespace of the test's own."""
    return Operator(cluster, f"test-{next(numbers)}")


@pytest.fixture
def client(face: Any, cluster: Cluster, operator: Operator) -> Iterator[Any]:
    """A client of the API server."""
    made = face.TrainingClient(
        operator.namespace, configuration=cluster.configuration(), retry=RetryPolicy(patience=60)
    )
    yield made
    made.close()


@pytest.fixture
def small() -> Iterator[SmallAPI]:
    """An API server in memory, for tests that need no rules of Kubernetes."""
    made = SmallAPI()
    yield made
    made.stop()


@pytest.fixture
def small_client(face: Any, small: SmallAPI) -> Iterator[Any]:
    """A client of the API server in memory."""
    made = face.TrainingClient("default", configuration=small.configuration(), retry=RetryPolicy(patience=5))
    yield made
    made.close()
