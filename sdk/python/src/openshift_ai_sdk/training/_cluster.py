"""Finds the jobs of a cluster, with their reports."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace

from openshift_ai_sdk.training._apiserver import Api
from openshift_ai_sdk.training._driver import Driver, Json
from openshift_ai_sdk.training._job_ref import Found, JobRef, gone_job
from openshift_ai_sdk.training._kinds import JOB_REPORT, KINDS, MPI_JOB, Resource
from openshift_ai_sdk.training._shared_watch import Reports
from openshift_ai_sdk.training._similar import nearest
from openshift_ai_sdk.training._status import JobStatus, status_of
from openshift_ai_sdk.training.errors import JobNotFoundError, NotSupportedError, TrainingError

# The objects of a kind, or why the cluster has none.
Listed = list[Json] | NotSupportedError

# What to do about a job that was only described.
NOT_CREATED = "; job.create() creates it"


class Cluster:
    """A cluster, and the namespace of jobs for which no other is named."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.reports = Reports(api)
        # The dashboard's URL: None before it is looked up, empty if there is none.
        self.dashboard: str | None = None
        # Whether a namespace takes only restricted pods, and until when that is cached.
        self.restricted: dict[str, tuple[bool, float]] = {}

    def through(self, driver: Driver) -> Cluster:
        """Return the same with another driver: the driver of concurrent work."""
        cluster = Cluster(Api(driver, self.api.retry, self.api.host), self.namespace)
        cluster.restricted = self.restricted
        return cluster

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
                f"{name!r} is both an MPIJob and a TrainJob: use TrainingClient().get_job({name!r}, {namespace!r}, "
                "job_kind='MPIJob'), or job_kind='TrainJob'"
            )
        if found:
            return Found(found[0], object_, await self.report(found[0]), self.api.host)
        for each in kinds:
            report = await self.report(JobRef(each, namespace, name))
            if report is not None:
                ref = JobRef(each, namespace, name, report["spec"]["jobRef"]["uid"])
                return Found(ref, None, report, self.api.host)
        raise await self.not_found(name, namespace)

    async def find_same(self, ref: JobRef) -> Found:
        """Return a job, or what its report has kept of it. With a uid, another job of its name is not returned."""
        found = await self.find(ref.name, ref.namespace, ref.kind)
        if not ref.uid or found.ref.uid == ref.uid:
            return found
        report = await self.report(ref)
        if report is None:
            raise replaced(ref)
        return Found(ref, None, report, self.api.host, replaced=found.object is not None)

    async def resolve(self, ref: JobRef, deadline: float | None = None) -> JobRef:
        """Return a job with its uid: that of the job, or of the latest report if the job is deleted.

        Raises:
            JobNotFoundError: There is neither.
        """
        if ref.uid:
            return ref
        item = await self.api.find(ref.resource, ref.namespace, ref.name, deadline)
        if item is not None:
            return replace(ref, uid=item["metadata"]["uid"])
        report = await self.report(ref, deadline)
        if report is None:
            raise await self.not_found(ref.name, ref.namespace, NOT_CREATED)
        return replace(ref, uid=report["spec"]["jobRef"]["uid"])

    async def not_found(self, name: str, namespace: str, hint: str = "") -> JobNotFoundError:
        """Return the error for a job that does not exist, with similar names."""
        names = [found.ref.name for found in await self.list(namespace, gone=True)]
        text = f"job {name!r} does not exist in the namespace {namespace}{nearest(name, names)}"
        return JobNotFoundError(text + hint)

    async def report(self, ref: JobRef, deadline: float | None = None) -> Json | None:
        """Return a job's latest report; None if there is none."""
        try:
            reports, _ = await self.api.list(JOB_REPORT, ref.namespace, ref.labels, deadline)
        except NotSupportedError:
            return None
        meant = [report for report in reports if ref.is_meant(report)]
        return max(meant, key=lambda report: str(report["metadata"]["creationTimestamp"]), default=None)

    async def status(self, ref: JobRef) -> JobStatus:
        """Return a job's status."""
        ref = await self.resolve(ref)
        report = await self.report(ref)
        if report is None and await self.api.find(ref.resource, ref.namespace, ref.name) is None:
            raise await self.not_found(ref.name, ref.namespace, NOT_CREATED)
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
        wanted = {JOB_REPORT: "", **dict.fromkeys(resources, labels)}
        # Reports that are read before the jobs show which jobs are gone: read at once, a new job would seem to be.
        lists = await (self._in_turn(wanted, namespace) if gone else self._at_once(wanted, namespace))
        reports = lists[JOB_REPORT]
        if isinstance(reports, NotSupportedError):
            reports = []
        by_uid = {report["spec"]["jobRef"]["uid"]: report for report in reports}
        found: list[Found] = []
        missing: TrainingError | None = None
        for resource in resources:
            items = lists[resource]
            if isinstance(items, NotSupportedError):
                missing = missing or items
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
            found = [each for each in found if each.is_in(phase)]
        return sorted(found, key=lambda each: (each.ref.namespace, each.ref.name, each.ref.kind))

    async def _in_turn(self, wanted: Mapping[Resource, str], namespace: str | None) -> dict[Resource, Listed]:
        """List kinds of objects, each with a label selector, one after the other."""
        return {resource: await _listed(self.api, resource, namespace, labels) for resource, labels in wanted.items()}

    async def _at_once(self, wanted: Mapping[Resource, str], namespace: str | None) -> dict[Resource, Listed]:
        """List kinds of objects, each with a label selector, side by side."""
        lists: dict[Resource, Listed | TrainingError] = {}
        async with self.api.driver.tasks() as tasks:
            api = self.through(tasks.driver).api

            async def work(resource: Resource, labels: str) -> None:
                try:
                    lists[resource] = await _listed(api, resource, namespace, labels)
                except TrainingError as error:
                    lists[resource] = error

            for resource, labels in wanted.items():
                tasks.start(work(resource, labels))
            async with aclosing(tasks.items()) as items:
                async for _ in items:
                    pass
        found: dict[Resource, Listed] = {}
        for resource in wanted:
            # Of several errors that of the first kind is raised.
            result = lists[resource]
            if isinstance(result, list | NotSupportedError):
                found[resource] = result
            else:
                raise result
        return found

    def status_in(self, ref: JobRef, report: Json | None) -> JobStatus:
        """Return the status in a job's report, or an empty one before there is a report."""
        return status_of(report, ref.kind, ref.name, ref.namespace, ref.uid, self.api.host)


async def _listed(api: Api, resource: Resource, namespace: str | None, labels: str) -> Listed:
    """Return the objects of a kind, or the error if the cluster does not know the kind."""
    try:
        return (await api.list(resource, namespace, labels))[0]
    except NotSupportedError as error:
        return error


def replaced(ref: JobRef) -> JobNotFoundError:
    """Return the error for a job that is deleted, and whose name another job has."""
    return JobNotFoundError(
        f"{ref} in the namespace {ref.namespace} was deleted; MPIJob.get({ref.name!r}) returns the job "
        "that has its name now"
    )
