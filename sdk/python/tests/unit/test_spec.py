"""From options to manifests: what is refused, and that manifests are the command line's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import kubernetes.client
import pytest
import yaml

from openshift_ai_sdk.training import (
    InvalidJobError,
    MPIJob,
    Phase,
    ResourceRequirements,
    RetryPolicy,
    _changes,
    _job_spec,
    _kinds,
    _manifest,
    _trainer_runtime,
    _validate,
    aio,
)

ROOT = Path(__file__).resolve().parents[4]
GOOD: dict[str, Any] = {"image": "quay.io/me/train", "command": "train.py"}


@pytest.fixture(scope="session")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command line of this repository, built for the comparison."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed, which builds the command line")
    built = tmp_path_factory.mktemp("bin") / "kubectl-odh-mpijob"
    subprocess.run(["go", "build", "-o", built, "./cmd/kubectl-odh-mpijob"], cwd=ROOT, check=True)
    return built


SAME = {
    "least": (["--command", "train.py"], {"command": "train.py"}),
    "words": (["--command", "train.py --x 'a b'"], {"command": "train.py --x 'a b'"}),
    "a list": (["--", "train.py", "a b", "$x"], {"command": ["train.py", "a b", "$x"]}),
    "a shell": (["--command", "cd /data && train.py"], {"command": "cd /data && train.py"}),
    "mpirun": (["--command", "mpirun -n 3 train.py | tee x"], {"command": "mpirun -n 3 train.py | tee x"}),
    "all": (
        [
            "--workers",
            "4",
            "--gpu",
            "2",
            "--cpu",
            "4",
            "--memory",
            "16Gi",
            "--queue",
            "q",
            "--priority",
            "high",
            "--connection",
            "s3,other",
            "-e",
            "A=b",
            "--label",
            "team=a",
            "--retries",
            "2",
            "--deadline",
            "1h30m",
            "--suspend",
            "--run-as-user",
            "1000",
            "--implementation",
            "intel",
            "--command",
            "train.py",
        ],
        {
            "command": "train.py",
            "workers": 4,
            "resources": ResourceRequirements(cpu=4, memory="16Gi", gpu=2),
            "queue": "q",
            "priority": "high",
            "connections": ["s3", "other"],
            "env": {"A": "b"},
            "labels": {"team": "a"},
            "retries": 2,
            "deadline": "1h30m",
            "suspend": True,
            "run_as_user": 1000,
            "mpi_implementation": "intel",
        },
    ),
    "flags of mpirun, and the gang's timeout": (
        ["--mpi-flags", "--bind-to core -x 'A=b c'", "--gang-timeout", "10m", "--command", "x"],
        {"command": "x", "mpi_flags": "--bind-to core -x 'A=b c'", "gang_timeout": "10m"},
    ),
    "pods": (
        [
            *("--shm", "8Gi", "--output-dir", "results:/results", "--node-selector", "gpu=a100"),
            *("--toleration", "nvidia.com/gpu", "--toleration", "pool=fast:NoSchedule", "--toleration", "a:NoExecute"),
            *("--topology", "topology.kubernetes.io/zone", "--image-pull-secret", "registry"),
            *("--service-account", "trainer", "--workdir", "/app", "--grace-period", "2m", "--command", "x"),
        ],
        {
            "command": "x",
            "shm": "8Gi",
            "output_dir": "results:/results",
            "node_selector": {"gpu": "a100"},
            "tolerations": [
                "nvidia.com/gpu",
                "pool=fast:NoSchedule",
                {"key": "a", "operator": "Exists", "effect": "NoExecute"},
            ],
            "topology": "topology.kubernetes.io/zone",
            "image_pull_secrets": ["registry"],
            "service_account": "trainer",
            "workdir": "/app",
            "grace_period": timedelta(minutes=2),
        },
    ),
    "one domain if possible": (
        ["--topology", "prefer:example.com/rack", "--command", "x"],
        {"command": "x", "topology": "prefer:example.com/rack"},
    ),
    "a time to live": (["--ttl", "24h", "--command", "x"], {"command": "x", "ttl": "24h"}),
    "optional RDMA": (["--rdma", "optional", "--command", "x"], {"command": "x", "rdma": "optional"}),
    "a profile": (["--profile", "--command", "x"], {"command": "x", "profile": True}),
    "suspended in no queue": (["--suspend", "--command", "x"], {"command": "x", "suspend": True}),
    "volumes of all pods": (
        ["--volume", "data:/data", "--command", "x"],
        {
            "command": "x",
            "volumes": [{"name": "volume-0", "persistentVolumeClaim": {"claimName": "data"}}],
            "volume_mounts": [{"name": "volume-0", "mountPath": "/data"}],
        },
    ),
    "waiting for quota": (["--wait-for-quota", "--command", "x"], {"command": "x", "wait_for_quota": True}),
    "no time to live": (["--ttl", "0s", "--command", "x"], {"command": "x", "ttl": 0}),
    "flags as a list": (
        ["--implementation", "intel", "--mpi-flags", "-genv LIST '*'", "--command", "x"],
        {"command": "x", "mpi_implementation": "intel", "mpi_flags": ["-genv", "LIST", "*"]},
    ),
    "slots": (
        ["--workers", "2", "--slots", "3", "--command", "x"],
        {"command": "x", "workers": 2, "slots_per_worker": 3},
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_manifest_is_that_of_the_command_line(name: str, command_line: Path) -> None:
    flags, options = SAME[name]
    run = subprocess.run(
        [
            command_line,
            "create",
            "train",
            "--image",
            "quay.io/me/train",
            "-n",
            "ns",
            "--dry-run=client",
            "-o",
            "json",
            *flags,
        ],
        check=True,
        capture_output=True,
        env={**os.environ, "KUBECONFIG": "/nonexistent"},
    )
    assert MPIJob("train", "ns", image="quay.io/me/train", **options).manifest == json.loads(run.stdout)


WRONG = {
    "workers": ({"workers": 0}, "workers: 0 is not allowed; use 1 or more"),
    "no workers": ({"workers": None}, "workers: None is not allowed; use a whole number, 1 or more"),
    "workers as text": ({"workers": "4"}, "workers: '4' is not allowed; use a whole number, 1 or more"),
    "slots": ({"slots_per_worker": 0}, "slots_per_worker: 0 is not allowed; use 1 or more"),
    "retries": ({"retries": -1}, "retries: -1 is not allowed; use 0 or more"),
    "user": ({"run_as_user": 0}, "run_as_user: 0 is not allowed; use 1 or more"),
    "deadline": (
        {"deadline": "4 hours"},
        "deadline: '4 hours' is not allowed; use 1 second or more, such as '4h' or 3600",
    ),
    "gang timeout": (
        {"gang_timeout": 0},
        "gang_timeout: 0 is not allowed; use 1 second or more, at most 2147483647, such as '10m' or 600",
    ),
    "unknown RDMA": ({"rdma": "maybe"}, "rdma: 'maybe' is not allowed; use 'required' or 'optional'"),
    "time to live": (
        {"ttl": -1},
        "ttl: -1 is not allowed; use 0 seconds or more, at most 2147483647, such as '24h' or 86400",
    ),
    "gang timeout of 100 years": (
        {"gang_timeout": "36500d"},
        "gang_timeout: '36500d' is not allowed; use 1 second or more, at most 2147483647, such as '10m' or 600",
    ),
    "flags with a command that starts ranks": (
        {"command": "mpirun x", "mpi_flags": "-v"},
        "mpi_flags: cannot be combined with a command that starts ranks itself; write the flags in the command",
    ),
    "flag that is none": (
        {"mpi_flags": "core"},
        "mpi_flags: 'core' is not allowed; use flags of mpirun, such as '--bind-to core'",
    ),
    "flag of the number of ranks": (
        {"mpi_flags": ["-v", "-np", 3]},
        "mpi_flags: ['-v', '-np', 3] is not allowed: -np sets the number of ranks; use workers and slots_per_worker",
    ),
    "flag with a quote": ({"mpi_flags": "-x 'a"}, 'mpi_flags: "-x \'a" cannot be read: No closing quotation'),
    "flags as a mapping": (
        {"mpi_flags": {"-x": "A"}},
        "mpi_flags: {'-x': 'A'} is not allowed; use text, or a list of text, such as '--bind-to core'",
    ),
    "image": ({"image": None}, "image: is missing; name an image, or a runtime, which brings one"),
    "command": ({"command": []}, "command: is missing; use 'python train.py' or ['python', 'train.py']"),
    "blank command": ({"command": "  "}, "command: is missing; use 'python train.py' or ['python', 'train.py']"),
    "quote": ({"command": "echo 'a"}, 'command: "echo \'a" cannot be read: No closing quotation'),
    "implementation": (
        {"mpi_implementation": "MyMPI"},
        "mpi_implementation: 'MyMPI' is not allowed; use one of OpenMPI, Intel, MPICH",
    ),
    "memory": (
        {"resources": {"memory": "16 GB"}},
        "resources.memory: '16 GB' is not allowed; use '16Gi'",
    ),
    "memory in bytes": (
        {"resources": {"memory": 64}},
        "resources.memory: 64 is 64 bytes; use a unit, such as '16Gi'",
    ),
    "memory in bytes as text": (
        {"resources": {"memory": "64"}},
        "resources.memory: '64' is 64 bytes; use a unit, such as '16Gi'",
    ),
    "memory in thousandths of bytes": (
        {"resources": {"memory": "400m"}},
        "resources.memory: '400m' is 0.4 bytes; use a unit, such as '16Gi'",
    ),
    "storage in bytes": (
        {"resources": {"ephemeral-storage": 10}},
        "resources.ephemeral-storage: 10 is 10 bytes; use a unit, such as '16Gi'",
    ),
    "memory as CPUs": (
        {"resources": {"cpu": "16Gi"}},
        "resources.cpu: '16Gi' is 1.71799e+10 CPUs; use CPUs, such as 4 or '500m'",
    ),
    "half a device": (
        {"resources": {"rdma/hca": 0.5}},
        "resources.rdma/hca: 0.5 is not allowed; devices are whole, such as 1",
    ),
    "resource that is none": (
        {"resources": {"cpus": 4}},
        "resources: 'cpus' is not the name of a resource; use cpu, memory, gpu, ephemeral-storage, or a name with a "
        "domain, such as 'nvidia.com/gpu'",
    ),
    "requests": (
        {"resources": {"requests": {"cpu": 4}}},
        "resources: 'requests' is not the name of a resource; use cpu, memory, gpu, ephemeral-storage, or a name with "
        "a domain, such as 'nvidia.com/gpu'",
    ),
    "number of a resource": (
        {"resources": {4: "cpu"}},
        "resources: 4 is not the name of a resource; use cpu, memory, gpu, ephemeral-storage, or a name with a domain, "
        "such as 'nvidia.com/gpu'",
    ),
    "gpu": (
        {"resources": {"nvidia.com/gpu": "1.5"}},
        "resources.gpu: '1.5' is not allowed; use a whole number, 0 or more",
    ),
    "env": ({"env": {"SEED": 7}}, "env['SEED']: 7 is not allowed; use text, such as '7'"),
    "variable": (
        {"env": {"a b": "7"}},
        "env: 'a b' is not the name of a variable; use letters, digits, '_', '-' and '.'",
    ),
    "mount": (
        {"volume_mounts": [{"name": "data"}]},
        "volume_mounts[0]: mountPath missing; use {'name': 'data', 'mountPath': '/data'}",
    ),
    "name": (
        {"name": "Train_1"},
        "name: 'Train_1' is not allowed; use lower-case letters, digits and '-', with a letter first and no '-' at the "
        "end",
    ),
    "image with a blank": (
        {"image": "quay.io/me train"},
        "image: 'quay.io/me train' is not allowed; use a name such as 'quay.io/me/train:1'",
    ),
    "image with a scheme": (
        {"image": "https://quay.io/me/train"},
        "image: 'https://quay.io/me/train' is not allowed; use a name such as 'quay.io/me/train'",
    ),
    "image in upper case": (
        {"image": "quay.io/Me/train"},
        "image: 'quay.io/Me/train' is not allowed; use a name such as 'quay.io/me/train'",
    ),
    "image without a tag behind the colon": (
        {"image": "quay.io/me/train:"},
        "image: 'quay.io/me/train:' is not allowed; use a name such as 'quay.io/me/train:1'",
    ),
    "image with a short digest": (
        {"image": "quay.io/me/train@sha256:123"},
        "image: 'quay.io/me/train@sha256:123' is not allowed; use a name such as 'quay.io/me/train:1'",
    ),
    "image of another kind": (
        {"image": 7},
        "image: 7 is not allowed; use a name such as 'quay.io/me/train:1'",
    ),
    "command of another kind": (
        {"command": {"python": "train.py"}},
        "command: {'python': 'train.py'} is not allowed; use text, or a list of text, such as ['python', 'train.py']",
    ),
    "deadline as truth": (
        {"deadline": True},
        "deadline: True is not allowed; use 1 second or more, such as '4h' or 3600",
    ),
    "resources": (
        {"resources": "4"},
        "resources: '4' is not allowed; use ResourceRequirements(cpu=4), or a mapping such as {'cpu': 4}",
    ),
    "launcher": (
        {"launcher_resources": {"cpu": "-1"}},
        "launcher_resources.cpu: '-1' is not allowed; use a quantity above 0 such as 4 or '500m'",
    ),
    "env as list": (
        {"env": ["A=1"]},
        "env: ['A=1'] is not allowed; use a mapping, such as {'NAME': 'value'}",
    ),
    "label": (
        {"labels": {"team": "a b"}},
        "labels['team']: 'a b' is not allowed; use up to 63 letters, digits, '-', '_' and '.', with a letter or digit "
        "at both ends",
    ),
    "name of a label": (
        {"labels": {"my label": "a"}},
        "labels: 'my label' is not the name of a label; use up to 63 letters, digits, '-', '_' and '.', if needed "
        "behind a domain and '/'",
    ),
    "annotation as number": (
        {"annotations": {"note": 1}},
        "annotations['note']: 1 is not allowed; use text, such as '1'",
    ),
    "long annotation": (
        {"annotations": {"note": "x" * (256 << 10)}},
        "annotations: 262148 bytes are not allowed; use 262144 or less in all",
    ),
    "annotation": (
        {"annotations": {"my note": "x"}},
        "annotations: 'my note' is not the name of an annotation; use up to 63 letters, digits, '-', '_' and '.', if "
        "needed behind a domain and '/'",
    ),
    "node": (
        {"node_selector": {"gpu": True}},
        "node_selector['gpu']: True is not allowed; use text, such as 'True'",
    ),
    "volumes": (
        {"volumes": [{"emptyDir": {}}]},
        "volumes[0]: name missing; use {'name': 'data', 'emptyDir': {}}",
    ),
    "volume of an unknown source": (
        {"volumes": [{"name": "data", "emptydir": {}}]},
        "volumes[0].emptydir: is not the source of a volume; did you mean emptyDir?; use one such as emptyDir, "
        "persistentVolumeClaim, configMap, secret, nfs, csi, ephemeral, projected",
    ),
    "volume without a source": (
        {"volumes": [{"name": "data"}]},
        "volumes[0]: has no source; use {'name': 'data', 'emptyDir': {}}",
    ),
    "volume of two sources": (
        {"volumes": [{"name": "data", "emptyDir": {}, "configMap": {"name": "c"}}]},
        "volumes[0]: has 2 sources (emptyDir, configMap); use one",
    ),
    "field of a volume": (
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claim": "data"}}]},
        "2 problems:\n  - volumes[0].persistentVolumeClaim.claimName: is missing\n"
        "  - volumes[0].persistentVolumeClaim.claim: unknown field",
    ),
    "name of a volume": (
        {"volumes": [{"name": "my_data", "emptyDir": {}}]},
        "volumes[0].name: 'my_data' is not allowed; use up to 63 lower-case letters, digits and '-', with a letter or "
        "digit at both ends",
    ),
    "volume twice": (
        {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]},
        "volumes[1].name: 'data' is used twice",
    ),
    "path of a mount": (
        {"volume_mounts": [{"name": "data", "mountPath": "data"}]},
        "volume_mounts[0].mountPath: 'data' is not allowed; use a path that begins with '/' and has no ':', such as "
        "'/data'",
    ),
    "field of a mount": (
        {"volume_mounts": [{"name": "data", "mountPath": "/data", "readonly": True}]},
        "volume_mounts[0].readonly: unknown field",
    ),
    "volumes as mapping": (
        {"volumes": {"name": "data"}},
        "volumes: {'name': 'data'} is not allowed; use a list, such as [{'name': 'data', 'emptyDir': {}}]",
    ),
    "queue": (
        {"queue": "My Queue"},
        "queue: 'My Queue' is not the name of a LocalQueue; use lower-case letters, digits, '-' and '.', with a letter "
        "or digit at both ends",
    ),
    "priority class": (
        {"priority": 7},
        "priority: 7 is not the name of a PriorityClass; use lower-case letters, digits, '-' and '.', with a letter or "
        "digit at both ends",
    ),
    "connections": (
        {"connections": "s3"},
        "connections: 's3' is not allowed; use a list, such as ['my-connection']",
    ),
    "connection": (
        {"connections": ["s3", "a/b"]},
        "connections[1]: 'a/b' is not the name of a data connection; use lower-case letters, digits, '-' and '.', with "
        "a letter or digit at both ends",
    ),
    "suspend": ({"suspend": "yes"}, "suspend: 'yes' is not allowed; use True or False"),
    "profile": ({"profile": "yes"}, "profile: 'yes' is not allowed; use True or False"),
    "waiting that is no switch": (
        {"wait_for_quota": "yes"},
        "wait_for_quota: 'yes' is not allowed; use True or False",
    ),
    "mlflow": (
        {"mlflow_tracking_uri": ""},
        "mlflow_tracking_uri: '' is not allowed; use a URL, such as 'https://mlflow.example.com'",
    ),
    "name of a runtime": (
        {"runtime": "my runtime"},
        "runtime: 'my runtime' is not the name of a runtime; use lower-case letters, digits, '-' and '.', with a "
        "letter or digit at both ends",
    ),
    "launcher with a runtime": (
        {"runtime": "mpi", "launcher_resources": {"cpu": 1}},
        "launcher_resources: cannot be combined with runtime; a TrainJob has no field for the size of its launcher, "
        "which is that of a worker if the runtime runs ranks there; set it with kubectl in a copy of the runtime",
    ),
    "folder with a runtime and mpirun": (
        {"runtime": "mpi", "workdir": "/app", "command": "mpirun x"},
        "workdir: cannot be combined with runtime and a command that starts ranks itself; write it in the command: "
        "'mpirun --wdir /app python train.py'",
    ),
    "relative folder": ({"workdir": "app"}, "workdir: 'app' is not allowed; use an absolute path, such as '/app'"),
    "shared memory": ({"shm": "8 GB"}, "shm: '8 GB' is not allowed; use '8Gi'"),
    "results": (
        {"output_dir": "results"},
        "output_dir: 'results' is not allowed; use a claim and an absolute path, such as 'results:/results'",
    ),
    "results in the root": (
        {"output_dir": "results:/"},
        "output_dir: 'results:/' is not allowed; use a claim and an absolute path, such as 'results:/results'",
    ),
    "results over data": (
        {"output_dir": "results:/data/", "volume_mounts": [{"name": "data", "mountPath": "/data"}]},
        "output_dir: /data/ is the path of two volumes",
    ),
    "toleration": (
        {"tolerations": ["gpu:Never"]},
        "tolerations[0]: 'gpu:Never' is not allowed; use KEY[=VALUE][:EFFECT] with effect NoSchedule, "
        "PreferNoSchedule, NoExecute",
    ),
    "toleration as Kubernetes writes none": (
        {"tolerations": [{"keys": "gpu"}]},
        "tolerations[0].keys: unknown field",
    ),
    "one toleration": (
        {"tolerations": "gpu"},
        "tolerations: 'gpu' is not allowed; use a list, such as ['nvidia.com/gpu']",
    ),
    "topology": (
        {"topology": "a b"},
        "topology: 'a b' is not the key of a node label; use one such as 'topology.kubernetes.io/zone', with "
        "'prefer:' before it if possible is enough",
    ),
    "one pull secret": (
        {"image_pull_secrets": "registry"},
        "image_pull_secrets: 'registry' is not allowed; use a list, such as ['my-secret']",
    ),
    "pull secret": (
        {"image_pull_secrets": ["My"]},
        "image_pull_secrets[0]: 'My' is not the name of a secret; use lower-case letters, digits, '-' and '.', with a "
        "letter or digit at both ends",
    ),
    "service account": (
        {"service_account": "My"},
        "service_account: 'My' is not the name of a ServiceAccount; use lower-case letters, digits, '-' and '.', with "
        "a letter or digit at both ends",
    ),
    "grace period": (
        {"grace_period": "soon"},
        "grace_period: 'soon' is not allowed; use 0 seconds or more, such as '2m' or 120",
    ),
}


@pytest.mark.parametrize("job_class", [MPIJob, aio.MPIJob])
@pytest.mark.parametrize("name", WRONG)
def test_bad_input_raises_before_any_request(name: str, job_class: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    options, message = WRONG[name]
    with pytest.raises(InvalidJobError) as invalid:
        job_class(**{"name": "train", **GOOD, **options})
    assert str(invalid.value) == message


def client_of(face: Any) -> Any:
    """A client whose API server nobody may ask."""
    configuration = kubernetes.client.Configuration(host="http://127.0.0.1:1")
    client = face.TrainingClient("ns", configuration=configuration)
    driver = face.client_driver(client)

    async def fail(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("a request was sent")

    driver.request = driver.stream = driver.post = fail
    return client


def job_of(client: Any, face: Any) -> Any:
    return face.MPIJob("train", "ns", client=client, **GOOD)


DURATION = "use 0 or more seconds, or text such as '30s', '4h' or '1h30m'"
OBJECT_NAME = "use lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
NAMESPACE = "use up to 63 lower-case letters, digits and '-', with a letter or digit at both ends"
WEBHOOK = "use a URL with http or https, such as 'https://example.com/hook'"
NO_JOBS = "use a job, such as client.get_job('train') returns, or a list of jobs"
PHASES = ", ".join(phase.value for phase in Phase)
# Calls of a client, or of a job, and what is raised.
WRONG_CALLS: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any], str]] = {
    "timeout as truth": (
        "job",
        "wait_for_completion",
        (),
        {"timeout": True},
        f"timeout: True is not allowed; {DURATION}",
    ),
    "timeout in words": (
        "job",
        "wait_for_completion",
        ("4 hours",),
        {},
        f"timeout: '4 hours' is not allowed; {DURATION}",
    ),
    "timeout below 0": ("job", "wait_for_completion", (-1,), {}, f"timeout: -1 is not allowed; {DURATION}"),
    "timeout that is none": (
        "job",
        "wait_for_completion",
        (float("nan"),),
        {},
        f"timeout: nan is not allowed; {DURATION}",
    ),
    "timeout as list": ("job", "wait_for_completion", ([1],), {}, f"timeout: [1] is not allowed; {DURATION}"),
    "callback": (
        "job",
        "wait_for_completion",
        (),
        {"on_phase": "print"},
        "on_phase: 'print' cannot be called; use a function that takes a JobStatus, such as print",
    ),
    "callback of findings": (
        "client",
        "wait_for_jobs",
        ([],),
        {"on_finding": "print"},
        "on_finding: 'print' cannot be called; use a function that takes a JobStatus and a Finding, such as print",
    ),
    "webhook without a scheme": (
        "job",
        "wait_for_completion",
        (),
        {"webhook": "example.com/hook"},
        f"webhook: 'example.com/hook' is not allowed; {WEBHOOK}",
    ),
    "webhook of another scheme": (
        "job",
        "wait_for_completion",
        (),
        {"webhook": "ftp://example.com"},
        f"webhook: 'ftp://example.com' is not allowed; {WEBHOOK}",
    ),
    "webhook with a bad port": (
        "job",
        "wait_for_completion",
        (),
        {"webhook": "http://example.com:99999/"},
        f"webhook: 'http://example.com:99999/' is not allowed; {WEBHOOK}",
    ),
    "webhook of another kind": (
        "job",
        "wait_for_completion",
        (),
        {"webhook": 7},
        f"webhook: 7 is not allowed; {WEBHOOK}",
    ),
    "all that is wrong with waiting": (
        "client",
        "wait_for_job",
        ("A B", "N S"),
        {"until": "Done", "timeout": True, "on_phase": 1, "webhook": "x"},
        f"6 problems:\n  - name: 'A B' is not allowed; {OBJECT_NAME}\n"
        f"  - namespace: 'N S' is not allowed; {NAMESPACE}\n"
        f"  - until: 'Done' is not a phase; use {PHASES}\n  - timeout: True is not allowed; {DURATION}\n"
        "  - on_phase: 1 cannot be called; use a function that takes a JobStatus, such as print\n"
        f"  - webhook: 'x' is not allowed; {WEBHOOK}",
    ),
    "phase": ("job", "wait_for_phase", ([],), {}, f"until: [] is not a phase; use {PHASES}"),
    "jobs to wait for": ("client", "wait_for_jobs", (["train"],), {}, f"jobs: ['train'] is not allowed; {NO_JOBS}"),
    "webhook of many": (
        "client",
        "wait_for_jobs",
        ([],),
        {"webhook": "x"},
        f"webhook: 'x' is not allowed; {WEBHOOK}",
    ),
    "jobs to create": ("client", "create_jobs", ("train",), {}, f"jobs: 'train' is not allowed; {NO_JOBS}"),
    "jobs to delete": ("client", "delete_jobs", ([None],), {}, f"jobs: [None] is not allowed; {NO_JOBS}"),
    "job to save": ("client", "save_template", ("t", "train"), {}, f"job: ['train'] is not allowed; {NO_JOBS}"),
    "job to create": (
        "client",
        "create_job",
        ("Train_1",),
        {
            "job_kind": "PyTorchJob",
            "num_workers": 0,
            "container_image": "quay.io/me/Train",
            "resources_per_worker": {"memory": 64},
            "workers": 3,
            "que": "q",
            "dry_run": "yes",
            "after": "other",
        },
        "10 problems:\n  - job_kind: 'PyTorchJob' is not allowed; use one of MPIJob, TrainJob; in Kubeflow Trainer it "
        "is a TrainJob with a runtime\n"
        "  - workers: is not an option; use num_workers\n"
        "  - que: is not an option; did you mean queue?; use annotations, command, connections, deadline, env, "
        "gang_timeout, grace_period, image_pull_secrets, labels, launcher_resources, mlflow_tracking_uri, mpi_flags, "
        "mpi_implementation, node_selector, output_dir, priority, profile, queue, rdma, retries, run_as_user, runtime, "
        "service_account, shm, suspend, tolerations, topology, ttl, volume_mounts, volumes, wait_for_quota, workdir\n"
        "  - dry_run: 'yes' is not allowed; use 'client', 'server' or None\n"
        f"  - after: 'other' is not allowed; {NO_JOBS}\n"
        "  - name: 'Train_1' is not allowed; use lower-case letters, digits and '-', with a letter first and no '-' at "
        "the end\n"
        "  - num_workers: 0 is not allowed; use 1 or more\n"
        "  - container_image: 'quay.io/me/Train' is not allowed; use a name such as 'quay.io/me/train'\n"
        "  - command: is missing; use 'python train.py' or ['python', 'train.py']\n"
        "  - resources_per_worker.memory: 64 is 64 bytes; use a unit, such as '16Gi'",
    ),
    "namespace": ("client", "get_job", ("train", "../other"), {}, f"namespace: '../other' is not allowed; {NAMESPACE}"),
    "namespace of a list": ("client", "list_jobs", ("a/b",), {}, f"namespace: 'a/b' is not allowed; {NAMESPACE}"),
    "labels as mapping": (
        "client",
        "list_jobs",
        (),
        {"labels": {"team": "a", "tier": "x"}},
        "labels: {'team': 'a', 'tier': 'x'} is not allowed; use text, such as 'team=a,tier=x'",
    ),
    "label selector": (
        "client",
        "list_jobs",
        (),
        {"labels": "team in (a,b),x y"},
        "labels: 'x y' is not part of a label selector; use text such as 'team=a,tier in (x,y)'",
    ),
    "phase of a list": ("client", "list_jobs", (), {"phase": "Done"}, f"phase: 'Done' is not a phase; use {PHASES}"),
    "kind": (
        "client",
        "delete_job",
        ("train",),
        {"job_kind": "Job"},
        "job_kind: 'Job' is not allowed; use one of MPIJob, TrainJob",
    ),
    "template": ("client", "create_from_template", ("T 1",), {}, f"template: 'T 1' is not allowed; {OBJECT_NAME}"),
    "changes of a template": (
        "client",
        "create_from_template",
        ("t",),
        {"changes": {"workers": 0}},
        "workers: 0 is not allowed; use 1 or more",
    ),
    "all that is wrong with a clone": (
        "job",
        "clone",
        ("A B",),
        {
            "queue": "A B",
            "image": "quay.io/me/Train",
            "memory": 64,
            "cpu": "16Gi",
            "gpu": 0.5,
            "env": {"a b": "1"},
            "labels": {"team": "a b"},
            "deadline": True,
            "suspend": "no",
            "runtime": 7,
            "command": "echo 'a",
            "worker": 3,
            "spec.": 1,
        },
        "14 problems:\n"
        "  - new_name: 'A B' is not allowed; use lower-case letters, digits and '-', with a letter first and no '-' at "
        "the end\n"
        f"  - queue: 'A B' is not the name of a LocalQueue; {OBJECT_NAME}\n"
        "  - image: 'quay.io/me/Train' is not allowed; use a name such as 'quay.io/me/train'\n"
        "  - memory: 64 is 64 bytes; use a unit, such as '16Gi'\n"
        "  - cpu: '16Gi' is 1.71799e+10 CPUs; use CPUs, such as 4 or '500m'\n"
        "  - gpu: 0.5 is not allowed; devices are whole, such as 1\n"
        "  - env: 'a b' is not the name of a variable; use letters, digits, '_', '-' and '.'\n"
        "  - labels['team']: 'a b' is not allowed; use up to 63 letters, digits, '-', '_' and '.', with a letter or "
        "digit at both ends\n"
        "  - deadline: True is not allowed; use 1 second or more, such as '4h' or 3600\n"
        "  - suspend: 'no' is not allowed; use True or False\n"
        f"  - runtime: 7 is not the name of a runtime; {OBJECT_NAME}\n"
        '  - command: "echo \'a" cannot be read: No closing quotation\n'
        "  - worker: cannot be changed; did you mean workers or workdir?; "
        f"use {', '.join(_changes.SETTINGS)}, or a path such as 'spec.slotsPerWorker'\n"
        "  - spec.: is no path; use one such as 'spec.slotsPerWorker'",
    ),
    "update": (
        "client",
        "update_job",
        ("train", "B_1"),
        {"queue": 7, "dry_run": "yes"},
        "3 problems:\n  - new_name: 'B_1' is not allowed; use lower-case letters, digits and '-', with a letter first "
        "and no '-' at the end\n  - dry_run: 'yes' is not allowed; use 'client', 'server' or None\n"
        f"  - queue: 7 is not the name of a LocalQueue; {OBJECT_NAME}",
    ),
    "all that is wrong with logs": (
        "client",
        "get_job_logs",
        ("train",),
        {"ranks": "4-1", "worker_index": -1, "all_pods": True, "since": True, "tail": 1.5, "pattern": "("},
        "6 problems:\n  - ranks: '4-1' is not allowed; use numbers from 0, such as 3, [0, 4] or '0,4-7'\n"
        "  - worker_index: -1 is not allowed; use 0 or more\n  - tail: 1.5 is not allowed; use 0 or more\n"
        "  - all_pods: cannot be combined with worker_index; use one of them\n"
        "  - since: True is not allowed; use seconds, text such as '10m', or a datetime\n"
        "  - pattern: '(' is not a regular expression: missing ), unterminated subpattern at position 0",
    ),
    "grace period": (
        "job",
        "cancel",
        (),
        {"grace_period": "2 min"},
        f"grace_period: '2 min' is not allowed; {DURATION}",
    ),
    "timeout of a deletion": (
        "job",
        "delete",
        (),
        {"wait": True, "timeout": True},
        f"timeout: True is not allowed; {DURATION}",
    ),
    "dry run": ("job", "create", (), {"dry_run": True}, "dry_run: True is not allowed; use 'client', 'server' or None"),
    "job to wait for": ("job", "create", (), {"after": 3}, f"after: 3 is not allowed; {NO_JOBS}"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_bad_calls_raise_before_any_request(name: str, face: Any) -> None:
    on, method, arguments, options, message = WRONG_CALLS[name]
    client = client_of(face)
    target = client if on == "client" else job_of(client, face)
    with pytest.raises(InvalidJobError) as invalid:
        getattr(target, method)(*arguments, **options)
    assert str(invalid.value) == message
    client.close()


@pytest.mark.parametrize("ranks", ["", "4-1", "a", [-1], [True], "1,,2", 1.5, []])
def test_bad_ranks_are_told(ranks: Any, face: Any) -> None:
    client = client_of(face)
    with pytest.raises(InvalidJobError, match=r"ranks: .* is not allowed; use numbers from 0"):
        job_of(client, face).get_logs(ranks=ranks)
    client.close()


WRONG_CLIENTS: dict[str, tuple[dict[str, Any], str]] = {
    "namespace": ({"namespace": "My Project"}, f"namespace: 'My Project' is not allowed; {NAMESPACE}"),
    "kubeconfig": ({"kubeconfig": 7}, "kubeconfig: 7 is not allowed; use the path of a file"),
    "context": ({"context": 7}, "context: 7 is not allowed; use the name of a context"),
}


@pytest.mark.parametrize("name", WRONG_CLIENTS)
def test_bad_clients_raise(name: str, face: Any) -> None:
    options, message = WRONG_CLIENTS[name]
    with pytest.raises(InvalidJobError) as invalid:
        face.TrainingClient(**options)
    assert str(invalid.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": "5m"}, "retry.patience: '5m' is not allowed; use seconds, 0 or more"),
        ({"patience": -1}, "retry.patience: -1 is not allowed; use seconds, 0 or more"),
        ({"initial": 0}, "retry.initial: 0 is not allowed; use seconds, above 0"),
        ({"maximum": True}, "retry.maximum: True is not allowed; use seconds, above 0"),
    ],
)
def test_bad_retry_policies_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidJobError) as invalid:
        RetryPolicy(**options)
    assert str(invalid.value) == message


@pytest.mark.parametrize(
    "image",
    [
        "train",
        "quay.io/me/train",
        "quay.io/me/train:1.0_a-b",
        "localhost:5000/a__b/c---d",
        "[::1]:5000/train",
        "image-registry.openshift-image-registry.svc:5000/ns/train:latest",
        "quay.io/me/train@sha256:" + "0a" * 32,
        "quay.io/me/train:1@sha256:" + "0a" * 32,
        "${IMAGE:-quay.io/me/train}",
    ],
)
def test_images_of_all_forms_are_taken(image: str) -> None:
    MPIJob("train", image=image, command="x")


@pytest.mark.parametrize(
    "labels", ["", "a", "!a", "a=b", "a==b", "a!=b", "x.org/a=b, c", "a in (b, c),d notin (e)", "a in (b)", "a="]
)
def test_label_selectors_of_all_forms_are_taken(labels: str) -> None:
    assert _validate.of_selector(labels) == []


def test_yaml_that_cannot_be_read_is_told() -> None:
    for source in ("/nonexistent.yaml", Path("/nonexistent")):
        with pytest.raises(InvalidJobError, match=r"source: the file /nonexistent.* cannot be read"):
            MPIJob.from_yaml(source)
    with pytest.raises(InvalidJobError, match="source: 7 is not allowed"):
        MPIJob.from_yaml(7)  # type: ignore[arg-type]


def test_every_option_has_a_bad_input_that_names_it() -> None:
    named = {message.partition(":")[0].partition("[")[0].partition(".")[0] for _, message in WRONG.values()}
    named = {name for name in named if not name.endswith(" problems")}
    assert named == set(_job_spec.JobSpec.__dataclass_fields__)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InvalidJobError) as invalid:
        MPIJob("Train_1", workers=0)
    assert [problem.field for problem in invalid.value.problems] == ["name", "workers", "image", "command"]


@pytest.mark.parametrize("namespace", ["", "My Project", "a/b", 7])
def test_a_namespace_that_none_can_have_is_told(namespace: Any) -> None:
    with pytest.raises(InvalidJobError, match=r"namespace: .* is not allowed; use up to 63 lower-case letters"):
        MPIJob("train", namespace, **GOOD)


def test_resources_of_all_kinds_are_taken() -> None:
    resources = {"cpu": 4, "gpu": 1, "ephemeral-storage": "1Gi", "hugepages-2Mi": "64Mi", "rdma/hca": 1}
    MPIJob("train", resources=resources, **GOOD)


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (
            {"cpu": -1, "memory": "64GB", "gpu": 0.5},
            (
                "cpu: -1 is not allowed; use a quantity above 0 such as 4 or '500m'",
                "memory: '64GB' is not allowed; use '64Gi'",
                "gpu: 0.5 is not allowed; use a whole number, 0 or more",
            ),
        ),
        ({"memory": 64}, ("memory: 64 is 64 bytes; use a unit, such as '16Gi'",)),
        ({"memory": "2.5 tib"}, ("memory: '2.5 tib' is not allowed; use '2.5Ti'",)),
        ({"gpu": -2}, ("gpu: -2 is not allowed; use a whole number, 0 or more",)),
        ({"gpu": True}, ("gpu: True is not allowed; use a whole number, 0 or more",)),
        (
            {"gpu": 1, "gpu_resource": "nvidia"},
            ("gpu_resource: 'nvidia' is not the name of a device; use one such as 'nvidia.com/gpu'",),
        ),
        (
            {"cpu": 0, "other": ["rdma/hca"]},
            (
                "other: ['rdma/hca'] is not allowed; use a mapping, such as {'rdma/hca': 1}",
                "cpu: 0 is not allowed; use a quantity above 0 such as 4 or '500m'",
            ),
        ),
        ({"other": {"rdma/hca": 0.5}}, ("rdma/hca: 0.5 is not allowed; devices are whole, such as 1",)),
        (
            {"other": {"cores": 1}},
            (
                "other: 'cores' is not the name of a resource; use cpu, memory, gpu, ephemeral-storage, or a name with "
                "a domain, such as 'nvidia.com/gpu'",
            ),
        ),
    ],
)
def test_resources_are_checked_when_they_are_made(options: dict[str, Any], messages: tuple[str, ...]) -> None:
    with pytest.raises(InvalidJobError) as error:
        ResourceRequirements(**options)
    assert tuple(str(problem) for problem in error.value.problems) == messages


def test_resources_of_a_mapping_are_checked_with_the_job() -> None:
    with pytest.raises(InvalidJobError) as error:
        MPIJob("train", image="x", command="x", workers=10**9, resources={"cpu": -1, "gpu": "0.5"})
    assert [str(problem) for problem in error.value.problems] == [
        "workers: 1000000000 is not allowed; use 1 to 5405",
        "resources.cpu: -1 is not allowed; use a quantity above 0 such as 4 or '500m'",
        "resources.gpu: '0.5' is not allowed; use a whole number, 0 or more",
    ]
    with pytest.raises(InvalidJobError, match=r"gpu: '0\.5' is not allowed"):
        ResourceRequirements.from_mapping({"gpu": "0.5"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 5406}, "workers: 5406 is not allowed; use 1 to 5405"),
        ({"slots_per_worker": 2**31}, "slots_per_worker: 2147483648 is not allowed; use 1 to 2147483647"),
        ({"retries": 2**31}, "retries: 2147483648 is not allowed; use 0 to 2147483647"),
        ({"run_as_user": 2**31}, "run_as_user: 2147483648 is not allowed; use 1 to 2147483647"),
    ],
)
def test_numbers_that_no_job_can_have_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidJobError) as error:
        MPIJob("train", image="x", command="x", **options)
    assert str(error.value) == message
    MPIJob("train", image="x", command="x", workers=5405)


def test_a_name_has_room_for_its_workers() -> None:
    MPIJob("a" * 54, workers=1, **GOOD)
    with pytest.raises(InvalidJobError, match="with 11 workers at most 53 are allowed"):
        MPIJob("a" * 54, workers=11, **GOOD)


def test_a_mount_without_a_volume_is_a_claim() -> None:
    job = MPIJob(
        "train",
        volume_mounts=[{"name": "training-data", "mountPath": "/data"}],
        volumes=[{"name": "scratch", "emptyDir": {}}],
        **GOOD,
    )
    pod = job.manifest["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert pod["volumes"] == [
        {"name": "scratch", "emptyDir": {}},
        {"name": "training-data", "persistentVolumeClaim": {"claimName": "training-data"}},
    ]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "training-data", "mountPath": "/data"}]


def test_durations_of_all_forms() -> None:
    for deadline in ("1h30m", 5400, timedelta(minutes=90)):
        job = MPIJob("train", deadline=deadline, **GOOD)
        assert job.manifest["spec"]["runPolicy"]["activeDeadlineSeconds"] == 5400


def test_mlflow_is_a_variable_of_every_rank() -> None:
    job = MPIJob("train", mlflow_tracking_uri="http://mlflow", **GOOD)
    for role in job.manifest["spec"]["mpiReplicaSpecs"].values():
        assert role["template"]["spec"]["containers"][0]["env"] == [
            {"name": "MLFLOW_TRACKING_URI", "value": "http://mlflow"}
        ]


def test_yaml_with_unknown_fields_is_refused_with_all_of_them() -> None:
    with pytest.raises(InvalidJobError) as invalid:
        MPIJob.from_yaml("""
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: train}
spec:
  slotsPerWorkr: 2
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: a, imag: b}]}}}
""")
    assert [str(problem) for problem in invalid.value.problems] == [
        "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].imag: unknown field",
        "spec.slotsPerWorkr: unknown field",
    ]


@pytest.mark.parametrize("rest", ["", "metadata: [train]", "metadata: {name: train}"])
@pytest.mark.parametrize("kind", [_kinds.MPI_JOB, _kinds.TRAIN_JOB])
def test_yaml_without_a_name_or_a_specification_is_refused(kind: Any, rest: str) -> None:
    with pytest.raises(InvalidJobError, match="is missing"):
        MPIJob.from_yaml(f"apiVersion: {kind.api_version}\nkind: {kind.kind}\n{rest}\n")


def test_the_samples_are_read() -> None:
    for sample in ("pi", "train"):
        assert MPIJob.from_yaml(ROOT / "config" / "samples" / f"{sample}.yaml").name == sample


PATCHES: Any = yaml.safe_load((ROOT / "internal" / "jobs" / "testdata" / "pod_patches.yaml").read_text())


@pytest.mark.parametrize("case", PATCHES["cases"], ids=[case["name"] for case in PATCHES["cases"]])
def test_changes_of_pods_are_those_of_the_command_line(case: dict[str, Any]) -> None:
    spec = _job_spec.JobSpec(name="train", command="train.py", runtime="torch", **case["python"])

    def by_name(jobs: list[Any]) -> dict[str, Any]:
        return {job["name"]: job for job in jobs}

    manifest = _manifest.manifest_of(spec, "ns")
    _trainer_runtime.fit_patch(manifest, PATCHES["runtime"], overrides=False)
    (patch,) = manifest["spec"]["runtimePatches"]
    patched = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert by_name(patched) == by_name(case["patches"])
    if "overrides" in case:
        manifest = _manifest.manifest_of(spec, "ns")
        _trainer_runtime.fit_patch(manifest, PATCHES["runtime"], overrides=True)
        assert manifest["spec"]["podTemplateOverrides"] == case["overrides"]


def test_changes_of_pods_fit_the_runtime() -> None:
    spec = _job_spec.JobSpec(name="train", command="train.py", runtime="mpi", node_selector={"pool": "a100"})
    runtime: Any = {"spec": {"template": {"spec": {"replicatedJobs": []}}}}
    for name, container in (("head", "node"), ("data", "fetch")):
        pod = {"spec": {"containers": [{"name": container}]}}
        runtime["spec"]["template"]["spec"]["replicatedJobs"].append(
            {"name": name, "template": {"spec": {"template": pod}}}
        )
    patch = {"spec": {"nodeSelector": {"pool": "a100"}}}

    manifest = _manifest.manifest_of(spec, "ns")
    _trainer_runtime.fit_patch(manifest, runtime, overrides=False)
    assert manifest["spec"]["runtimePatches"] == [_trainer_runtime.runtime_patch(patch, ["head", "data"])]

    # Kubeflow Trainer v2.1
    manifest = _manifest.manifest_of(spec, "ns")
    _trainer_runtime.fit_patch(manifest, runtime, overrides=True)
    assert "runtimePatches" not in manifest["spec"]
    assert manifest["spec"]["podTemplateOverrides"] == [
        {"targetJobs": [{"name": "head"}], **patch},
        {"targetJobs": [{"name": "data"}], **patch},
    ]

    since_v22 = _job_spec.JobSpec(name="train", command="x", runtime="mpi", run_as_user=7, grace_period=60)
    with pytest.raises(InvalidJobError) as refused:
        _trainer_runtime.fit_patch(_manifest.manifest_of(since_v22, "ns"), runtime, overrides=True)
    text = "cannot be combined with runtime in this cluster; it requires Kubeflow Trainer v2.2"
    assert [str(problem) for problem in refused.value.problems] == [f"grace_period: {text}", f"run_as_user: {text}"]

    # What somebody has changed for one of the jobs stays.
    manifest = _manifest.manifest_of(spec, "ns")
    jobs = manifest["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    jobs[0]["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "cpu"}
    before = deepcopy(manifest)
    _trainer_runtime.fit_patch(manifest, runtime, overrides=False)
    assert manifest == before


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({}, ["mpirun", "--tag-output", "--wdir", "/app", "--bind-to", "core", "-n", "2", "x"]),
        (
            {"mpi.opendatahub.io/mpi-implementation": "MPICH"},
            ["mpirun", "-prepend-rank", "-wdir", "/app", "--bind-to", "core", "-n", "2", "x"],
        ),
    ],
)
def test_flags_and_folder_are_those_of_the_mpirun_of_the_runtime(annotations: dict[str, str], words: list[str]) -> None:
    options: Any = {"workers": 2, "mpi_flags": "--bind-to core", "workdir": "/app"}
    spec = _job_spec.JobSpec(name="train", command="x", runtime="mpi", **options)
    launch = spec.launch_options()
    assert launch is not None
    manifest = _manifest.manifest_of(spec, "ns")
    runtime = {
        "metadata": {"name": "mpi", "annotations": annotations},
        "spec": {"mlPolicy": {"mpi": {}}, "template": {"spec": {}}},
    }
    _trainer_runtime.runtime_command(manifest, runtime, launch)
    assert manifest["spec"]["trainer"]["command"] == words

    with pytest.raises(InvalidJobError) as refused:
        _trainer_runtime.runtime_command(manifest, {"metadata": {"name": "torch"}, "spec": {}}, launch)
    assert [str(problem) for problem in refused.value.problems] == [
        "mpi_flags: cannot be combined with runtime torch, which does not use MPI",
        "workdir: cannot be combined with runtime torch, which does not use MPI; write the folder in the command: "
        "'cd /app && exec python train.py'",
    ]


def test_each_volume_of_a_runtimes_pods_is_mounted_once() -> None:
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "data", "mountPath": "/more", "subPath": "more"}]
    spec = _job_spec.JobSpec(
        name="train", command="x", runtime="mpi", volume_mounts=mounts, output_dir="data:/results", run_as_user=7
    )
    claim = {"persistentVolumeClaim": {"claimName": "data"}}
    assert _manifest.pod_patch(spec)["spec"] == {
        "volumes": [{"name": "data", **claim}, {"name": "volume-1", **claim}, {"name": "data-2", **claim}],
        "containers": [
            {
                "name": "node",
                "volumeMounts": [
                    {"name": "data", "mountPath": "/data"},
                    {"name": "data-2", "mountPath": "/more", "subPath": "more"},
                    {"name": "volume-1", "mountPath": "/results", "subPath": "train"},
                ],
                "securityContext": {"runAsUser": 7, "runAsNonRoot": True},
            }
        ],
    }
