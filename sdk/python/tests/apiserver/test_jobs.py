"""Jobs on a real API server; the tests play the operator."""

from __future__ import annotations

import dataclasses
import html
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from servers import Cluster, Operator

from openshift_ai_sdk.training import (
    InvalidJobError,
    JobExistsError,
    JobNotFoundError,
    JobRefusedError,
    JobTimeoutError,
    MPIJobFailed,
    NotLoggedInError,
    NotSupportedError,
    PermissionDeniedError,
    TrainingClient,
    TrainingError,
    _events,
    _kinds,
    _links,
    _logs,
    _trainer_runtime,
    _wait,
    _wait_reports,
)

OUT_OF_MEMORY = {
    "findings": [
        {
            "code": "OutOfMemory",
            "severity": "Error",
            "summary": "Worker 1 used more than its limit of 4 GiB.",
            "evidence": ["exit code 137"],
            "remedies": [
                {
                    "text": "Raise the limit; for a start 8 GiB",
                    "action": "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].resources.limits.memory",
                    "rerun": True,
                    "changes": [
                        {
                            "field": "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].resources.limits.memory",
                            "value": "8Gi",
                        },
                        {"field": "env.NCCL_DEBUG", "value": "1"},
                    ],
                },
                {"text": "Ask somebody"},
            ],
        },
        {"code": "LauncherFailed", "severity": "Info", "summary": "mpirun ended with 1."},
    ],
    "failure": {
        "code": "OutOfMemory",
        "pod": "train-worker-1",
        "rank": 1,
        "exitCode": 137,
        "logTail": ["[train-worker-1] bye"],
    },
}


def create(client: Any, name: str = "train", **options: Any) -> Any:
    return client.create_job(name, container_image="image", command="train.py", num_workers=2, **options)


def test_create_job_as_the_requirements_write_it(client: Any, operator: Operator) -> None:
    job = client.create_job(
        name="protein-folding-sim-001",
        job_kind="MPIJob",
        num_workers=32,
        resources_per_worker={"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"},
        container_image="registry.redhat.io/openshift-ai/molecular-dynamics:latest",
        command=["mpirun", "-np", "64", "python", "simulate.py"],
        env={"SIMULATION_STEPS": "10000000", "PROTEIN_ID": "ACE2"},
    )
    spec = job.manifest["spec"]
    launcher = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    worker = spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert spec["slotsPerWorker"] == 2
    assert launcher["command"] == ["mpirun", "-np", "64", "python", "simulate.py"]
    assert worker["resources"]["limits"] == {"memory": "64Gi", "nvidia.com/gpu": "2"}
    assert operator.jobs() == ["protein-folding-sim-001"]


def test_an_existing_name_is_told(client: Any) -> None:
    create(client)
    with pytest.raises(JobExistsError, match="take another name"):
        create(client)


def test_a_job_is_created_again_once_it_is_deleted(client: Any, operator: Operator) -> None:
    job = create(client, suspend=True)
    before = job.manifest["metadata"]["uid"]
    with pytest.raises(JobExistsError, match="take another name"):
        job.create()
    job.delete(wait=True)
    job.create()
    assert job.manifest["metadata"]["uid"] != before
    assert job.manifest["spec"]["runPolicy"]["suspend"] is True


@pytest.mark.parametrize("name", ["", None, "a/b", "../pods"])
def test_names_that_no_job_can_have_are_told(client: Any, name: Any) -> None:
    for call in (client.get_job, client.delete_job, client.update_job, client.wait_for_job, client.get_job_logs):
        with pytest.raises(InvalidJobError, match=r"name: .* is not allowed; use lower-case letters"):
            call(name)


def test_create_prints_where_the_job_can_be_seen(
    client: Any, operator: Operator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_links.shutil, "which", lambda program: None)
    create(client, "unread")
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(_links, "is_interactive", lambda: True)
    first = create(client, "first")
    described = f"created in {operator.namespace}\n  oc odh mpijob describe"
    assert capsys.readouterr().out == f"mpijob/first {described} first -n {operator.namespace}\n"
    assert first.get_dashboard_url() is None
    monkeypatch.setenv("MPIJOB_DASHBOARD_URL", "https://dashboard.example.com/")
    second = create(client, "second")
    url = f"https://dashboard.example.com/projects/{operator.namespace}/mpijob/second"
    assert capsys.readouterr().out == f"mpijob/second {described} second -n {operator.namespace}\n  {url}\n"
    assert second.get_dashboard_url() == url
    client.update_job("first", dry_run="server")
    assert capsys.readouterr().out == ""
    third = first.clone(workers=3)
    url = url.replace("second", "first-2")
    assert capsys.readouterr().out == f"mpijob/first-2 {described} first-2 -n {operator.namespace}\n  {url}\n"
    assert f"{operator.namespace}/first-2: " in repr(third) and "job.wait_for_completion()" in repr(third)
    assert "<b>mpijob/first-2</b>" in third._repr_html_() and "job.get_logs(follow=True)" in third._repr_html_()


def test_the_dashboard_is_found_in_the_application_menu(client: Any, operator: Operator) -> None:
    place = ("console.openshift.io", "v1", "consolelinks")
    spec = {"href": "https://menu.example.com/", "location": "ApplicationMenu", "text": "MPIJobs"}
    link = {"apiVersion": "console.openshift.io/v1", "kind": "ConsoleLink", "metadata": {"name": "mpijob-dashboard"}}
    operator.custom.create_cluster_custom_object(*place, {**link, "spec": spec})
    assert create(client).get_dashboard_url() == f"https://menu.example.com/projects/{operator.namespace}/mpijob/train"
    operator.custom.delete_cluster_custom_object(*place, "mpijob-dashboard")


def test_what_the_api_server_refuses_is_told_by_field(client: Any) -> None:
    job = create(client, dry_run="client")
    job.manifest["spec"]["mpiImplementation"] = "MyMPI"
    with pytest.raises(JobRefusedError) as refused:
        job.create()
    assert [problem.field for problem in refused.value.problems] == ["spec.mpiImplementation"]
    with pytest.raises(JobRefusedError, match=r'unknown field "spec\.foo"'):
        create(client).clone(**{"spec.foo": 1})


def test_dry_run_creates_nothing(client: Any, operator: Operator) -> None:
    create(client, dry_run="server")
    create(client, dry_run="client")
    assert operator.jobs() == []
    job = create(client)
    for dry_run in ("server", "client"):
        again = job.clone(workers=3, dry_run=dry_run)
        assert (again.name, again.manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]) == ("train-2", 3)
        assert "wait_for_completion" not in repr(again) and "not created yet" in again._repr_html_()
        client.update_job("train", dry_run=dry_run)
    assert operator.jobs() == ["train"]


def test_a_restricted_namespace_gets_restricted_pods(client: Any, operator: Operator) -> None:
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    operator.core.patch_namespace(operator.namespace, {"metadata": {"labels": label}})
    job = create(client)
    for role in job.manifest["spec"]["mpiReplicaSpecs"].values():
        assert role["template"]["spec"]["containers"][0]["securityContext"]["runAsNonRoot"] is True


def test_wait_returns_when_the_job_has_succeeded(client: Any, operator: Operator) -> None:
    job = create(client)
    operator.report(job, "Initializing", workers=counts(0))
    phases: list[str] = []

    def on_phase(status: Any) -> None:
        phases.append(str(status.phase))
        following = {"Initializing": "Running", "Running": "Succeeded"}.get(str(status.phase))
        if following:
            operator.report(job, following, workers=counts(2))

    status = job.wait_for_completion(timeout="1m", on_phase=on_phase)
    assert phases == ["Initializing", "Running", "Succeeded"]
    assert status.is_finished and status.workers.summary == "2/2"


def counts(ready: int) -> dict[str, Any]:
    return {"summary": f"{ready}/2", "wanted": 2, "ready": ready, "running": ready, "succeeded": 0, "failed": 0}


def test_a_failed_job_raises_cause_remedies_rank_and_pod(client: Any, operator: Operator) -> None:
    job = create(client)
    operator.report(job, "Failed", **OUT_OF_MEMORY)
    with pytest.raises(MPIJobFailed) as failed:
        job.wait_for_completion()
    failure = failed.value
    assert failure.cause is not None and failure.cause.code == "OutOfMemory"
    assert (failure.rank, failure.pod, failure.log_tail) == (1, "train-worker-1", ["[train-worker-1] bye"])
    assert [remedy.text for remedy in failure.remedies] == ["Raise the limit; for a start 8 GiB", "Ask somebody"]
    assert "OutOfMemory: Worker 1 used more than its limit of 4 GiB. (pod train-worker-1, rank 1)" in str(failure)
    assert len(failure.changes) == 1
    call = f"job.clone(**{failure.changes[0]!r})"
    assert f"1. Raise the limit; for a start 8 GiB\n     {call}\n  2. Ask somebody" in str(failure)
    assert html.escape(call) in failure._repr_html_() and html.escape(call) in job._repr_html_()
    assert f"in the namespace <b>{operator.namespace}</b> of {client.host}" in failure._repr_html_()
    assert job.clone(**failure.changes[0]).name == "train-2"


def test_waiting_for_failure_is_no_error(client: Any, operator: Operator) -> None:
    job = create(client)
    operator.report(job, "Failed")
    assert job.wait_for_phase(["failed"]).is_failed


def test_a_phase_that_the_job_has_been_through_counts(client: Any, operator: Operator) -> None:
    job = create(client)
    operator.report(job, "Running")
    operator.report(job, "Succeeded")
    assert job.wait_for_phase("Running").phase == "Succeeded"


def test_timeout_tells_how_the_job_is_and_leaves_it_alone(client: Any, operator: Operator) -> None:
    job = create(client)
    operator.report(job, "Running")
    with pytest.raises(JobTimeoutError) as late:
        job.wait_for_completion(timeout=0.3)
    assert late.value.status.phase == "Running"
    assert operator.jobs() == ["train"]


def test_waiting_for_a_deleted_job_ends(client: Any, operator: Operator) -> None:
    job = create(client)
    job.delete()
    with pytest.raises(JobNotFoundError):
        job.wait_for_completion(timeout=30)


FOLLOWED = {
    "completion": lambda client, job: job.wait_for_completion(timeout=60),
    "jobs": lambda client, job: client.wait_for_jobs([job], timeout=60),
    "logs": lambda client, job: list(job.get_logs(follow=True)),
    "events": lambda client, job: list(job.stream_events()),
}
AFTER = {"after": lambda client, job: create(client, "second", after=job)}


@pytest.mark.parametrize("what", FOLLOWED)
def test_following_a_job_that_is_deleted_before_it_has_a_report_ends(
    what: str, client: Any, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No operator runs, so that nobody writes that the job was deleted."""
    monkeypatch.setattr(_wait_reports, "FIRST_LOOK", 0.2)
    job = create(client)
    looked = threading.Event()
    require = {"jobs": "require_all"}.get(what, "require")
    before = getattr(_wait_reports, require)

    async def required(*arguments: Any) -> None:
        await before(*arguments)
        looked.set()

    monkeypatch.setattr(_wait_reports, require, required)

    def delete() -> None:
        looked.wait(60)
        operator.custom.delete_namespaced_custom_object(
            "kubeflow.org", "v2beta1", operator.namespace, "mpijobs", "train"
        )

    deleter = threading.Thread(target=delete)
    deleter.start()
    with pytest.raises(JobNotFoundError, match=r"mpijob/train .* was deleted before the operator recorded anything"):
        FOLLOWED[what](client, job)
    deleter.join()


@pytest.mark.parametrize("what", FOLLOWED)
def test_a_report_that_comes_late_is_waited_for(
    what: str, client: Any, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_wait_reports, "FIRST_LOOK", 0.2)
    job = create(client)
    looks = 0
    before = _wait_reports.pauses_without_a_report

    def pauses() -> Iterator[float]:
        nonlocal looks
        for pause in before():
            looks += 1
            if looks == 3:
                operator.report(job, "Succeeded")
            yield pause

    monkeypatch.setattr(_wait_reports, "pauses_without_a_report", pauses)
    FOLLOWED[what](client, job)
    assert looks >= 3


CALLS_AGAIN = {
    "after": "mpijob/train keeps running; follow again with MPIJob.get('train', {0!r}).wait_for_completion()\n"
    "detached: mpijob/second is not created; create it again with create(after=...)",
    "completion": "mpijob/train keeps running; follow again with MPIJob.get('train', {0!r}).wait_for_completion()",
    "jobs": "mpijob/train keeps running; follow again with "
    "TrainingClient().wait_for_jobs([MPIJob.get('train', {0!r})])",
    "logs": "mpijob/train keeps running; follow again with MPIJob.get('train', {0!r}).get_logs(follow=True)",
    "events": "mpijob/train keeps running; follow again with MPIJob.get('train', {0!r}).stream_events()",
}


@pytest.mark.parametrize("what", FOLLOWED | AFTER)
def test_ctrl_c_detaches_and_says_how_to_follow_again(
    what: str,
    cluster: Cluster,
    operator: Operator,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """The real signal, while this thread waits."""
    # Shells start programs in the background with SIGINT ignored.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, previous))
    with TrainingClient(operator.namespace, configuration=cluster.configuration()) as client:
        job = create(client)
        operator.report(job, "Running")
        watching = threading.Event()
        before = _wait_reports.watch_reports if what != "jobs" else _wait_reports.watch_all_reports

        async def watched(*arguments: Any) -> Any:
            async for item in before(*arguments):
                watching.set()
                yield item

        for module in (_events, _logs, _wait):
            if hasattr(module, before.__name__):
                monkeypatch.setattr(module, before.__name__, watched)

        def interrupt() -> None:
            watching.wait(60)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            (FOLLOWED | AFTER)[what](client, job)
        assert capsys.readouterr().out == f"detached: {CALLS_AGAIN[what].format(operator.namespace)}\n"
        assert operator.jobs() == ["train"]


def test_status_before_the_operator_has_seen_the_job(client: Any) -> None:
    status = create(client).get_status()
    assert status.phase is None
    assert str(status) == "Waiting for the operator to see the job"


def test_the_report_of_an_earlier_job_of_the_same_name_is_not_this_jobs(client: Any, operator: Operator) -> None:
    operator.write_report("MPIJob", "train", "11111111-old", "Failed")
    job = create(client)
    assert job.get_status().phase is None
    operator.report(job, "Succeeded")
    assert job.wait_for_completion(timeout=30).phase == "Succeeded"


def test_a_deleted_job_is_found_by_its_record(client: Any, operator: Operator) -> None:
    job = create(client)
    operator.report(job, "Failed", **OUT_OF_MEMORY)
    job.delete(wait=True, timeout=30)
    found = client.get_job("train")
    assert found.get_status().cause.code == "OutOfMemory"
    assert str(found.get_logs()) == "bye"
    assert str(found.get_logs(worker_index=0)) == ""


def test_a_name_that_is_near_is_suggested(client: Any) -> None:
    create(client)
    with pytest.raises(JobNotFoundError, match="did you mean train"):
        client.get_job("trian")


def test_list_jobs_filters(client: Any, operator: Operator) -> None:
    for name in ("b", "a"):
        operator.report(create(client, name, labels={"team": name}), "Running" if name == "a" else "Failed")
    assert [job.name for job in client.list_jobs()] == ["a", "b"]
    assert [job.name for job in client.list_jobs(phase="failed")] == ["b"]
    assert [job.name for job in client.list_jobs(labels="team=a")] == ["a"]
    assert [job.name for job in client.list_jobs(job_kind="TrainJob")] == []


def test_events_come_each_once_and_in_order(client: Any, operator: Operator) -> None:
    job = create(client)
    operator.report(job, "Running", timeline=entries("Created", "Running"))
    seen = []
    for event in job.stream_events():
        seen.append(event.name)
        if event.name == "Running":
            operator.report(job, "Succeeded", timeline=entries("Created", "Running", "Succeeded"))
    assert seen == ["Created", "Running", "Succeeded"]


def entries(*events: str) -> list[dict[str, str]]:
    return [{"time": f"2026-01-02T10:00:0{number}Z", "event": event} for number, event in enumerate(events)]


def test_suspend_and_resume_write_the_field(client: Any) -> None:
    job = create(client)
    job.suspend()
    assert client.get_job("train").manifest["spec"]["runPolicy"]["suspend"] is True
    job.resume()
    assert client.get_job("train").manifest["spec"]["runPolicy"]["suspend"] is False


def test_in_a_queue_an_annotation_suspends(client: Any, operator: Operator) -> None:
    job = create(client, queue="q")
    uid = job.manifest["metadata"]["uid"]
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train", "uid": uid, "controller": True}
    place = ("kueue.x-k8s.io", "v1beta2", operator.namespace, "workloads")
    annotations = {"mpi.opendatahub.io/gang-timeouts": "2 2026-01-02T10:00:00Z"}
    operator.custom.create_namespaced_custom_object(
        *place,
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "spec": {"active": True},
            "metadata": {
                "name": "w",
                "labels": {"kueue.x-k8s.io/job-uid": uid},
                "ownerReferences": [owner],
                "annotations": annotations,
            },
        },
    )
    annotation = "mpi.opendatahub.io/suspend-in-queue"
    for _ in range(2):
        job.suspend()
    manifest = client.get_job("train").manifest
    assert manifest["metadata"]["annotations"][annotation] == "true"
    assert manifest["spec"]["runPolicy"]["suspend"] is False
    assert operator.custom.get_namespaced_custom_object(*place, "w")["spec"]["active"] is True
    job.resume()
    assert annotation not in client.get_job("train").manifest["metadata"].get("annotations", {})

    # A Workload that somebody else has deactivated is activated itself.
    operator.custom.patch_namespaced_custom_object(*place, "w", {"spec": {"active": False}})
    job.resume()
    workload = operator.custom.get_namespaced_custom_object(*place, "w")
    assert workload["spec"]["active"] is True
    assert workload["metadata"]["annotations"] == {"mpi.opendatahub.io/gang-timeouts": "2"}


def test_a_finished_job_cannot_be_suspended(client: Any, operator: Operator) -> None:
    job = create(client)
    condition = {"type": "Succeeded", "status": "True"}
    operator.custom.patch_namespaced_custom_object_status(
        "kubeflow.org",
        "v2beta1",
        operator.namespace,
        "mpijobs",
        "train",
        {"status": {"conditions": [condition], "replicaStatuses": {}}},
    )
    with pytest.raises(TrainingError, match="is finished"):
        job.suspend()


@pytest.mark.parametrize("seconds", [5, 90])
def test_cancel_gives_pods_the_grace_period(seconds: int, client: Any, operator: Operator) -> None:
    job = create(client)
    operator.pod(job, "train-worker-0")
    job.cancel(grace_period=f"{seconds}s")
    pod = operator.core.read_namespaced_pod("train-worker-0", operator.namespace)
    assert pod.metadata.deletion_grace_period_seconds == seconds
    assert operator.jobs() == []


def test_clone_makes_changes_under_the_next_free_name(client: Any, operator: Operator) -> None:
    job = create(client, suspend=True, env={"A": "1", "B": "2"})
    again = job.clone(workers=8, memory="64Gi", env={"A": None, "C": "3"}, **{"spec.runPolicy.cleanPodPolicy": "All"})
    spec = again.manifest["spec"]
    worker = spec["mpiReplicaSpecs"]["Worker"]
    assert again.name == "train-2" and operator.jobs() == ["train", "train-2"]
    assert worker["replicas"] == 8
    assert worker["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] == "64Gi"
    assert [each["name"] for each in worker["template"]["spec"]["containers"][0]["env"]] == ["B", "C"]
    assert spec["runPolicy"] == {"cleanPodPolicy": "All", "backoffLimit": 0, "suspend": False}
    assert client.update_job("train", workers=3).name == "train-3"
    with pytest.raises(InvalidJobError, match="workers: 0 is not allowed; use 1 or more"):
        job.clone(workers=0)
    with pytest.raises(InvalidJobError, match="command: 3 is not allowed"):
        job.clone(command=3)
    with pytest.raises(InvalidJobError, match="new_name: 'A B' is not allowed"):
        job.clone("A B")


MANIFEST = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: train, labels: {team: a}}
spec:
  runPolicy: {suspend: true}
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: l, image: image, command: [mpirun, train]}]}}}
    Worker:
      replicas: 2
      template:
        spec:
          containers: [{name: w, image: image, env: [{name: HF_TOKEN, value: "****"}]}]
          volumes: [{name: v, csi: {driver: d, volumeAttributes: {accessKey: "a****"}}}]
"""


def test_a_deleted_job_is_cloned_by_its_report(client: Any, operator: Operator) -> None:
    uid = "22222222-gone"
    operator.write_report("MPIJob", "train", uid, "Failed", specification={"version": "1", "manifest": MANIFEST})
    job = client.get_job("train")
    assert job.manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    volume = "spec.mpiReplicaSpecs.Worker.template.spec.volumes[0].csi.volumeAttributes.accessKey"
    with pytest.raises(InvalidJobError) as masked:
        job.clone()
    assert [problem.field for problem in masked.value.problems] == [
        "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].env[0].value",
        volume,
    ]
    assert "the variable HF_TOKEN is masked in the report of the deleted job; set it again" in str(masked.value)
    with pytest.raises(InvalidJobError, match="HF_TOKEN"):
        job.create()
    assert operator.jobs() == []
    again = job.clone(env={"HF_TOKEN": "new"}, **{volume: "key"})
    assert again.name == "train-2" and operator.jobs() == ["train-2"]
    assert again.manifest["metadata"]["labels"]["team"] == "a"
    assert not again.manifest["spec"]["runPolicy"].get("suspend")


def test_a_deleted_job_without_its_specification_is_not_cloned(client: Any, operator: Operator) -> None:
    omitted = {"version": "1", "omitted": "the job's fields have 40000 bytes; reports keep up to 32768"}
    operator.write_report("MPIJob", "large", "33333333-gone", "Failed", specification=omitted)
    operator.write_report("MPIJob", "old", "44444444-gone", "Failed")
    for name, why in ("large", "specification: the job's fields have 40000 bytes"), ("old", "its specification$"):
        with pytest.raises(
            JobNotFoundError, match=f"mpijob/{name} is deleted, and its report does not contain .*{why}"
        ):
            client.get_job(name).clone()


def test_explain_offers_the_remedy_as_a_change(client: Any, operator: Operator) -> None:
    job = create(client)
    operator.report(job, "Failed", **OUT_OF_MEMORY)
    explanation = job.explain()
    text = str(explanation)
    assert "It began in pod train-worker-1, with rank 1; it ended with code 137, which is signal 9." in text
    assert "LauncherFailed: mpirun ended with 1." in text
    assert f"More: {explanation.documentation}" in text
    again = job.clone(**explanation.changes[0])
    limits = again.manifest["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"][
        "limits"
    ]
    assert limits == {"memory": "8Gi"}
    assert "job.clone(" in explanation._repr_html_() and "NCCL_DEBUG" in explanation._repr_html_()
    assert explanation.by_remedy[1] is None and len(explanation.changes) == 1


def test_after_waits_for_the_job_before(client: Any, operator: Operator, face: Any) -> None:
    first = create(client, "first")
    operator.report(first, "Failed")
    second = face.MPIJob("second", operator.namespace, image="image", command="x", client=client)
    with pytest.raises(MPIJobFailed):
        second.create(after=first)
    assert operator.jobs() == ["first"]
    done = create(client, "done")
    operator.report(done, "Succeeded")
    second.create(after=[done])
    assert operator.jobs() == ["done", "first", "second"]
    # A TrainJob of PyTorch, whose command runs as it is.
    torch = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": operator.namespace},
        "spec": {"mlPolicy": {"torch": {}}},
    }
    place = ("trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes")
    operator.custom.create_cluster_custom_object(*place, torch)
    options = {"runtime": operator.namespace, "command": "torchrun train.py", "client": client}
    train = face.MPIJob("train", operator.namespace, workers=2, **options).create(after=done)
    assert (train.kind, train.manifest["spec"]["trainer"]["command"]) == ("TrainJob", ["torchrun", "train.py"])


@pytest.mark.parametrize("after", ["train", 3, ["train"]])
def test_after_takes_jobs_only(client: Any, after: Any) -> None:
    with pytest.raises(InvalidJobError, match=r"after: .* is not allowed; use a job"):
        create(client, after=after)


def test_many_jobs_are_created_and_waited_for(client: Any, operator: Operator, face: Any) -> None:
    jobs = [face.MPIJob(f"job-{number}", image="image", command="x", client=client) for number in range(12)]
    client.create_jobs(jobs)
    assert len(operator.jobs()) == 12
    for number, job in enumerate(jobs):
        operator.report(job, "Failed" if number == 5 else "Succeeded")
    told: list[str] = []
    statuses = client.wait_for_jobs(jobs, timeout=60, on_phase=lambda status: told.append(status.name))
    assert [status.name for status in statuses] == [job.name for job in jobs]
    assert sorted(told) == sorted(job.name for job in jobs)
    assert [status.name for status in statuses if status.is_failed] == ["job-5"]


def job_of_runtime(name: str) -> dict[str, Any]:
    pod = {"spec": {"containers": [{"name": "node", "image": "train"}]}}
    return {"name": name, "template": {"spec": {"template": pod}}}


def test_runtime_makes_a_train_job_with_mpirun(client: Any, operator: Operator, face: Any) -> None:
    operator.custom.create_cluster_custom_object(
        "trainer.kubeflow.org",
        "v1alpha1",
        "clustertrainingruntimes",
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": operator.namespace},
            "spec": {
                "mlPolicy": {"mpi": {"numProcPerNode": 4}},
                "template": {"spec": {"replicatedJobs": [job_of_runtime("node"), job_of_runtime("head")]}},
            },
        },
    )
    job = face.MPIJob("train", workers=2, runtime=operator.namespace, command="train.py", client=client).create()
    assert job.kind == "TrainJob"
    assert job.manifest["spec"] == {
        "runtimeRef": {"name": operator.namespace, "kind": "ClusterTrainingRuntime"},
        "trainer": {"numNodes": 2, "command": ["mpirun", "--tag-output", "-n", "8", "train.py"]},
    }
    operator.report(job, "Succeeded")
    assert job.wait_for_completion(timeout=30).kind == "TrainJob"
    with_data = face.MPIJob(
        "with-data", runtime=operator.namespace, command="train.py", client=client, node_selector={"pool": "a100"},
        volumes=[{"name": "scratch", "emptyDir": {}}],
        volume_mounts=[{"name": "data", "mountPath": "/data"}, {"name": "scratch", "mountPath": "/scratch"}],
    ).create()  # fmt: skip
    (patch,) = with_data.manifest["spec"]["runtimePatches"]
    patched = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert [item["name"] for item in patched] == ["node", "head"]
    for item in patched:
        assert item["template"]["spec"]["template"]["spec"] == {
            "nodeSelector": {"pool": "a100"},
            "volumes": [
                {"name": "scratch", "emptyDir": {}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            ],
            "containers": [
                {
                    "name": "node",
                    "volumeMounts": [
                        {"name": "data", "mountPath": "/data"},
                        {"name": "scratch", "mountPath": "/scratch"},
                    ],
                }
            ],
        }
    with_flags = face.MPIJob(
        "with-flags", workers=2, runtime=operator.namespace, command="train.py", client=client,
        mpi_flags="--bind-to core", workdir="/app", run_as_user=7, output_dir="data:/results", grace_period="2m",
    )  # fmt: skip
    template = client.save_template("with-flags", with_flags)
    assert with_flags.create().manifest["spec"] == {
        "runtimeRef": {"name": operator.namespace, "kind": "ClusterTrainingRuntime"},
        "trainer": {
            "numNodes": 2,
            "command": [
                *("mpirun", "--tag-output", "--wdir", "/app", "--bind-to", "core"),
                *("-n", "8", "train.py"),
            ],
            "env": [{"name": "OUTPUT_DIR", "value": "/results"}],
        },
        "runtimePatches": [
            _trainer_runtime.runtime_patch(
                {
                    "spec": {
                        "terminationGracePeriodSeconds": 120,
                        "volumes": [{"name": "volume-0", "persistentVolumeClaim": {"claimName": "data"}}],
                        "containers": [
                            {
                                "name": "node",
                                "volumeMounts": [
                                    {"name": "volume-0", "mountPath": "/results", "subPath": "with-flags"}
                                ],
                                "securityContext": {"runAsUser": 7, "runAsNonRoot": True},
                            }
                        ],
                    }
                },
                ["node", "head"],
            )
        ],
    }
    # A template has no options besides its manifest.
    assert template.manifest["spec"] == with_flags.manifest["spec"]
    (many,) = client.create_jobs(
        [face.MPIJob("many", runtime=operator.namespace, command="x", client=client, mpi_flags="-v")]
    )
    assert many.manifest["spec"]["trainer"]["command"] == ["mpirun", "--tag-output", "-v", "-n", "4", "x"]
    with pytest.raises(JobNotFoundError, match="runtime 'none' does not exist"):
        face.MPIJob("x", runtime="none", command="train.py", client=client).create()


def test_templates_are_kept_and_filled(client: Any, operator: Operator, face: Any) -> None:
    pattern = face.MPIJob("train", image="${IMAGE:-img}", command=["train.py", "${EPOCHS}", "$${HOME}"], client=client)
    pattern.manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = "${WORKERS:-2}"
    client.save_template("t", pattern, description="Trains")
    template = client.list_templates()[0]
    assert (template.name, template.description) == ("t", "Trains")
    assert template.parameters == {"IMAGE": "img", "EPOCHS": None, "WORKERS": "2"}
    job = client.create_from_template("t", "train-7", EPOCHS=3, WORKERS=4)
    roles = job.manifest["spec"]["mpiReplicaSpecs"]
    assert roles["Worker"]["replicas"] == 4
    assert roles["Launcher"]["template"]["spec"]["containers"][0]["command"][-3:] == ["train.py", "3", "${HOME}"]
    with pytest.raises(InvalidJobError, match="EPOCHS: has no value"):
        client.create_from_template("t")
    client.delete_template("t")
    assert client.list_templates() == []


def test_a_missing_right_is_named_with_a_role(face: Any, cluster: Any, operator: Operator) -> None:
    user = face.TrainingClient(operator.namespace, configuration=cluster.configuration("user-token"))
    with pytest.raises(
        PermissionDeniedError, match=r"you \(ann\) may not .* ask an administrator of the cluster for the role"
    ):
        create(user)
    user.close()


def test_credentials_that_are_missing_are_told(face: Any, cluster: Any, operator: Operator) -> None:
    configuration = cluster.configuration()
    configuration.api_key = {}
    nobody = face.TrainingClient(operator.namespace, configuration=configuration)
    with pytest.raises(NotLoggedInError, match="the cluster got no credentials from you: log in"):
        create(nobody)
    nobody.close()


def test_a_cluster_without_kubeflow_trainer_has_jobs_and_clones(
    client: Any, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The API server answers with plain text for a group that it does not serve.
    unserved = dataclasses.replace(_kinds.TRAIN_JOB, api_version="trainer.example.com/v1")
    monkeypatch.setitem(_kinds.KINDS, "TrainJob", unserved)
    job = create(client)
    assert [each.name for each in client.list_jobs()] == ["train"]
    assert job.clone().name == "train-2"
    with pytest.raises(NotSupportedError, match=r"does not serve /apis/trainer.example.com/v1"):
        client.list_jobs(job_kind="TrainJob")


def test_yaml_goes_both_ways(client: Any, face: Any) -> None:
    job = create(client)
    again = face.MPIJob.from_yaml(job.to_yaml())
    assert again.manifest["spec"]["mpiReplicaSpecs"] == job.manifest["spec"]["mpiReplicaSpecs"]
    assert "uid" not in job.to_yaml() and "status" not in job.to_yaml()


def test_a_webhook_is_told_of_phases(client: Any, operator: Operator) -> None:
    told: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(500 if len(told) == 1 else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    job = create(client)
    operator.report(job, "Succeeded")
    job.wait_for_completion(timeout=30, webhook=f"http://127.0.0.1:{server.server_address[1]}/")
    server.shutdown()
    assert len(told) == 2 and b'"phase": "Succeeded"' in told[1].replace(b'":"', b'": "')


def test_earlier_jobs_of_the_user_and_the_program_give_advice(client: Any, operator: Operator, face: Any) -> None:
    now = "2026-01-02T10:00:00Z"
    memory = {"metric": "Memory", "mean": 1000, "p95": 1100, "max": 1200}
    usage = {
        "since": now,
        "until": now,
        "pointsSince": now,
        "pointSeconds": 10,
        "pods": 1,
        "perPod": [{"pod": "past-worker-0", "metrics": [memory]}],
    }
    workers = {"wanted": 1, "ready": 0, "running": 0, "succeeded": 0, "failed": 0}

    def finish(number: int, creator: str) -> None:
        run = {"image": "quay.io/me/train:v1", "command": "mpirun -np 1 python train.py --epochs 1", "creator": creator}
        uid = f"{number:08}-0000-0000-0000-000000000000"
        operator.write_report("MPIJob", f"past-{number}", uid, "Succeeded", run=run, usage=usage, workers=workers)

    job = face.MPIJob(
        "next",
        image="quay.io/me/train:v2",
        command="python train.py",
        resources={"memory": "64Gi"},
        client=client,
    )
    for number in range(5):
        finish(number, "somebody" if number < 3 else "admin")
    assert job.get_advice() == []
    finish(5, "admin")
    (advice,) = job.get_advice()
    assert advice.startswith("Memory: 3 earlier jobs like this one used at most 1.2 GiB in a pod;"), advice
    assert advice.endswith("this one asks for 64 GiB. 1536Mi is enough."), advice
    assert job.create().get_advice() == [advice]
