"""Two tenants, each with the role mpijob-user in its own namespace, cannot read or change the jobs of the other.

CALLS lists every public call that reads or changes a job or a namespace, LOCAL all others.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import importlib
import inspect
import itertools
import json
import pkgutil
import queue
import re
import threading
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pydantic
import pytest
import yaml
from kubernetes import client as kubernetes
from servers import CRDS, Cluster, Log, Operator, wait_until

from openshift_ai_sdk import training
from openshift_ai_sdk.training import MPIJob, NotSupportedError, PermissionDeniedError, TrainingClient, aio
from openshift_ai_sdk.training.kfp import run_mpijob

ROLE = "mpijob-user"
RUNTIME = "runtime"
MPI_RUNTIME = "runtime-of-mpi"
JOBS = {"MPIJob": "train", "TrainJob": "tune"}
OBJECTS = (
    ("kubeflow.org", "v2beta1", "mpijobs"),
    ("trainer.kubeflow.org", "v1alpha1", "trainjobs"),
    ("trainer.kubeflow.org", "v1alpha1", "trainingruntimes"),
    ("mpi.opendatahub.io", "v1alpha1", "jobreports"),
    ("mpi.opendatahub.io", "v1alpha1", "runtimetests"),
    ("kueue.x-k8s.io", "v1beta2", "workloads"),
)
numbers = itertools.count(1)


def program() -> None:
    """A program that is sent with a job."""


class Registry:
    """Takes the place of a client of Model Registry."""

    def get_registered_model(self, name: str) -> None:
        """No model has this name yet."""

    def register_model(self, name: str, *arguments: object, **options: object) -> str:
        return name


@dataclasses.dataclass(frozen=True)
class Target:
    """A job as a caller names it.

    Attributes:
        face: The face of the package.
        client: The caller's client.
        kind: MPIJob or TrainJob.
        name: The job's name.
        namespace: None for that of the client.
        held: The job as the caller read it before; None for one that is only named.
    """

    face: Any
    client: Any
    kind: str
    name: str
    namespace: str | None
    held: Any = None

    def job(self) -> Any:
        return self.held or self.described(self.name)

    def new(self) -> Any:
        """Return a job that is not created yet."""
        return self.described(self.fresh())

    def fresh(self) -> str:
        return f"new-{next(numbers)}"

    def described(self, name: str) -> Any:
        options = {"runtime": RUNTIME} if self.kind == "TrainJob" else {"image": "image"}
        return self.face.MPIJob(name, self.namespace, command="x", client=self.client, **options)


Call = Callable[[Target], Any]
CALLS: dict[str, Call] = {
    "TrainingClient.create_job": lambda of: of.client.create_job(
        of.fresh(), namespace=of.namespace, container_image="image", command="x"
    ),
    "TrainingClient.create_job(runtime)": lambda of: of.client.create_job(
        of.fresh(), namespace=of.namespace, runtime=RUNTIME, command="x"
    ),
    "TrainingClient.create_job(dry_run)": lambda of: of.client.create_job(
        of.fresh(), namespace=of.namespace, container_image="image", command="x", dry_run="server"
    ),
    "TrainingClient.create_job(after)": lambda of: of.client.create_job(
        of.fresh(), container_image="image", command="x", after=of.job()
    ),
    "TrainingClient.create_jobs": lambda of: of.client.create_jobs([of.new()]),
    "TrainingClient.create_jobs(2)": lambda of: of.client.create_jobs([of.new(), of.new()]),
    "TrainingClient.get_job": lambda of: of.client.get_job(of.name, of.namespace),
    "TrainingClient.get_job(job_kind)": lambda of: of.client.get_job(of.name, of.namespace, job_kind=of.kind),
    "TrainingClient.list_jobs": lambda of: of.client.list_jobs(of.namespace),
    "TrainingClient.list_jobs(options)": lambda of: of.client.list_jobs(
        of.namespace, job_kind=of.kind, phase="Running", deleted=True
    ),
    "TrainingClient.list_jobs(labels)": lambda of: of.client.list_jobs(of.namespace, labels="a=b"),
    "TrainingClient.update_job": lambda of: of.client.update_job(of.name, namespace=of.namespace, cpu=1),
    "TrainingClient.update_job(dry_run)": lambda of: of.client.update_job(
        of.name, of.fresh(), namespace=of.namespace, dry_run="server"
    ),
    "TrainingClient.wait_for_job": lambda of: of.client.wait_for_job(of.name, of.namespace),
    "TrainingClient.wait_for_job(until)": lambda of: of.client.wait_for_job(of.name, of.namespace, until="Running"),
    "TrainingClient.wait_for_jobs": lambda of: of.client.wait_for_jobs([of.job()]),
    "TrainingClient.get_job_logs": lambda of: of.client.get_job_logs(of.name, of.namespace),
    "TrainingClient.delete_job": lambda of: of.client.delete_job(of.name, of.namespace),
    "TrainingClient.delete_job(job_kind)": lambda of: of.client.delete_job(of.name, of.namespace, job_kind=of.kind),
    "TrainingClient.delete_jobs": lambda of: of.client.delete_jobs([of.job()]),
    "TrainingClient.save_template": lambda of: of.client.save_template(of.fresh(), of.new(), namespace=of.namespace),
    "TrainingClient.save_template(replace)": lambda of: of.client.save_template(
        "template", of.new(), namespace=of.namespace, replace=True
    ),
    "TrainingClient.list_templates": lambda of: of.client.list_templates(of.namespace),
    "TrainingClient.create_from_template": lambda of: of.client.create_from_template(
        "template", of.fresh(), namespace=of.namespace
    ),
    "TrainingClient.list_runtimes": lambda of: of.client.list_runtimes(of.namespace),
    "TrainingClient.get_runtime": lambda of: of.client.get_runtime(RUNTIME, of.namespace),
    "TrainingClient.create_runtime": lambda of: of.client.create_runtime(
        of.fresh(), image="image", namespace=of.namespace
    ),
    "TrainingClient.create_runtime(from_runtime)": lambda of: of.client.create_runtime(
        of.fresh(), from_runtime=MPI_RUNTIME, namespace=of.namespace
    ),
    "TrainingClient.create_runtime(dry_run)": lambda of: of.client.create_runtime(
        of.fresh(), image="image", namespace=of.namespace, dry_run="server"
    ),
    "TrainingClient.update_runtime": lambda of: of.client.update_runtime(MPI_RUNTIME, slots=2, namespace=of.namespace),
    "TrainingClient.delete_runtime": lambda of: of.client.delete_runtime(RUNTIME, namespace=of.namespace),
    "TrainingClient.test_runtime": lambda of: of.client.test_runtime(RUNTIME, wait=False, namespace=of.namespace),
    "TrainingClient.delete_template": lambda of: of.client.delete_template("template", of.namespace),
    "MPIJob.get": lambda of: of.face.MPIJob.get(of.name, of.namespace, client=of.client),
    "MPIJob.create": lambda of: of.new().create(),
    "MPIJob.create(dry_run)": lambda of: of.new().create(dry_run="server"),
    "MPIJob.create(after)": lambda of: of.new().create(after=[of.job()]),
    "MPIJob.get_status": lambda of: of.job().get_status(),
    "MPIJob.wait_for_completion": lambda of: of.job().wait_for_completion(),
    "MPIJob.wait_for_completion(timeout)": lambda of: of.job().wait_for_completion(timeout="1h", raise_if_blocked=True),
    "MPIJob.wait_for_completion(progress)": lambda of: of.job().wait_for_completion(progress=True),
    "MPIJob.wait_for_phase": lambda of: of.job().wait_for_phase("Running"),
    "MPIJob.get_logs": lambda of: of.job().get_logs(),
    "MPIJob.get_logs(all_pods)": lambda of: of.job().get_logs(all_pods=True, tail=5),
    "MPIJob.get_logs(follow)": lambda of: of.job().get_logs(follow=True),
    "MPIJob.stream_events": lambda of: of.job().stream_events(),
    "MPIJob.stream_events(past)": lambda of: of.job().stream_events(follow=False),
    "MPIJob.get_training_history": lambda of: of.job().get_training_history(),
    "MPIJob.get_training_curves": lambda of: of.job().get_training_curves(),
    "MPIJob.get_usage": lambda of: of.job().get_usage(),
    "MPIJob.get_profile": lambda of: of.job().get_profile(),
    "MPIJob.get_usage_history": lambda of: of.job().get_usage_history(),
    "MPIJob.plot": lambda of: of.job().plot(),
    "MPIJob.register_model": lambda of: of.job().register_model(
        "model", uri="s3://models/1", version="1", registry=Registry()
    ),
    "MPIJob.get_advice": lambda of: of.job().get_advice(),
    "MPIJob.explain": lambda of: of.job().explain(),
    "MPIJob.suspend": lambda of: of.job().suspend(),
    "MPIJob.resume": lambda of: of.job().resume(),
    "MPIJob.cancel": lambda of: of.job().cancel(),
    "MPIJob.cancel(grace_period)": lambda of: of.job().cancel(grace_period=1),
    "MPIJob.delete": lambda of: of.job().delete(),
    "MPIJob.delete(wait)": lambda of: of.job().delete(wait=True),
    "MPIJob.clone": lambda of: of.job().clone(),
    "MPIJob.clone(dry_run)": lambda of: of.job().clone(of.fresh(), dry_run="client"),
    "train": lambda of: of.face.train(
        program, name=of.fresh(), namespace=of.namespace, image="image", client=of.client
    ),
}
# Public calls that are not in CALLS, and why.
LOCAL = {
    "TrainingClient.close": "closes connections",
    "TrainingClient.host": "is known without a request",
    "TrainingClient.namespace": "is known without a request",
    "MPIJob.name": "is known without a request",
    "MPIJob.namespace": "is known without a request",
    "MPIJob.kind": "is known without a request",
    "MPIJob.manifest": "is known without a request",
    "MPIJob.from_yaml": "reads a text or file",
    "MPIJob.to_yaml": "writes a text",
    "MPIJob.get_dashboard_url": "reads nothing of a namespace; see test_the_url_in_the_dashboard_contains_names_only",
    "Plot.save": "writes a file",
    "mpijob_component": "builds a component",
    "report": "prints a line",
    "run_mpijob": "uses the default client; see test_a_step_of_a_pipeline_is_refused",
}
# The errors of calls that also fail in the tenant's own namespace.
FAILS = {
    # The API server has no metrics server behind it.
    "MPIJob.get_usage": (NotSupportedError, "no metrics server"),
    # The role mpijob-user does not include changes of runtimes; mpijob-admin does.
    **{
        f"TrainingClient.{call}": (
            PermissionDeniedError,
            rf"may not {call[:6]} trainingruntimes\.trainer\..* in .* for the role admin \(or mpijob-admin\)$",
        )
        for call in (
            "create_runtime",
            "create_runtime(from_runtime)",
            "create_runtime(dry_run)",
            "update_runtime",
            "delete_runtime",
        )
    },
    # The role mpijob-user does not include the deletion of pods; edit does.
    "MPIJob.cancel(grace_period)": (PermissionDeniedError, r"may not delete pods in .* for the role edit$"),
}


class Tenant:
    """A service account with the role mpijob-user in its own namespace. All of its objects contain a secret."""

    def __init__(self, cluster: Cluster) -> None:
        self.operator = Operator(cluster, f"tenant-{next(numbers)}")
        self.namespace = self.operator.namespace
        self.user = f"system:serviceaccount:{self.namespace}:notebook"
        self.secret = uuid.uuid4().hex[:16]
        self.operator.core.create_namespaced_service_account(self.namespace, {"metadata": {"name": "notebook"}})
        token = self.operator.core.create_namespaced_service_account_token("notebook", self.namespace, {"spec": {}})
        self.configuration = cluster.configuration(token.status.token)
        self.rights = kubernetes.AuthorizationV1Api(kubernetes.ApiClient(self.configuration))
        self.rbac = kubernetes.RbacAuthorizationV1Api(cluster.api)
        self.bind(self, ROLE)

    def bind(self, tenant: Tenant, role: str, kind: str = "ClusterRole") -> None:
        """Give a tenant a role in this namespace, and wait until it counts."""
        body = {
            "metadata": {"name": tenant.namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "notebook", "namespace": tenant.namespace}],
        }
        self.rbac.create_namespaced_role_binding(self.namespace, body)
        wait_until(lambda: tenant.may_read(self), "the role is given")

    def unbind(self, tenant: Tenant) -> None:
        """Take the role from a tenant, and wait until that counts."""
        self.rbac.delete_namespaced_role_binding(tenant.namespace, self.namespace)
        wait_until(lambda: not tenant.may_read(self), "the role is taken")

    def may_read(self, other: Tenant) -> bool:
        attributes = {"namespace": other.namespace, "verb": "list", "group": "kubeflow.org", "resource": "mpijobs"}
        review = self.rights.create_self_subject_access_review({"spec": {"resourceAttributes": attributes}})
        return bool(review.status.allowed)

    def client(self, face: Any, namespace: str | None = None) -> Any:
        return face.TrainingClient(namespace or self.namespace, configuration=self.configuration)

    def fill(self) -> None:
        """Create a job of each kind, and what else a tenant has."""
        place = ("trainer.kubeflow.org", "v1alpha1", self.namespace, "trainingruntimes")
        runtime = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "spec": {}}
        for name, spec in ((RUNTIME, {}), (MPI_RUNTIME, {"mlPolicy": {"mpi": {}}})):
            meta = {"name": name, "annotations": {"example.com/secret": self.secret}}
            self.operator.custom.create_namespaced_custom_object(*place, {**runtime, "metadata": meta, "spec": spec})
        with TrainingClient(self.namespace, configuration=self.configuration) as client:
            # The name of the last one is a secret, too; it resembles the first one, so that it could be suggested.
            names = [*JOBS.items(), ("MPIJob", f"train-{self.secret}")]
            jobs = [self.create(client, kind, name) for kind, name in names]
            client.save_template("template", jobs[0], description=self.secret)
        for job in jobs:
            self.log_of(job).say(f"epoch 1 {self.secret}")

    def create(self, client: TrainingClient, kind: str, name: str, phase: str = "Running") -> MPIJob:
        """Create a job, with a report and a pod."""
        job = MPIJob(
            name,
            image=f"registry.example.com/{self.secret}",
            command=["train.py", self.secret],
            env={"SECRET": self.secret},
            annotations={"example.com/secret": self.secret},
            runtime=RUNTIME if kind == "TrainJob" else None,
            client=client,
        ).create()
        finding = {"code": "OutOfMemory", "severity": "Error", "summary": self.secret, "evidence": [self.secret]}
        training = {"loss": "0.5", "at": "2026-01-02T10:00:00Z"}
        self.operator.report(job, "Running", message=self.secret, findings=[finding], training=training)
        if phase != "Running":
            self.operator.report(job, phase)
        return job

    def log_of(self, job: Any, state: str = "running") -> Log:
        return self.operator.pod(job, f"{job.name}-launcher-{self.secret}", state)

    def is_served(self) -> bool:
        try:
            self.objects()
        except kubernetes.ApiException as error:
            assert error.status == 429
            return False
        return True

    def objects(self) -> dict[str, Any]:
        """Return all objects of the namespace, as an administrator reads them."""
        core, custom = self.operator.core, self.operator.custom
        found = {
            plural: custom.list_namespaced_custom_object(group, version, self.namespace, plural)["items"]
            for group, version, plural in OBJECTS
        }
        for listed in (core.list_namespaced_pod, core.list_namespaced_config_map):
            found[listed.__name__] = json.loads(listed(self.namespace, _preload_content=False).data)["items"]
        return found


@pytest.fixture(scope="module")
def roles(cluster: Cluster) -> None:
    """The roles for users, as they are installed."""
    rbac = kubernetes.RbacAuthorizationV1Api(cluster.api)
    for role in yaml.safe_load_all((CRDS.parent / "rbac" / "users.yaml").read_text()):
        rbac.create_cluster_role(role)


@pytest.fixture(scope="module")
def tenants(cluster: Cluster, roles: None) -> tuple[Tenant, Tenant]:
    """Two tenants with jobs of the same names."""
    made = Tenant(cluster), Tenant(cluster)
    for tenant in made:
        tenant.fill()
    return made


@pytest.fixture(scope="module")
def owner(cluster: Cluster, roles: None) -> Tenant:
    """A tenant that works in its own namespace."""
    made = Tenant(cluster)
    made.fill()
    return made


def attempt(call: Callable[[], Any]) -> Any:
    """Return what a call returns or raises; streams are read to their end. A call that does not end fails the test."""
    ended: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def work() -> None:
        try:
            result = call()
            ended.put(list(result) if isinstance(result, Iterator) else result)
        except BaseException as error:
            ended.put(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return ended.get(timeout=60)
    except queue.Empty:
        pytest.fail("the call goes on although the right is missing")


def texts_of(error: BaseException) -> str:
    """Return all that an error shows: as text, in a notebook, with those it came from, and what it keeps."""
    shown = ["".join(traceback.format_exception(error)), repr(error), repr(vars(error))]
    if isinstance(error, training.TrainingError):
        shown += [error._repr_html_(), *error._render_traceback_()]
    return "\n".join(shown)


def check_refused(result: Any, caller: Tenant, other: Tenant) -> None:
    """Check that a call has failed, that its error names the missing right, and that it reveals nothing."""
    assert type(result) is PermissionDeniedError, repr(result)
    # Where several jobs failed, a line about each follows the summary.
    lines = [line.partition(": ")[2] for line in str(result).splitlines()[1:]] or [str(result)]
    text = (
        rf"you \({caller.user}\) may not (get|list|watch|create|update|patch|delete) [a-z./]+ in the namespace "
        rf"{other.namespace}: ask an administrator of the cluster for the role "
        r"(view|edit|admin) \(or mpijob-(viewer|user|admin)\)"
    )
    for line in lines:
        assert re.fullmatch(text, line), result
    assert other.secret not in texts_of(result)


@pytest.fixture
def unchanged(tenants: tuple[Tenant, Tenant]) -> Iterator[None]:
    """Check that nothing of the tenants has changed."""
    before = [tenant.objects() for tenant in tenants]
    assert all(found["mpijobs"] and found["trainjobs"] and found["jobreports"] for found in before)
    yield
    assert [tenant.objects() for tenant in tenants] == before


@pytest.fixture
def quiet(tenants: tuple[Tenant, Tenant], capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Check that no secret is printed, in a warning either."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    printed = "\n".join([*capfd.readouterr(), *(str(each.message) for each in caught)])
    assert not [tenant.secret for tenant in tenants if tenant.secret in printed]


def members_of(name: str, value: object) -> set[str]:
    """Return a function, or what is public of a class that may use a cluster, by the names of the reference."""
    if not inspect.isclass(value):
        return {name} if callable(value) else set()
    values = (BaseException, enum.Enum, pydantic.BaseModel, Sequence)
    if dataclasses.is_dataclass(value) or issubclass(value, values):
        return set()
    own = set().union(*(vars(base) for base in value.__mro__[:-1]))
    return {f"{name}.{member}" for member in own if not member.startswith("_")}


def test_every_public_call_is_covered() -> None:
    modules = [training]
    for info in pkgutil.iter_modules(training.__path__, f"{training.__name__}."):
        if not info.name.rpartition(".")[2].startswith("_"):
            modules.append(importlib.import_module(info.name))
    public = set().union(*(members_of(name, getattr(module, name)) for module in modules for name in module.__all__))
    called = {name.partition("(")[0] for name in CALLS}
    assert public - called - set(LOCAL) == set(), "not covered: add them to CALLS, or to LOCAL with a reason"
    assert (called | set(LOCAL)) - public == set(), "no longer public: remove them"
    assert not called & set(LOCAL)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.usefixtures("unchanged", "quiet")
def test_a_tenant_is_refused_in_the_other_namespace(call: str, tenants: tuple[Tenant, Tenant], face: Any) -> None:
    for caller, other in itertools.permutations(tenants):
        home, away = caller.client(face), caller.client(face, other.namespace)
        targets = [
            Target(face, home, "MPIJob", JOBS["MPIJob"], other.namespace),
            # The error must not reveal whether a job of that name exists.
            Target(face, home, "MPIJob", f"{JOBS['MPIJob']}-x", other.namespace),
            Target(face, home, "TrainJob", JOBS["TrainJob"], other.namespace),
            Target(face, away, "TrainJob", JOBS["TrainJob"], None),
        ]
        results = [attempt(lambda target=target: CALLS[call](target)) for target in targets]
        for result in results:
            check_refused(result, caller, other)
        assert re.sub(r"new-\d+", "", str(results[0])) == re.sub(r"new-\d+", "", str(results[1]))
        home.close()
        away.close()


@pytest.mark.parametrize("call", CALLS)
def test_the_same_call_works_in_the_own_namespace(call: str, owner: Tenant, face: Any) -> None:
    """The calls are valid: in the other namespace they fail only because rights are missing."""
    with TrainingClient(owner.namespace, configuration=owner.configuration) as client:
        names = {kind: f"job-{next(numbers)}-own" for kind in JOBS}
        for kind, name in names.items():
            owner.log_of(owner.create(client, kind, name, "Succeeded"), "succeeded").end()
    used = owner.client(face)
    for kind, name in names.items():
        result = attempt(lambda target=Target(face, used, kind, name, owner.namespace): CALLS[call](target))
        if call in FAILS:
            error, text = FAILS[call]
            # A TrainJob's pods have other labels than those that the test makes.
            if call != "MPIJob.cancel(grace_period)" or kind == "MPIJob":
                assert isinstance(result, error) and re.search(text, str(result)), repr(result)
        else:
            assert not isinstance(result, BaseException), repr(result)
        if call == "TrainingClient.delete_template":
            used.save_template("template", Target(face, used, "MPIJob", name, None).new())
    used.close()


@pytest.mark.usefixtures("unchanged", "quiet")
def test_a_step_of_a_pipeline_is_refused(tenants: tuple[Tenant, Tenant], monkeypatch: pytest.MonkeyPatch) -> None:
    for caller, other in itertools.permutations(tenants):
        with TrainingClient(caller.namespace, configuration=caller.configuration) as client:
            monkeypatch.setattr("openshift_ai_sdk.training.client.default_client", lambda client=client: client)
            for runtime in ("", RUNTIME):
                result = attempt(
                    lambda there=other.namespace, runtime=runtime: run_mpijob(
                        "new", "image", "x", namespace=there, runtime=runtime
                    )
                )
                check_refused(result, caller, other)


@pytest.mark.usefixtures("unchanged", "quiet")
def test_the_url_in_the_dashboard_contains_names_only(
    tenants: tuple[Tenant, Tenant], face: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for caller, other in itertools.permutations(tenants):
        client = caller.client(face)
        job = Target(face, client, "MPIJob", JOBS["MPIJob"], other.namespace).job()
        assert job.get_dashboard_url() is None
        monkeypatch.setenv("MPIJOB_DASHBOARD_URL", "https://dashboard")
        assert job.get_dashboard_url() == f"https://dashboard/projects/{other.namespace}/mpijob/train"
        monkeypatch.delenv("MPIJOB_DASHBOARD_URL")
        client.close()


@pytest.mark.usefixtures("unchanged", "quiet")
def test_the_jobs_of_all_namespaces_are_refused(tenants: tuple[Tenant, Tenant], face: Any) -> None:
    for caller in tenants:
        client = caller.client(face)
        for options in ({}, {"labels": "a=b"}, {"job_kind": "TrainJob"}, {"phase": "Running", "deleted": True}):
            error = attempt(lambda client=client, options=options: client.list_jobs(all_namespaces=True, **options))
            assert type(error) is PermissionDeniedError
            assert str(error).startswith(f"you ({caller.user}) may not list ")
            assert " in the whole cluster: ask an administrator " in str(error)
            assert not [tenant.secret for tenant in tenants if tenant.secret in texts_of(error)]
        client.close()


@pytest.mark.usefixtures("unchanged", "quiet")
def test_waiters_that_share_a_watch_are_refused(tenants: tuple[Tenant, Tenant]) -> None:
    count = 8
    for caller, other in itertools.permutations(tenants):
        names = list(itertools.islice(itertools.cycle(JOBS.values()), count))

        async def tasks(caller: Tenant = caller, there: str = other.namespace, names: list[str] = names) -> list[Any]:
            async with aio.TrainingClient(there, configuration=caller.configuration) as client:
                jobs = [aio.MPIJob(name, image="image", command="x", client=client) for name in names]
                waiting = (job.wait_for_completion() for job in jobs)
                return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 60)

        with (
            TrainingClient(other.namespace, configuration=caller.configuration) as client,
            ThreadPoolExecutor(count) as pool,
        ):
            jobs = [MPIJob(name, image="image", command="x", client=client) for name in names]
            futures = [pool.submit(job.wait_for_completion, "1m") for job in jobs]
            results = [future.exception(90) for future in futures]
        results += asyncio.run(tasks())
        assert len(results) == 2 * count
        for result in results:
            check_refused(result, caller, other)


@pytest.mark.usefixtures("quiet")
def test_withdrawn_rights_end_streams_and_calls(cluster: Cluster, face: Any, tenants: Any) -> None:
    guest, host = tenants
    before = host.objects()
    host.bind(guest, ROLE)
    client = guest.client(face)
    held = {kind: client.get_job(name, host.namespace, job_kind=kind) for kind, name in JOBS.items()}
    lines, events = held["MPIJob"].get_logs(follow=True), held["MPIJob"].stream_events()
    assert host.secret in next(lines).text and next(events).name == "Running"
    host.unbind(guest)
    # The log has to be opened again.
    cluster.kubelet.log(host.namespace, f"train-launcher-{host.secret}").cut()
    refused = attempt(lambda: next(lines))
    check_refused(refused, guest, host)
    assert "may not get pods/log" in str(refused)
    # An API server checks the rights of a watch when it begins.
    cluster.kill_server()
    cluster.start_server()
    check_refused(attempt(lambda: next(events)), guest, host)
    for call in CALLS.values():
        for kind, job in held.items():
            target = Target(face, client, kind, JOBS[kind], host.namespace, job)
            check_refused(attempt(lambda call=call, target=target: call(target)), guest, host)
    client.close()
    wait_until(lambda: all(tenant.is_served() for tenant in tenants), "the API server has its storage again")
    assert host.objects() == before


def test_logs_without_the_right_to_read_them_are_not_empty(owner: Tenant, face: Any, cluster: Cluster) -> None:
    reader = Tenant(cluster)
    reads = {"apiGroups": ["*"], "resources": ["mpijobs", "trainjobs", "jobreports", "pods"], "verbs": ["get", "list"]}
    role = f"reader-{next(numbers)}"
    owner.rbac.create_namespaced_role(owner.namespace, {"metadata": {"name": role}, "rules": [reads]})
    owner.bind(reader, role, "Role")
    client = reader.client(face)
    for call in ("MPIJob.get_logs", "MPIJob.get_training_history", "TrainingClient.get_job_logs"):
        result = attempt(lambda call=call: CALLS[call](Target(face, client, "MPIJob", "train", owner.namespace)))
        check_refused(result, reader, owner)
        assert "may not get pods/log" in str(result)
    client.close()


def test_an_administrator_of_a_project_manages_its_runtimes(cluster: Cluster, roles: None, face: Any) -> None:
    tenant = Tenant(cluster)
    client = tenant.client(face)
    with pytest.raises(
        PermissionDeniedError, match=r"may not create trainingruntimes\.trainer\.kubeflow\.org in the name"
    ):
        client.create_runtime("mine", image="image")
    tenant.unbind(tenant)
    tenant.bind(tenant, "mpijob-admin")
    assert client.create_runtime("mine", image="image", max_workers=4).max_workers == "4"
    assert client.update_runtime("mine", max_workers=5).max_workers == "5"
    assert client.create_runtime("copy", from_runtime="mine").max_workers == "5"
    with pytest.raises(PermissionDeniedError) as refused:
        client.create_runtime("mine", image="image", cluster=True)
    assert str(refused.value) == (
        f"you ({tenant.user}) may not create clustertrainingruntimes.trainer.kubeflow.org in the whole cluster: ask an "
        "administrator of the cluster for the role cluster-admin (or mpijob-admin in a ClusterRoleBinding); without "
        f"cluster=True, it is created in the namespace {tenant.namespace}"
    )
    client.delete_runtime("mine")
    assert [runtime.name for runtime in client.list_runtimes()] == ["copy"]
    client.close()


def test_a_right_on_workloads_is_that_of_a_role_of_kueue(owner: Tenant, face: Any) -> None:
    client = owner.client(face)
    job = client.create_job(f"queued-{next(numbers)}", container_image="image", command="x", queue="queue")
    uid = job.manifest["metadata"]["uid"]
    meta = {"name": job.name, "labels": {"kueue.x-k8s.io/job-uid": uid}}
    meta["ownerReferences"] = [{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": job.name, "uid": uid}]
    owner.operator.custom.create_namespaced_custom_object(
        "kueue.x-k8s.io", "v1beta2", owner.namespace, "workloads",
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": meta, "spec": {"active": False}},
    )  # fmt: skip
    with pytest.raises(PermissionDeniedError, match=r"may not patch workloads.* role kueue-workload-editor-role$"):
        job.resume()
    client.close()


def test_bulk_calls_process_the_jobs_that_are_not_refused(tenants: tuple[Tenant, Tenant], face: Any) -> None:
    for caller, other in itertools.permutations(tenants):
        client = caller.client(face)
        mine = [Target(face, client, "MPIJob", f"own-{next(numbers)}", None).job() for _ in range(12)]
        others = [Target(face, client, kind, name, other.namespace).job() for kind, name in JOBS.items()]
        before = other.objects()
        for verb, call in (("created", client.create_jobs), ("deleted", client.delete_jobs)):
            error = attempt(lambda call=call, jobs=[*mine[:6], *others, *mine[6:]]: call(jobs))
            summary = f"2 of 14 jobs were not {verb}: train, tune; the other 12 were {verb}"
            assert str(error).splitlines()[0] == summary
            check_refused(error, caller, other)
            names = {job.name for job in mine}
            assert names & set(caller.operator.jobs()) == (names if verb == "created" else set())
        assert other.objects() == before
        client.close()


@pytest.mark.usefixtures("unchanged", "quiet")
def test_a_missing_right_is_reported_before_other_jobs_end(tenants: tuple[Tenant, Tenant], face: Any) -> None:
    for caller, other in itertools.permutations(tenants):
        client = caller.client(face)
        # The caller's own job runs for ever.
        jobs = [Target(face, client, "MPIJob", JOBS["MPIJob"], where).job() for where in (None, other.namespace)]
        check_refused(attempt(lambda call=client.wait_for_jobs, jobs=jobs: call(jobs)), caller, other)
        client.close()
