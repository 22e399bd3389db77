"""The notebooks of the documentation, run on a real API server. The test plays the operator and the ranks."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import nbformat
import pytest
from examples import NOTEBOOKS
from nbclient import NotebookClient
from servers import Cluster, Operator

from openshift_ai_sdk.training import TrainingClient

FAILED = {
    "failure": {"code": "ProgramMissing", "rank": 1, "pod": "broken-worker-1"},
    "findings": [{"code": "ProgramMissing", "severity": "Error", "summary": "Program trian.py not found."}],
}


def end_jobs(cluster: Cluster, operator: Operator, stop: threading.Event) -> None:
    """Let each job print three epochs and end: the one that is named broken fails."""
    ended: set[str] = set()
    with TrainingClient(operator.namespace, configuration=cluster.configuration()) as client:
        while not stop.wait(0.1):
            for name in set(operator.jobs()) - ended:
                job = client.get_job(name)
                log = operator.pod(job, f"{name}-launcher-abc", "failed" if name == "broken" else "succeeded")
                for epoch in (1, 2, 3):
                    log.say(f'[1,0]<stdout>:{{"epoch": {epoch}, "loss": {1 / epoch:.3f}}}')
                log.end()
                if name == "broken":
                    operator.report(job, "Failed", **FAILED)
                else:
                    operator.report(job, "Succeeded")
                ended.add(name)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_of_the_documentation_runs(
    notebook: Path, cluster: Cluster, operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig(tmp_path / "config", namespace=operator.namespace)))
    document = nbformat.read(notebook, as_version=4)
    nbformat.validate(document)
    client = NotebookClient(
        document, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    stop = threading.Event()
    ending = threading.Thread(target=end_jobs, args=(cluster, operator, stop))
    ending.start()
    try:
        client.execute()
    finally:
        stop.set()
        ending.join()
    printed = "".join(
        output.text for cell in document.cells for output in cell.get("outputs", ()) if output.output_type == "stream"
    )
    assert "Succeeded" in printed or "3" in printed
    assert "stderr" not in {output.get("name") for cell in document.cells for output in cell.get("outputs", ())}
    # Each removes what it made. Its records stay, and say what was created.
    assert operator.jobs() == []
    reports = operator.custom.list_namespaced_custom_object(
        "mpi.opendatahub.io", "v1alpha1", operator.namespace, "jobreports"
    )
    code = "\n".join(cell.source for cell in document.cells if cell.cell_type == "code")
    jobs = {report["spec"]["jobRef"]["name"] for report in reports["items"]}
    assert jobs and all(re.search(rf'"{re.sub(r"-2$", "", name)}"', code) for name in jobs)
