from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest
from kubernetes import client, config


@pytest.fixture(scope="session")
def api() -> client.ApiClient:
    if "KUBECONFIG" not in os.environ:
        pytest.skip("KUBECONFIG does not name a cluster")
    return config.new_client_from_config()


@pytest.fixture
def project(api: client.ApiClient) -> Iterator[str]:
    """A namespace that admits restricted pods only, as projects on OpenShift do."""
    name = f"sdk-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    client.CoreV1Api(api).create_namespace({"metadata": {"name": name, "labels": labels}})
    yield name
    client.CoreV1Api(api).delete_namespace(name)
