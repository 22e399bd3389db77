"""The built packages, installed into clean environments, where the examples of the documents run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from examples import python_in
from servers import Cluster, Operator, wait_until

from openshift_ai_sdk.training import TrainingClient
from openshift_ai_sdk.training._shipped_runtimes import tag_of

PACKAGE = Path(__file__).resolve().parents[2]
UV = shutil.which("uv") or str(PACKAGE / ".uv" / "bin" / "uv")
EXAMPLES = {
    "README.md": "Run a job in three ways",
    "sdk/python/README.md": "",
    "docs/sdk.md": "Run a job",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([UV, "build", "--quiet", "--out-dir", folder], cwd=PACKAGE, check=True)
    return folder


@pytest.fixture(scope="module", params=["whl", "tar.gz"])
def python(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The interpreter of a clean environment with nothing but one of the packages and what it depends on."""
    folder = tmp_path_factory.mktemp("clean")
    package = next(built.glob(f"*.{request.param}"))
    subprocess.run([UV, "venv", "--quiet", folder / "venv"], check=True)
    interpreter = folder / "venv" / "bin" / "python"
    subprocess.run([UV, "pip", "install", "--quiet", "--python", interpreter, package], check=True)
    yield interpreter
    shutil.rmtree(folder)


@pytest.mark.parametrize("document", EXAMPLES)
def test_the_example_runs_in_a_clean_environment(
    document: str, python: Path, cluster: Cluster, operator: Operator, tmp_path: Path
) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(cluster.kubeconfig(tmp_path / "config", namespace=operator.namespace)),
    }
    example = python_in(document, EXAMPLES[document]).replace('"mpijob-demo"', f'"{operator.namespace}"')
    found = re.search(r'MPIJob\(\s*(?:name=)?"([^"]*)"', example)
    assert found is not None
    name = found[1]
    process = subprocess.Popen([python, "-c", example], env=environment, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: operator.jobs() == [name] or process.poll() is not None, "the job is created")
    with TrainingClient(operator.namespace, configuration=cluster.configuration()) as client:
        job = client.get_job(name)
        log = operator.pod(job, f"{name}-launcher-abc", "succeeded")
        log.say("[1,0]<stdout>:epoch 10 accuracy 0.97")
        log.end()
        operator.report(job, "Succeeded")
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    if "get_logs" in example:
        assert printed == "epoch 10 accuracy 0.97\n"


def test_the_packages_contain_the_shipped_runtimes_with_the_images_of_the_release(python: Path) -> None:
    program = "from openshift_ai_sdk.training import _runtimes, _shipped_runtimes as runtimes\n"
    program += "print(runtimes.release(), _runtimes.read(runtimes.shipped('mpi-openmpi')).image)"
    printed = subprocess.run([python, "-c", program], check=True, capture_output=True, text=True).stdout
    version = re.search(r'^version = "(.*)"$', (PACKAGE / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    tag = tag_of(version[1])
    assert tag is not None
    assert printed == f"{tag} quay.io/opendatahub/mpi-sample-openmpi:{tag}\n"
