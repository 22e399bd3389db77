"""The notebooks, run on a real cluster. With UPDATE_NOTEBOOKS=1 they are written with their outputs."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml
from examples import NOTEBOOKS as OF_DOCUMENTS
from kubernetes import client
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_with_the_outputs_that_are_committed(
    notebook: Path, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "config", project)))
    committed = nbformat.read(notebook, as_version=4)
    executed = nbformat.from_dict(dict(committed))
    execute(executed, tmp_path)
    nbformat.validate(executed)
    if os.environ.get("UPDATE_NOTEBOOKS"):
        for cell in executed.cells:
            cell.metadata.pop("execution", None)
        nbformat.write(executed, notebook)
        return
    assert forms(executed) == forms(committed)


@pytest.mark.parametrize("notebook", OF_DOCUMENTS, ids=lambda path: path.stem)
def test_a_notebook_of_the_documentation_runs(
    notebook: Path, open_project: str, results: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = nbformat.read(notebook, as_version=4)
    for image in document.metadata["mpijob"]["samples"]:
        if image not in os.environ.get("SAMPLES", "openmpi").split():
            pytest.skip(
                f"the cluster does not have the sample image {image}: make sdk-e2e SAMPLES='openmpi mpich {image}'"
            )
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "config", open_project)))
    execute(document, tmp_path)
    if notebook.stem == "checkpoints":
        printed = "".join(output.get("text", "") for output in document.cells[-3].outputs)
        assert "until-3 [1.0, 2.0, 3.0]\nuntil-6 [4.0, 5.0, 6.0]" in printed


def execute(document: Any, folder: Path) -> None:
    """Run the cells of a notebook, in a folder."""
    NotebookClient(
        document, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()


@pytest.fixture
def open_project(api: client.ApiClient) -> Iterator[str]:
    """A namespace as `kubectl create namespace` makes it."""
    name = f"notebook-{uuid.uuid4().hex[:8]}"
    client.CoreV1Api(api).create_namespace({"metadata": {"name": name}})
    yield name
    client.CoreV1Api(api).delete_namespace(name)


@pytest.fixture
def results(api: client.ApiClient, open_project: str, tmp_path: Path) -> Iterator[None]:
    """A claim "results" for all pods, on a folder of the one machine."""
    folder = tmp_path / "results"
    folder.mkdir()
    folder.chmod(0o777)
    core, size = client.CoreV1Api(api), {"storage": "1Gi"}
    reference = {"kind": "PersistentVolumeClaim", "namespace": open_project, "name": "results"}
    volume = {
        "capacity": size,
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": reference,
        "hostPath": {"path": str(folder)},
    }
    core.create_persistent_volume({"metadata": {"name": open_project}, "spec": volume})
    wanted = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": open_project,
        "resources": {"requests": size},
    }
    core.create_namespaced_persistent_volume_claim(open_project, {"metadata": {"name": "results"}, "spec": wanted})
    yield
    core.delete_persistent_volume(open_project)


def kubeconfig(path: Path, namespace: str) -> Path:
    """Write the kubeconfig of the tests with a namespace, as the project of a workbench."""
    written = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    for context in written["contexts"]:
        context["context"]["namespace"] = namespace
    path.write_text(yaml.safe_dump(written))
    return path


def forms(notebook: Any) -> list[list[str]]:
    """Return the form of each cell's outputs: names and times in them differ from run to run."""
    return [
        [
            output.output_type + "".join(f" {form}" for form in sorted(output.get("data", ())))
            for output in merged(cell.get("outputs", ()))
        ]
        for cell in notebook.cells
    ]


def merged(outputs: Any) -> list[Any]:
    """Return outputs with the parts of one stream, of which there may be any number, as one."""
    found: list[Any] = []
    for output in outputs:
        if not (found and output.output_type == "stream" and found[-1].output_type == "stream"):
            found.append(output)
    return found
