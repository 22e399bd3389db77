"""What a runtime offers and requires, from its object, and runtimes that are made from others."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from openshift_ai_sdk.training import InvalidJobError, JobNotFoundError, _shipped_runtimes
from openshift_ai_sdk.training._job_spec import IMPLEMENTATIONS
from openshift_ai_sdk.training._runtime_changes import NewRuntime, copy_of, problems_of_reference
from openshift_ai_sdk.training._runtime_settings import RuntimeSettings, pods_of
from openshift_ai_sdk.training._runtime_tests import TestRequest
from openshift_ai_sdk.training._runtimes import read
from openshift_ai_sdk.training._shipped_runtimes import release, shipped, shipped_for, tag_of


def job(name: str, image: str, **pod: Any) -> dict[str, Any]:
    containers = [{"name": "log", "image": "logger"}, {"name": "node", "image": image}]
    return {"name": name, "template": {"spec": {"template": {"spec": {"containers": containers, **pod}}}}}


def test_a_runtime_of_mpi_is_read() -> None:
    notes = {
        "mpi-implementation": "MPICH",
        "min-workers": "2",
        "max-workers": "8",
        "max-gpus-per-worker": "4",
        "required-node-labels": "pool=gpu",
        "allow-egress": "9000",
        "schedule-timeout-seconds": "300",
    }
    jobs = [job("launcher", "launch:1"), job("node", "train:1", priorityClassName="urgent"), job("other", "x")]
    item = {
        "metadata": {
            "name": "mine",
            "namespace": "team",
            "annotations": {f"mpi.opendatahub.io/{name}": value for name, value in notes.items()},
        },
        "spec": {"mlPolicy": {"mpi": {"numProcPerNode": 2}}, "template": {"spec": {"replicatedJobs": jobs}}},
    }
    found = read(item)
    assert (found.name, found.namespace, found.kind) == ("mine", "team", "TrainingRuntime")
    assert (found.implementation, found.slots, found.image, found.priority_class) == ("MPICH", 2, "train:1", "urgent")
    assert (found.min_workers, found.max_workers, found.max_gpus) == ("2", "8", "4")
    assert (found.node_labels, found.allow_egress, found.gang_timeout) == ("pool=gpu", "9000", "300")
    assert found.manifest is item


def test_a_runtime_without_limits_is_read() -> None:
    found = read({"metadata": {"name": "shared"}, "spec": {"mlPolicy": {"mpi": {}}}})
    assert (found.namespace, found.kind) == (None, "ClusterTrainingRuntime")
    assert (found.implementation, found.slots, found.image, found.max_workers) == ("OpenMPI", 1, None, None)


def test_a_runtime_without_mpi_is_read() -> None:
    jobs = [job("node", "torch:1")]
    spec = {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": jobs}}}
    found = read({"metadata": {"name": "torch", "annotations": None}, "spec": spec})
    assert (found.implementation, found.slots, found.image) == (None, None, "torch:1")
    assert read({"metadata": {"name": "empty"}}).implementation is None


CASES = json.loads((Path(__file__).parent / "runtimes.json").read_text())
ARGUMENTS = {
    "name": "name",
    "image": "image",
    "slots": "slots",
    "maxWorkers": "max_workers",
    "minWorkers": "min_workers",
    "maxGPUs": "max_gpus",
    "gangTimeoutSeconds": "gang_timeout",
    "priorityClass": "priority_class",
    "requiredNodeLabels": "required_node_labels",
    "allowEgress": "allow_egress",
    "agentImage": "agent_image",
    "runAsUser": "run_as_user",
    "": "",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_runtimes_are_made_as_by_the_command_line_and_the_dashboard(case: dict[str, Any]) -> None:
    """The test TestRuntimesOfSDK in Go writes the cases with what they make of the same settings."""
    given = {**case["settings"], **{field: case[field] for field in ("agentImage", "runAsUser") if field in case}}
    if given.get("requiredNodeLabels"):
        given["requiredNodeLabels"] = dict(each.split("=") for each in given["requiredNodeLabels"].split(","))
    arguments = {ARGUMENTS[field]: None if value == "" else value for field, value in given.items()}
    reference = case["from"] if isinstance(case["from"], str) else "mpi"
    before = shipped(reference.removeprefix("shipped/")) if isinstance(case["from"], str) else case["from"]
    source, original = read(before), deepcopy(before)
    new = NewRuntime(case["runtime"], not case["namespace"], None, reference, RuntimeSettings(**arguments))
    problems = new.problems() or new.settings.problems_with(source)
    assert sorted(problem.field for problem in problems) == sorted(ARGUMENTS[each] for each in case.get("refused", []))
    if not problems:
        assert copy_of(source, new.name, case["namespace"] or None, new.settings) == case["object"]
    assert before == original, "the runtime to start from is changed"


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        ({"slots": True}, ["slots: True is not allowed; use a whole number, 1 or more"]),
        ({"slots": 2**31}, ["slots: 2147483648 is not allowed; use 2147483647 or less"]),
        ({"max_workers": 0}, ["max_workers: 0 is not allowed; use 1 or more, or None for no limit"]),
        ({"max_gpus": "2"}, ["max_gpus: '2' is not allowed; use a whole number, 0 or more, or None for no limit"]),
        ({"image": "${IMAGE}"}, ["image: '${IMAGE}' is not allowed; a runtime has no parameters"]),
        (
            {"required_node_labels": {"pool": "a b"}},
            [
                "required_node_labels['pool']: 'a b' is not allowed; use up to 63 letters, digits, '-', '_' and '.', "
                "with a letter or digit at both ends"
            ],
        ),
        (
            {"required_node_labels": {"pool": "${POOL}"}},
            ["required_node_labels: {'pool': '${POOL}'} is not allowed; a runtime has no parameters"],
        ),
        (
            {"allow_egress": 9000},
            [
                "allow_egress: 9000 is not allowed; use destinations, separated by commas, such as "
                "'192.0.2.7:2049,namespace/minio:9000'"
            ],
        ),
        ({"run_as_user": 0}, ["run_as_user: 0 is not allowed; use 1 or more: runtimes do not run as root"]),
        (
            {"min_workers": 5, "max_workers": 4, "gang_timeout": "500ms"},
            [
                "min_workers: 5 is not allowed; use at most 4, the maximum",
                "gang_timeout: '500ms' is not allowed; use whole seconds, 1 or more, such as '10m', or None for the "
                "default",
            ],
        ),
    ],
)
def test_settings_are_checked_before_a_request(settings: dict[str, Any], texts: list[str]) -> None:
    assert [str(problem) for problem in RuntimeSettings(**settings).problems()] == texts


def test_a_maximum_below_the_minimum_of_the_runtime_is_named_as_the_argument() -> None:
    notes = {"mpi.opendatahub.io/min-workers": "4", "mpi.opendatahub.io/max-workers": "many"}
    runtime = read({"metadata": {"name": "mine", "annotations": notes}, "spec": {"mlPolicy": {"mpi": {}}}})
    with pytest.raises(InvalidJobError, match=r"^max_workers: 3 is not allowed; use 4 or more, the minimum$"):
        RuntimeSettings(max_workers=3).applied_to(runtime)
    # What is not given stays, whatever it is.
    changed = RuntimeSettings(min_workers=None).applied_to(runtime)
    assert changed["metadata"]["annotations"] == {"mpi.opendatahub.io/max-workers": "many"}


def test_a_gang_timeout_is_written_in_seconds() -> None:
    runtime = read({"metadata": {"name": "mine"}, "spec": {"mlPolicy": {"mpi": {}}}})
    changed = RuntimeSettings(gang_timeout="10m").applied_to(runtime)
    assert changed["metadata"]["annotations"] == {"mpi.opendatahub.io/schedule-timeout-seconds": "600"}


def test_labels_that_nodes_must_have_are_those_of_all_pods() -> None:
    jobs = [job("launcher", "a", nodeSelector={"disk": "ssd", "pool": "cpu"}), job("node", "a")]
    spec = {"mlPolicy": {"mpi": {}}, "template": {"spec": {"replicatedJobs": jobs}}}
    runtime = read({"metadata": {"name": "mine"}, "spec": spec})
    for labels, launcher, node in (
        ({"pool": "gpu", "zone": "a"}, {"disk": "ssd", "pool": "gpu", "zone": "a"}, {"pool": "gpu", "zone": "a"}),
        ({"zone": "b"}, {"disk": "ssd", "zone": "b"}, {"zone": "b"}),
        (None, {"disk": "ssd"}, None),
    ):
        runtime = read(RuntimeSettings(required_node_labels=labels).applied_to(runtime))
        assert [pod.get("nodeSelector") for pod in pods_of(runtime.manifest)] == [launcher, node]
        assert runtime.node_labels == (
            ",".join(f"{name}={value}" for name, value in labels.items()) if labels else None
        )


@pytest.mark.parametrize("reference", ["mine", "shipped/mpi-openmpi", "TrainingRuntime/a.b"])
def test_references_of_runtimes(reference: str) -> None:
    assert problems_of_reference(reference, "name") == []


@pytest.mark.parametrize("reference", ["", "Mine", "a/b", "shipped/", "mpijob/a", "a/b/c", "${a}", None, 1])
def test_other_texts_are_no_references_of_runtimes(reference: object) -> None:
    (problem,) = problems_of_reference(reference, "name")
    assert problem.message.endswith("use the name of a runtime, 'shipped/NAME', 'trainingruntime/NAME' or "
                                    "'clustertrainingruntime/NAME'")  # fmt: skip


def test_shipped_runtimes_have_the_images_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [tag_of(each) for each in ("0.2.0", "0.2.0rc1", "0.2.0.dev3", "0.2")] == [
        "v0.2.0",
        "v0.2.0-rc.1",
        None,
        None,
    ]
    assert release() is None, "the tests run from a tree of source code"
    assert read(shipped("mpi-openmpi")).image == "quay.io/opendatahub/mpi-sample-openmpi:latest"
    monkeypatch.setattr(_shipped_runtimes, "release", lambda: "v1.2.3")
    tagged = json.dumps(shipped("mpi-openmpi"))
    assert "quay.io/opendatahub/mpi-sample-openmpi:v1.2.3" in tagged
    assert "quay.io/opendatahub/mpijob-agent:v1.2.3" in tagged
    assert ":latest" not in tagged
    with pytest.raises(
        JobNotFoundError, match=r"did you mean mpi-openmpi.*\?; shipped are mpi-deepspeed, .*mpi-openmpi5$"
    ):
        shipped("mpi-openmp")


def test_there_is_a_shipped_runtime_of_each_implementation() -> None:
    for name in IMPLEMENTATIONS:
        assert read(shipped(shipped_for(name))).implementation == name


OPENSHIFT = "/apis/security.openshift.io/v1"


@pytest.mark.parametrize("kinds", [None, [], ["SecurityContextConstraints"]])
def test_openshift_picks_the_user_of_pods(small: Any, small_client: Any, kinds: list[str] | None) -> None:
    answer = {"resources": [{"kind": kind} for kind in kinds or []]}
    small.fails = lambda method, path: (200, answer) if path == OPENSHIFT and kinds is not None else None
    made = small_client.create_runtime("mine", image="quay.io/me/train:1")
    user = None if kinds else 1000
    pods = pods_of(made.manifest)
    assert [pod["securityContext"].get("runAsUser") for pod in pods] == [user, user]
    # Nothing is asked for a runtime that is not created.
    small.requests.clear()
    assert small_client.create_runtime("mine", dry_run="client").slots == 1
    assert not small.requests


def test_what_is_wrong_with_a_runtime_is_reported_at_once(small: Any, small_client: Any) -> None:
    with pytest.raises(InvalidJobError) as error:
        small_client.create_runtime(
            "My runtime", implementation="MVAPICH", max_workers=0, cluster="yes", namespace="A", dry_run="no"
        )
    fields = {problem.field for problem in error.value.problems}
    assert fields == {"name", "implementation", "max_workers", "cluster", "namespace", "dry_run"}
    for call, text in (
        (
            lambda: small_client.create_runtime("a", implementation="MPICH", from_runtime="b"),
            "cannot be combined with f",
        ),
        (
            lambda: small_client.create_runtime("a", implementation="Intel"),
            "image: is required: nobody publishes an im",
        ),
        (lambda: small_client.update_runtime("a"), "nothing is changed; use one or more of image, slots, max_workers,"),
        (
            lambda: small_client.update_runtime("a", slots=1, cluster=True, namespace="b"),
            "namespace: cannot be combine",
        ),
        (
            lambda: small_client.test_runtime("shipped/mpi-mpich"),
            "name: 'shipped/mpi-mpich' is not in the cluster; cre",
        ),
        (lambda: small_client.test_runtime("a", timeout="1s"), "timeout: '1s' is not allowed; use '10s' to '1h'"),
        (
            lambda: small_client.test_runtime("a", gpu=1, gpu_resource="gpu"),
            "gpu_resource: 'gpu' is not the name of a device; use one such as 'nvidia.com/gpu'",
        ),
        (
            lambda: small_client.test_runtime("a", cpu="lots", queue="A b"),
            "2 problems:\n  - cpu: 'lots' is not allowed",
        ),
    ):
        with pytest.raises(InvalidJobError, match=re.escape(text)):
            call()
    assert not small.requests


def test_a_test_asks_for_what_is_given() -> None:
    runtime = read({"metadata": {"name": "a" * 50, "namespace": "team"}})
    request = TestRequest("mine", "quay.io/me/train", 2, "1Gi", 1, "amd.com/gpu", "team", "90s", keep=False, wait=False)
    assert request.manifest(runtime) == {
        "apiVersion": "mpi.opendatahub.io/v1alpha1",
        "kind": "RuntimeTest",
        "metadata": {"generateName": "a" * 39 + "-", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {
            "runtimeRef": {"kind": "TrainingRuntime", "name": "a" * 50},
            "timeoutSeconds": 90,
            "image": "quay.io/me/train",
            "resourcesPerNode": {
                "requests": {"cpu": "2", "memory": "1Gi", "amd.com/gpu": "1"},
                "limits": {"memory": "1Gi", "amd.com/gpu": "1"},
            },
            "ttlSecondsAfterFinished": 86400,
        },
    }
