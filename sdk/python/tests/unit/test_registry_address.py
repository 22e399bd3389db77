"""Where the token of the cluster is sent when a model is registered."""

from __future__ import annotations

from typing import Any

import pytest

from openshift_ai_sdk.training import InvalidJobError, _model_registry


class Client:
    """Stands for the credentials of a user. It counts how often their token was read."""

    reads = 0

    def token(self) -> str:
        self.reads += 1
        return "secret"


class Status:
    phase = "Succeeded"


@pytest.mark.parametrize(
    "address",
    [
        "http://registry",
        "http://model-registry.kubeflow.svc:8080",
        "http://localhost.example.com",
        "http://127.0.0.1@example.com",
        "http://10.0.0.1",
        "registry.example.com",
        "ftp://registry",
        "https://",
        "http://[::1",
        "",
    ],
)
def test_token_is_not_sent_in_clear(address: str) -> None:
    client: Any = Client()
    status: Any = Status()
    model = _model_registry.Model("m", "s3://m", "1", ("", ""), None, {})
    with pytest.raises(InvalidJobError, match=r"without encryption.*https://.*user_token"):
        _model_registry.register(address, client, status, model)
    assert client.reads == 0


@pytest.mark.parametrize(
    "address",
    ["https://registry.example.com", "HTTPS://registry", "http://127.0.0.1:8080", "http://localhost", "http://[::1]:1"],
)
def test_token_is_sent_to(address: str) -> None:
    _model_registry.check_address(address)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://registry.example.com", "https://registry.example.com:443"),
        ("https://registry.example.com/", "https://registry.example.com:443"),
        ("https://gateway:8443/registry/", "https://gateway:8443/registry"),
        ("https://gateway/registry", "https://gateway:443/registry"),
        ("HTTPS://[2001:db8::1]", "https://[2001:db8::1]:443"),
        ("http://localhost", "http://localhost:8080"),
    ],
)
def test_client_gets_an_address_with_a_port(address: str, expected: str) -> None:
    assert _model_registry.with_port(address) == expected
