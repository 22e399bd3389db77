"""Operations on jobs, written once as coroutines and called by both faces of the package."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from openshift_ai_sdk.training import _changes, _spec
from openshift_ai_sdk.training._api import LONGEST_SILENCE, Api, Change, Resource
from openshift_ai_sdk.training._share import JOB_REPORT, Reports
from openshift_ai_sdk.training._spec import KINDS, LABEL_QUEUE, MPI_JOB, TRAIN_JOB, nearest
from openshift_ai_sdk.training._transport import ConnectionLostError, Driver, Json
from openshift_ai_sdk.training.errors import (
    APIError,
    Detached,
    InvalidJobError,
    JobBlockedError,
    JobExistsError,
    JobNotFoundError,
    JobRefusedError,
    JobTimeoutError,
    MPIJobFailed,
    NotSupportedError,
    PermissionDeniedError,
    Problem,
    TrainingError,
    restored,
)
from openshift_ai_sdk.training.models import Event, JobStatus, Phase, status_of

NAMESPACE = Resource("v1", "Namespace", "namespaces")
POD = Resource("v1", "Pod", "pods")
WORKLOAD = Resource("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
RUNTIMES = (
    Resource("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", "trainingruntimes"),
    Resource("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes"),
)

LABEL_JOB = "mpi.opendatahub.io/job-name"
LABEL_KIND = "mpi.opendatahub.io/job-kind"
LABEL_JOB_UID = "kueue.x-k8s.io/job-uid"
ANNOTATION_TIMEOUTS = "mpi.opendatahub.io/gang-timeouts"

# For how many seconds the labels of a namespace are cached.
NAMESPACE_LIFETIME = 30.0
# For how many seconds a job that has no report is awaited at first before it is looked up again.
FIRST_LOOK = 5.0
# What to do about a job that was only described.
NOT_CREATED = "; job.create() creates it"
# How many jobs are created side by side.
MOST_AT_ONCE = 8

T = TypeVar("T")
PhaseCallback = Callable[[JobStatus], object]


@dataclass(frozen=True)
class JobRef:
    """One job. Without a uid it is whichever job has the name."""

    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def resource(self) -> Resource:
        """Where the API server serves the job."""
        return KINDS[self.kind]

    @property
    def labels(self) -> str:
        """The selector of the job's report."""
        return f"{LABEL_JOB}={self.name[:63].rstrip('-._')},{LABEL_KIND}={self.kind}"

    def is_meant(self, report: Json) -> bool:
        """Return whether a report is about this job."""
        ref = report["spec"]["jobRef"]
        return ref["name"] == self.name and ref["kind"] == self.kind and (not self.uid or ref["uid"] == self.uid)

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


@dataclass
class Found:
    """A job with its report. The object is None if the job is deleted, the report None before there is one."""

    ref: JobRef
    object: Json | None
    report: Json | None
    cluster: str = ""

    @property
    def status(self) -> JobStatus:
        """The job's status."""
        ref = self.ref
        return status_of(self.report, ref.kind, ref.name, ref.namespace, ref.uid, self.cluster)


@dataclass
class Observer:
    """Receives the statuses of jobs while they are awaited.

    Attributes:
        on_status: Called with each new status.
        on_phase: Called with the status when the phase has changed.
        webhook: URL that gets the status as JSON when the phase has changed.
        raise_if_blocked: Whether a job that cannot go on raises JobBlockedError; otherwise it causes a warning.
    """

    on_status: PhaseCallback | None = None
    on_phase: PhaseCallback | None = None
    webhook: str | None = None
    raise_if_blocked: bool = False
    warned: set[tuple[str, str, str, str]] = field(default_factory=set, init=False)
    phases: dict[tuple[str, str, str], Phase | None] = field(default_factory=dict, init=False)


class Core:
    """Operations on the jobs of one cluster."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.reports = Reports(api)
        # The dashboard's URL: None before it is looked up, empty if there is none.
        self.dashboard: str | None = None
        # Whether a namespace takes only restricted pods, and until when that is cached.
        self._restricted: dict[str, tuple[bool, float]] = {}

    def through(self, driver: Driver) -> Core:
        """Return the same with another driver: the driver of concurrent work."""
        core = Core(Api(driver, self.api.retry, self.api.host), self.namespace)
        core._restricted = self._restricted
        return core

    # Creating

    async def create(self, manifest: Json, dry_run: bool = False, after: Sequence[JobRef] = ()) -> Json:
        """Create a job, once others have succeeded, and return it as the API server has it."""
        kind, namespace = manifest["kind"], manifest["metadata"]["namespace"]
        if after:
            name = f"{kind.lower()}/{manifest['metadata']['name']}"
            with detachable(f"{name} is not created", "create it again with create(after=...)"):
                for ref in after:
                    await self.wait(ref, observer=Observer())
        if kind == TRAIN_JOB.kind:
            manifest = await self._with_runtime(manifest)
        elif await self._is_restricted(namespace):
            manifest = _spec.restrict(manifest)
        return await self.api.create(KINDS[kind], namespace, manifest, dry_run)

    async def create_all(self, manifests: Sequence[Json]) -> list[Json | TrainingError]:
        """Create jobs, several at a time, and return for each in their order the job, or why it was not created."""
        places = [(manifest["kind"], manifest["metadata"]["namespace"]) for manifest in manifests]
        return await self._each(places, [partial(Core.create, manifest=manifest) for manifest in manifests])

    async def delete_all(self, refs: Sequence[JobRef]) -> list[TrainingError | None]:
        """Delete jobs, several at a time, and return for each in their order None, or why it was not deleted."""
        places = [(ref.kind, ref.namespace) for ref in refs]
        return await self._each(places, [partial(Core.delete, ref=ref) for ref in refs])

    async def _each(
        self, places: Sequence[tuple[str, str]], calls: Sequence[Callable[[Core], Awaitable[T]]]
    ) -> list[T | TrainingError]:
        """Make calls, several at a time, and return their results, or the errors of those that the cluster rejects.

        If a right is missing, all further calls for the same kind and namespace have the same error, and are not tried.

        Args:
            places: The kind and the namespace of each call's job.
            calls: The calls.

        Raises:
            TrainingError: An error that all calls would have, such as an expired login; the rest is not tried.
        """
        denied: dict[tuple[str, str], PermissionDeniedError] = {}
        waiting = list(enumerate(calls))[::-1]
        results: dict[int, T | TrainingError] = {}
        async with self.api.driver.tasks() as tasks:
            core = self.through(tasks.driver)

            async def work() -> None:
                while waiting:
                    number, call = waiting.pop()
                    place = places[number]
                    try:
                        result: T | TrainingError = denied.get(place) or await call(core)
                    except PermissionDeniedError as error:
                        result = denied[place] = error
                    except (JobExistsError, JobNotFoundError, JobRefusedError) as error:
                        result = error
                    await tasks.put((number, result))

            for _ in range(min(MOST_AT_ONCE, len(calls))):
                tasks.start(work())
            async with aclosing(tasks.items()) as items:
                async for number, result in items:
                    results[number] = result
        return [results[number] for number in range(len(calls))]

    async def _is_restricted(self, namespace: str) -> bool:
        """Return whether a namespace takes only pods that Pod Security calls restricted."""
        known, until = self._restricted.get(namespace, (False, 0.0))
        if self.api.driver.monotonic() < until:
            return known
        try:
            found = await self.api.find(NAMESPACE, None, namespace)
        except PermissionDeniedError:
            return False
        labels = ((found or {}).get("metadata") or {}).get("labels") or {}
        restricted = bool(labels.get("pod-security.kubernetes.io/enforce") == "restricted")
        self._restricted[namespace] = restricted, self.api.driver.monotonic() + NAMESPACE_LIFETIME
        return restricted

    async def _with_runtime(self, manifest: Json) -> Json:
        """Return a TrainJob with the kind of its runtime, and with mpirun in its command if it needs it."""
        manifest = deepcopy(manifest)
        ref, namespace = manifest["spec"]["runtimeRef"], manifest["metadata"]["namespace"]
        names: list[str] = []
        for resource in RUNTIMES:
            scope = namespace if resource is RUNTIMES[0] else None
            if ref.get("kind") not in (None, resource.kind):
                continue
            runtime = await self.api.find(resource, scope, ref["name"])
            if runtime is not None:
                ref["kind"] = resource.kind
                _spec.runtime_command(manifest, runtime)
                return manifest
            try:
                names += [item["metadata"]["name"] for item in (await self.api.list(resource, scope))[0]]
            except NotSupportedError:
                continue
        there = (
            f"use one of {', '.join(sorted(names))}"
            if names
            else "this cluster has no runtimes, or Kubeflow Trainer is not installed"
        )
        raise JobNotFoundError(f"runtime {ref['name']!r} does not exist{nearest(ref['name'], names)}; {there}")

    # Reading

    async def find(self, name: str, namespace: str, kind: str | None = None) -> Found:
        """Return the job of a name, or what its report has kept of it."""
        kinds = [kind] if kind else list(KINDS)
        found = []
        for each in kinds:
            item = await self.api.find(KINDS[each], namespace, name)
            if item is not None:
                found.append(JobRef(each, namespace, name, item["metadata"]["uid"]))
                object_ = item
        if len(found) > 1:
            raise JobNotFoundError(
                f"{name!r} is both an MPIJob and a TrainJob: use job_kind='MPIJob' or job_kind='TrainJob'"
            )
        if found:
            return Found(found[0], object_, await self.report(found[0]), self.api.host)
        for each in kinds:
            report = await self.report(JobRef(each, namespace, name))
            if report is not None:
                ref = JobRef(each, namespace, name, report["spec"]["jobRef"]["uid"])
                return Found(ref, None, report, self.api.host)
        raise await self._not_found(name, namespace)

    async def _not_found(self, name: str, namespace: str, hint: str = "") -> JobNotFoundError:
        names = [found.ref.name for found in await self.list(namespace, gone=True)]
        text = f"job {name!r} does not exist in the namespace {namespace}{nearest(name, names)}"
        return JobNotFoundError(text + hint)

    async def report(self, ref: JobRef) -> Json | None:
        """Return a job's latest report; None if there is none."""
        try:
            reports, _ = await self.api.list(JOB_REPORT, ref.namespace, ref.labels)
        except NotSupportedError:
            return None
        meant = [report for report in reports if ref.is_meant(report)]
        return max(meant, key=lambda report: str(report["metadata"]["creationTimestamp"]), default=None)

    async def status(self, ref: JobRef) -> JobStatus:
        """Return a job's status."""
        report = await self.report(ref)
        if report is None and await self.api.find(ref.resource, ref.namespace, ref.name) is None:
            raise await self._not_found(ref.name, ref.namespace, NOT_CREATED)
        return self.status_in(ref, report)

    async def list(
        self,
        namespace: str | None,
        labels: str = "",
        kind: str | None = None,
        phase: str | None = None,
        gone: bool = False,
    ) -> list[Found]:
        """Return jobs with their reports, by namespace and name; of all namespaces if there is none."""
        resources = [KINDS[kind]] if kind else list(KINDS.values())
        try:
            reports, _ = await self.api.list(JOB_REPORT, namespace)
        except NotSupportedError:
            reports = []
        by_uid = {report["spec"]["jobRef"]["uid"]: report for report in reports}
        found: list[Found] = []
        missing: TrainingError | None = None
        for resource in resources:
            try:
                items, _ = await self.api.list(resource, namespace, labels)
            except NotSupportedError as error:
                missing = missing or error
                continue
            for item in items:
                meta = item["metadata"]
                ref = JobRef(resource.kind, meta["namespace"], meta["name"], meta["uid"])
                found.append(Found(ref, item, by_uid.pop(meta["uid"], None), self.api.host))
            missing = None if resource is MPI_JOB else missing
        if missing is not None and not found and len(resources) == 1:
            raise missing
        if gone and not labels:
            found += [
                gone_job(report, self.api.host)
                for report in by_uid.values()
                if kind in (None, report["spec"]["jobRef"]["kind"])
            ]
        if phase is not None:
            found = [each for each in found if each.status.phase == phase]
        return sorted(found, key=lambda each: (each.ref.namespace, each.ref.name, each.ref.kind))

    def status_in(self, ref: JobRef, report: Json | None) -> JobStatus:
        """Return the status in a job's report, or an empty one before there is a report."""
        return status_of(report, ref.kind, ref.name, ref.namespace, ref.uid, self.api.host)

    # Waiting

    async def wait(
        self,
        ref: JobRef,
        phases: Sequence[str] = (Phase.SUCCEEDED,),
        timeout: float | None = None,
        observer: Observer | None = None,
    ) -> JobStatus:
        """Return a job's status once it has reached one of some phases. A phase that it has passed counts.

        Raises:
            MPIJobFailed: The job has failed, and that was not waited for.
            JobTimeoutError: It took longer than the timeout, in seconds.
        """
        with detachable(f"{ref} keeps running", f"follow again with {found_again(ref)}.wait_for_completion()"):
            return await self._await_phase(ref, phases, timeout, observer)

    async def _await_phase(
        self, ref: JobRef, phases: Sequence[str], timeout: float | None, observer: Observer | None
    ) -> JobStatus:
        deadline = None if timeout is None else self.api.driver.monotonic() + timeout
        status = self.status_in(ref, None)
        async with aclosing(self.watch_reports(ref, deadline)) as changes:
            async for change in changes:
                if change.type != "CHANGED":
                    continue
                status = self.status_in(ref, change.object)
                await self._notify(observer, status)
                if any(status.has_been(phase) for phase in phases):
                    return status
                if status.is_finished:
                    if status.is_failed:
                        raise await self._failure(ref, status)
                    raise TrainingError(f"{ref} finished without reaching {either(phases)}")
        text = f"{ref} did not reach {either(phases)} within {timeout:g} s: {status}"
        if status.cause:
            text += f": {status.cause.summary.rstrip('.')}; job.explain() shows what to do"
        raise JobTimeoutError(f"{text}; the job continues", status)

    async def _failure(self, ref: JobRef, status: JobStatus) -> MPIJobFailed:
        """Return the error of a job that has failed, with the changes by which clone applies the remedies."""
        job = await self.api.find(ref.resource, ref.namespace, ref.name) if status.remedies else None
        return MPIJobFailed(status, [_changes.of_remedy(remedy, job) for remedy in status.remedies])

    async def watch_reports(self, ref: JobRef, deadline: float | None = None) -> AsyncGenerator[Change, None]:
        """Yield SYNCED and the changes of a job's reports, until the deadline, by Driver.monotonic.

        While there is no report, the job itself is looked up once in a while.

        Raises:
            JobNotFoundError: There is no such job, or it was deleted before it had a report.
        """
        known = has_report = False
        looks = pauses_without_a_report()

        def silence() -> float:
            return LONGEST_SILENCE if has_report else next(looks)

        watched = self.reports.watch(ref.namespace, (ref.kind, ref.name), ref.labels, deadline, silence)
        async with aclosing(watched) as changes:
            async for change in changes:
                if change.type == "SYNCED":
                    if not has_report:
                        await self._require(ref, known)
                    known = True
                    yield change
                elif ref.is_meant(change.object):
                    has_report = has_report or change.type == "CHANGED"
                    yield change

    async def _require(self, ref: JobRef, known: bool) -> None:
        """Raise JobNotFoundError if there is no such job. It was there before if it is known."""
        item = await self.api.find(ref.resource, ref.namespace, ref.name)
        if item is not None and (not ref.uid or item["metadata"]["uid"] == ref.uid):
            return
        if await self.report(ref) is None:
            if known or ref.uid:
                raise deleted_without_a_report(ref)
            raise await self._not_found(ref.name, ref.namespace, NOT_CREATED)

    async def _require_all(self, refs: Sequence[JobRef], known: bool) -> None:
        """Raise JobNotFoundError if a job does not exist. One list serves all jobs of a kind and namespace."""
        for kind, namespace in {(ref.kind, ref.namespace): None for ref in refs}:
            items, _ = await self.api.list(KINDS[kind], namespace)
            uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}
            for ref in refs:
                if ref.kind != kind or ref.namespace != namespace:
                    continue
                is_gone = ref.name not in uids or (ref.uid and uids[ref.name] != ref.uid)
                if is_gone and await self.report(ref) is None:
                    raise (
                        deleted_without_a_report(ref)
                        if known or ref.uid
                        else await self._not_found(ref.name, namespace, NOT_CREATED)
                    )

    async def _notify(self, observer: Observer | None, status: JobStatus) -> None:
        """Notify an observer of a status. A webhook that fails causes a warning only: the job goes on."""
        if observer is None:
            return
        await called(observer.on_status, status)
        job = (status.kind, status.namespace, status.name)
        if cause := status.blocked_by:
            if observer.raise_if_blocked:
                raise JobBlockedError(status, cause)
            if (*job, cause.code) not in observer.warned:
                observer.warned.add((*job, cause.code))
                warnings.warn(
                    f"{status.job} is {status.phase} and cannot go on: {cause.code}: {cause.summary.rstrip('.')}; "
                    "job.explain() shows what to do, and waiting continues",
                    stacklevel=2,
                )
        if status.phase == observer.phases.get(job):
            return
        observer.phases[job] = status.phase
        await called(observer.on_phase, status)
        if observer.webhook:
            await self._post(observer.webhook, status)

    async def _post(self, url: str, status: JobStatus) -> None:
        body = {
            "kind": status.kind,
            "name": status.name,
            "namespace": status.namespace,
            "uid": status.uid,
            "phase": str(status.phase),
            "reason": status.reason,
            "message": status.message,
            "cause": status.cause.code if status.cause else None,
        }
        problem = ""
        for pause, _ in zip(self.api.retry.pauses(), range(4), strict=False):
            try:
                code = await self.api.driver.post(url, body, timeout=10)
                if code < 300:
                    return
                problem = f"it answers {code}"
                if code < 500 and code != 429:
                    break
            except ConnectionLostError as error:
                problem = str(error)
            await self.api.driver.sleep(pause)
        warnings.warn(
            f"the webhook {url} was not notified that {status.job} is {status.phase}: {problem}", stacklevel=2
        )

    async def wait_all(
        self, refs: Sequence[JobRef], timeout: float | None = None, observer: Observer | None = None
    ) -> AsyncGenerator[JobStatus, None]:
        """Yield the status of each job when it has ended. One watch serves all jobs of a namespace."""
        deadline = None if timeout is None else self.api.driver.monotonic() + timeout
        open_ = {(ref.namespace, ref.kind, ref.name): ref for ref in refs}
        last: dict[tuple[str, str, str], JobStatus] = {}
        jobs = ", ".join([*map(found_again, refs[:3]), *(["..."] if len(refs) > 3 else [])])
        state = f"{len(refs)} jobs keep running" if len(refs) > 1 else f"{refs[0] if refs else 'no job'} keeps running"
        with detachable(state, f"follow again with TrainingClient().wait_for_jobs([{jobs}])"):
            namespaces = list(dict.fromkeys(ref.namespace for ref in refs))
            for namespace in namespaces[1:]:
                # A job that cannot be awaited is reported before the jobs of other namespaces end.
                await self._require_all([ref for ref in refs if ref.namespace == namespace], known=False)
            for namespace in namespaces:
                mine = {key: ref for key, ref in open_.items() if key[0] == namespace}
                async with aclosing(self._watch_all(namespace, mine, deadline)) as changes:
                    async for key, report in changes:
                        last[key] = self.status_in(mine[key], report)
                        await self._notify(observer, last[key])
                        if last[key].is_finished:
                            del mine[key], open_[key]
                            yield last[key]
                            if not mine:
                                break
        if open_:
            keys = [(ref.namespace, ref.kind, ref.name) for ref in refs]
            statuses = [last.get(key) or self.status_in(ref, None) for key, ref in zip(keys, refs, strict=True)]
            late = [status for key, status in zip(keys, statuses, strict=True) if key in open_]
            names = few([f"{status.name} ({status})" for status in late])
            text = (
                f"{len(open_)} of {len(refs)} jobs did not finish within {timeout:g} s: {names}; they continue, and "
                "the error's statuses has those of all jobs"
            )
            raise JobTimeoutError(text, late[0], statuses)

    async def _watch_all(
        self, namespace: str, wanted: Mapping[tuple[str, str, str], JobRef], deadline: float | None
    ) -> AsyncGenerator[tuple[tuple[str, str, str], Json], None]:
        """Yield the reports of some jobs of a namespace as watch_reports does, with the keys of the jobs."""
        known = False
        reported: set[tuple[str, str, str]] = set()
        looks = pauses_without_a_report()

        def silence() -> float:
            return LONGEST_SILENCE if reported.issuperset(wanted) else next(looks)

        async with aclosing(self.api.watch(JOB_REPORT, namespace, "", deadline, silence=silence)) as changes:
            async for change in changes:
                if change.type == "SYNCED":
                    await self._require_all([ref for key, ref in wanted.items() if key not in reported], known)
                    known = True
                elif change.type == "CHANGED":
                    job = change.object["spec"]["jobRef"]
                    key = (namespace, job["kind"], job["name"])
                    if key in wanted and wanted[key].is_meant(change.object):
                        reported.add(key)
                        yield key, change.object

    async def events(self, ref: JobRef, follow: bool = True) -> AsyncGenerator[Event, None]:
        """Yield the past and the future events of a job until it has ended, each once and in order.

        The events are those of the job's report, which keeps them: none is lost while the API server is away.
        """
        seen: set[Event] = set()
        if not follow:
            report = await self.report(ref)
            for event in new_events(report, seen):
                yield event
            return
        with detachable(f"{ref} keeps running", f"follow again with {found_again(ref)}.stream_events()"):
            async with aclosing(self.watch_reports(ref)) as changes:
                async for change in changes:
                    if change.type != "CHANGED":
                        continue
                    for event in new_events(change.object, seen):
                        yield event
                    if (change.object.get("status") or {}).get("completionTime"):
                        return

    # Changing

    async def set_suspended(self, ref: JobRef, to: bool) -> None:
        """Suspend or resume a job.

        In a queue the Workload is changed instead, because Kueue resumes a job that is only suspended.
        """
        found = await self.api.get(ref.resource, ref.namespace, ref.name)
        if is_finished(found):
            done, instead = ("suspended", "there is nothing to do") if to else ("resumed", "run it again with clone()")
            raise TrainingError(f"{ref} is finished and cannot be {done}: {instead}")
        uid = found["metadata"]["uid"]
        if (found["metadata"].get("labels") or {}).get(LABEL_QUEUE):
            workload = await self._workload(ref.namespace, uid)
            if workload is not None:
                await self._set_active(ref.namespace, uid, workload, not to)
                return
        if _changes.is_suspended(found) != to:
            change: Json = {"metadata": {"uid": uid}, **_changes.suspension(ref.kind, to)}
            await self.api.patch(ref.resource, ref.namespace, ref.name, change)

    async def _workload(self, namespace: str, uid: str) -> Json | None:
        try:
            items, _ = await self.api.list(WORKLOAD, namespace, f"{LABEL_JOB_UID}={uid}")
        except NotSupportedError:
            return None
        owned = (item for item in items if any(owner["uid"] == uid for owner in item["metadata"]["ownerReferences"]))
        return next(owned, None)

    async def _set_active(self, namespace: str, uid: str, workload: Json | None, active: bool) -> None:
        """Write whether a Workload is active; one that has changed meanwhile is read again."""
        for pause, _ in zip(self.api.retry.pauses(), range(6), strict=False):
            if workload is None:
                raise TrainingError("the job's Workload is gone: try again")
            if workload["spec"].get("active", True) == active:
                return
            meta = workload["metadata"]
            change: Json = {
                "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
                "spec": {"active": active},
            }
            count, rests, _ = (meta.get("annotations") or {}).get(ANNOTATION_TIMEOUTS, "").partition(" ")
            if rests:
                # The operator must not activate it again; how often it did so is kept.
                change["metadata"]["annotations"] = {ANNOTATION_TIMEOUTS: count}
            try:
                await self.api.patch(WORKLOAD, namespace, meta["name"], change)
                return
            except APIError as error:
                if error.code != 409:
                    raise
            await self.api.driver.sleep(pause)
            workload = await self._workload(namespace, uid)
        raise TrainingError("the job's Workload keeps changing: try again")

    async def delete(self, ref: JobRef) -> None:
        """Delete a job and what it owns. A job with a uid may be gone already."""
        try:
            await self.api.delete(ref.resource, ref.namespace, ref.name, ref.uid or None)
        except JobNotFoundError:
            if not ref.uid:
                raise

    async def cancel(self, ref: JobRef, grace_period: float | None = None) -> None:
        """End a job: delete it, with so many seconds for its programs to end after SIGTERM. Its report stays."""
        if grace_period is not None:
            pods, _ = await self.api.list(POD, ref.namespace, selector_of(ref))
            for pod in pods:
                meta = pod["metadata"]
                try:
                    await self.api.delete(POD, ref.namespace, meta["name"], meta["uid"], round(grace_period))
                except JobNotFoundError:
                    continue
        await self.delete(ref)

    async def await_deletion(self, ref: JobRef, timeout: float | None = None) -> None:
        """Wait until a job is gone."""
        deadline = None if timeout is None else self.api.driver.monotonic() + timeout
        there = False
        async with aclosing(self.api.watch(ref.resource, ref.namespace, "", deadline, ref.name)) as changes:
            async for change in changes:
                if change.type == "SYNCED":
                    if not there:
                        return
                    continue
                meta = change.object["metadata"]
                if meta["name"] == ref.name and (not ref.uid or meta["uid"] == ref.uid):
                    there = change.type == "CHANGED"
                    if not there:
                        return
        raise JobTimeoutError(f"{ref} was not deleted within {timeout:g} s", await self.status(ref))

    async def clone(
        self, ref: JobRef, new_name: str | None, changes: Mapping[str, object], dry_run: str | None
    ) -> Json:
        """Create a changed copy of a job under a new name; with ``client`` for a dry run only build it."""
        found = await self.find(ref.name, ref.namespace, ref.kind)
        if found.object is None:
            raise JobNotFoundError(f"{ref} is deleted, and its report does not include its specification")
        manifest = _changes.as_written(found.object)
        problems = _changes.apply(manifest, changes)
        if problems:
            raise InvalidJobError(problems)
        if new_name is None:
            names = [other.ref.name for other in await self.list(ref.namespace, gone=True)]
            new_name = _changes.next_name(ref.name, names)
        manifest["metadata"]["name"] = new_name
        if dry_run == "client":
            return manifest
        return await self.api.create(ref.resource, ref.namespace, manifest, dry_run == "server")


def selector_of(ref: JobRef) -> str:
    """Return the selector of a job's pods."""
    if ref.kind == TRAIN_JOB.kind:
        return f"jobset.sigs.k8s.io/jobset-name={ref.name}"
    return f"training.kubeflow.org/operator-name=mpi-operator,training.kubeflow.org/job-name={ref.name}"


def gone_job(report: Json, cluster: str) -> Found:
    """Return a job that only its report is left of."""
    ref = report["spec"]["jobRef"]
    return Found(JobRef(ref["kind"], report["metadata"]["namespace"], ref["name"], ref["uid"]), None, report, cluster)


def pauses_without_a_report() -> Iterator[float]:
    """Yield how long a job that has no report is awaited before it is looked up again, in seconds."""
    pause = FIRST_LOOK
    while True:
        yield pause
        pause = min(2 * pause, 60.0)


def deleted_without_a_report(ref: JobRef) -> JobNotFoundError:
    """Return the error for a job that is gone without a report."""
    return JobNotFoundError(
        f"{ref} in the namespace {ref.namespace} was deleted before the operator recorded anything about it; create it "
        "again if you still need it"
    )


def found_again(ref: JobRef) -> str:
    """Return the call that returns a job."""
    return f"MPIJob.get({ref.name!r}, {ref.namespace!r})"


@contextmanager
def detachable(state: str, hint: str) -> Iterator[None]:
    """Print the state of a job, and what to do next, if Ctrl-C ends what is done in the context."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"detached: {state}; {hint}")
        raise Detached from None


def few(names: Sequence[str], most: int = 10) -> str:
    """Return names as text, at most so many."""
    return ", ".join([*names[:most], *([f"and {len(names) - most} more"] if len(names) > most else [])])


def raise_all(names: Sequence[str], results: Sequence[object], verb: str) -> None:
    """Raise one error for all jobs that something failed for: that of the only one, or one that names all.

    Raises:
        TrainingError: Of the class of the errors, if they have the same.
    """
    failed = {name: each for name, each in zip(names, results, strict=True) if isinstance(each, TrainingError)}
    errors = list(failed.values())
    if not errors:
        return
    if len(names) == 1:
        raise errors[0]
    kinds = {type(error) for error in errors}
    kind = kinds.pop() if len(kinds) == 1 else TrainingError
    done = f"the other {len(names) - len(failed)} were {verb}" if len(failed) < len(names) else f"none was {verb}"
    lines = [f"{len(failed)} of {len(names)} jobs were not {verb}: {few(list(failed))}; {done}"]
    lines += [f"  - {name}: {error}" for name, error in list(failed.items())[:3]]
    text = "\n".join([*lines, *(["  - ..."] if len(failed) > 3 else [])])
    raise restored(kind, (text,), {**errors[0].__dict__, "errors": failed}) from errors[0]


def is_finished(job: Json) -> bool:
    """Return whether a job is finished according to its conditions."""
    conditions = (job.get("status") or {}).get("conditions") or []
    return any(each["status"] == "True" and each["type"] in ("Succeeded", "Failed", "Complete") for each in conditions)


def new_events(report: Json | None, seen: set[Event]) -> list[Event]:
    """Return the entries of a report's timeline that were not seen yet, and add them to those seen."""
    status = (report or {}).get("status") or {}
    if not status.get("timeline") or report is None:
        return []
    events = [Event.from_entry(entry) for entry in JobStatus.from_report(report).timeline]
    fresh = [event for event in events if event not in seen]
    seen.update(fresh)
    return fresh


async def called(callback: PhaseCallback | None, status: JobStatus) -> None:
    """Call a callback, and await what it returns if that can be awaited."""
    if callback is None:
        return
    result = callback(status)
    if inspect.isawaitable(result):
        awaitable: Awaitable[Any] = result
        await awaitable


def either(phases: Iterable[str]) -> str:
    """Return phases as text."""
    return " or ".join(str(phase) for phase in phases)


def problems_of_phases(until: object, field: str = "until") -> list[Problem]:
    """Check phases by their names, in any case."""
    known = {phase.value.lower() for phase in Phase}
    unknown = [word for word in words_in(until) if str(word).lower() not in known]
    allowed = ", ".join(phase.value for phase in Phase)
    return [Problem(field, f"{word!r} is not a phase; use {allowed}") for word in unknown]


def parse_phases(until: str | Sequence[str]) -> list[Phase]:
    """Return phases by their names, which were checked."""
    known = {phase.value.lower(): phase for phase in Phase}
    return [known[str(word).lower()] for word in words_in(until)]


def words_in(until: object) -> list[object]:
    """Return the words of a list, or a word alone."""
    return list(until) if until and isinstance(until, list | tuple | set | frozenset) else [until]
