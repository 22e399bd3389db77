"""Registering models, by the official client of Model Registry and its REST API.

Model Registry itself is a program in Go with a database, and in no package registry that tests could use. The server
here keeps what it is sent. It takes and returns what the classes allow that are generated from the OpenAPI of Model
Registry, and no field besides.
"""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import mr_openapi.models as openapi
import pytest
from servers import Operator

from openshift_ai_sdk.training import InvalidJobError, TrainingError

ROOT = "/api/model_registry/v1/"
CREATED = {
    "registered_models": (openapi.RegisteredModelCreate, openapi.RegisteredModel),
    "model_versions": (openapi.ModelVersionCreate, openapi.ModelVersion),
    "artifacts": (openapi.ModelArtifact, openapi.ModelArtifact),
}


class Registry:
    """Serves the part of the REST API that registers models."""

    def __init__(self) -> None:
        self.objects: dict[str, list[dict[str, Any]]] = {name: [] for name in CREATED}
        self.tokens: set[str | None] = set()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urllib.parse.urlparse(self.path)
                query = dict(urllib.parse.parse_qsl(url.query))
                self.answer(*registry.get(url.path.removeprefix(ROOT), query))

            def do_POST(self) -> None:
                registry.tokens.add(self.headers["Authorization"])
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.answer(201, registry.create(self.path.removeprefix(ROOT), body))

            def answer(self, code: int, body: Any) -> None:
                text = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def get(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if path in self.objects:
            items = self.objects[path]
            return 200, {"items": items, "nextPageToken": "", "pageSize": len(items), "size": len(items)}
        for item in self.objects[f"{path}s"]:
            if item["name"] == query["name"] and query.get("parentResourceId") in (None, item.get("registeredModelId")):
                return 200, item
        return 404, {"code": "NOT_FOUND", "message": f"no {path} {query['name']}"}

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        kind = path.rpartition("/")[2]
        accepted, returned = CREATED[kind]
        fields = {field.alias or name for name, field in accepted.model_fields.items()}
        assert set(body) <= fields, f"fields that the OpenAPI of {kind} does not have: {set(body) - fields}"
        assert accepted.from_dict(body) is not None
        stored = {**body, "id": str(len(self.objects[kind]) + 1)}
        self.objects[kind].append(stored)
        written: dict[str, Any] = json.loads(returned.from_dict(stored).to_json())
        return written


@pytest.fixture
def registry() -> Iterator[Registry]:
    started = Registry()
    yield started
    started.server.shutdown()


def test_a_model_is_registered_with_its_training(client: Any, operator: Operator, registry: Registry) -> None:
    job = client.create_job("train", container_image="image", command="x")
    training = {"accuracy": "0.97", "loss": "0.13", "epoch": "10", "at": "2026-01-02T10:00:00Z"}
    operator.report(job, "Succeeded", training=training)
    model = job.register_model(
        "fraud", uri="s3://models/fraud/1", version="1", registry=registry.url, format_name="onnx", metadata={"seed": 7}
    )
    assert model.name == "fraud" and model.id == "1"
    version, artifact = registry.objects["model_versions"][0], registry.objects["artifacts"][0]
    values = {name: value.get("string_value") for name, value in version["customProperties"].items()}
    assert (values["job"], values["accuracy"], values["loss"]) == (f"{operator.namespace}/train", "0.97", "0.13")
    assert version["customProperties"]["seed"]["int_value"] == "7"
    assert (artifact["uri"], artifact["modelFormatName"]) == ("s3://models/fraud/1", "onnx")
    assert (artifact["modelSourceKind"], artifact["modelSourceName"]) == ("mpijob", "train")
    assert registry.tokens == {"Bearer admin-token"}
    with pytest.raises(TrainingError, match=r"rejects fraud, version 1: .*already exists"):
        job.register_model("fraud", uri="s3://models/fraud/1", version="1", registry=registry.url)


def test_only_a_job_that_has_succeeded_has_a_model(client: Any, operator: Operator, registry: Registry) -> None:
    job = client.create_job("train", container_image="image", command="x")
    operator.report(job, "Running")
    with pytest.raises(TrainingError, match="mpijob/train has not succeeded"):
        job.register_model("fraud", uri="s3://models/fraud/1", version="1", registry=registry.url)
    with pytest.raises(InvalidJobError) as invalid:
        job.register_model("fraud", uri="", version=1, registry=registry.url)
    assert [problem.field for problem in invalid.value.problems] == ["uri", "version"]
    assert registry.objects["registered_models"] == []


def test_a_registry_that_is_away_is_told(client: Any, operator: Operator, registry: Registry) -> None:
    job = client.create_job("train", container_image="image", command="x")
    operator.report(job, "Succeeded")
    registry.server.shutdown()
    registry.server.server_close()
    with pytest.raises(TrainingError, match="Model Registry did not register fraud, version 1"):
        job.register_model("fraud", uri="s3://models/fraud/1", version="1", registry=registry.url)
