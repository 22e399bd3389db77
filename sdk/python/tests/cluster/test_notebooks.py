"""The notebooks, run on a real cluster. With UPDATE_NOTEBOOKS=1 they are written with their outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_with_the_outputs_that_are_committed(
    notebook: Path, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "config", project)))
    committed = nbformat.read(notebook, as_version=4)
    executed = nbformat.from_dict(dict(committed))
    client = NotebookClient(
        executed, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    nbformat.validate(executed)
    if os.environ.get("UPDATE_NOTEBOOKS"):
        for cell in executed.cells:
            cell.metadata.pop("execution", None)
        nbformat.write(executed, notebook)
        return
    assert forms(executed) == forms(committed)


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
