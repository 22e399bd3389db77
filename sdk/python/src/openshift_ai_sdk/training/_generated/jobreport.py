"""Models of JobReport mpi.opendatahub.io/v1alpha1, from config/crd/mpi.opendatahub.io_jobreports.yaml.

Run `make sdk-generate` to update this file; do not edit it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from openshift_ai_sdk.training._generated._base import OpenEnum, Received

__all__ = [
    "Basis",
    "By",
    "Call",
    "Change",
    "CompleteLogs",
    "Consumption",
    "Curves",
    "Earlier",
    "Encryption",
    "EncryptionState",
    "EndEstimate",
    "Estimate",
    "Failure",
    "Figure",
    "Finding",
    "JobReference",
    "JobReport",
    "JobReportSpec",
    "JobReportStatus",
    "LateRank",
    "Link",
    "Logs",
    "MPIStatus",
    "MessageSize",
    "Metric",
    "Name",
    "PerPod",
    "PerRank",
    "Phase",
    "PhaseTime",
    "PodStatus",
    "Profile",
    "Remedy",
    "Run",
    "SchedulingStatus",
    "Severity",
    "Specification",
    "Startup",
    "StartupStep",
    "Step",
    "TimelineEntry",
    "Trace",
    "Training",
    "Usage",
    "UsageMetric",
    "UsagePerRank",
    "Waited",
    "WorkersStatus",
]


class JobReference(Received):
    """JobRef identifies the job, which may have been deleted.

    A later job of the same name has another uid and its own report.
    """

    api_version: str = Field(alias="apiVersion")
    """ApiVersion of the job, such as kubeflow.org/v2beta1."""
    kind: str
    """Kind of the job: MPIJob or TrainJob."""
    name: str
    """Name of the job.

    It is in the namespace of the report.
    """
    uid: str
    """Uid of the job."""


class JobReportSpec(Received):
    """Spec identifies the job."""

    job_ref: JobReference = Field(alias="jobRef")
    """JobRef identifies the job, which may have been deleted.

    A later job of the same name has another uid and its own report.
    """


class CompleteLogs(Received):
    """CompleteLogs is where the complete logs of all pods of a finished job are, in the bucket of the cluster's
    administrator.

    It is unset if there is no such bucket, or the logs are not written yet.
    """

    expires: datetime | None = None
    """Expires is when the address stops working, and the logs are deleted."""
    index: str | None = None
    """Index is the signed address of a list of the objects with the logs.

    Anyone who has it can read the logs until it expires.
    """
    lines: int | None = None
    """Lines is the number of lines."""
    message: str | None = None
    """Message is why logs could not be read, were cut, or are not written yet."""
    pods: int | None = None
    """Pods is the number of pods with logs."""
    pods_cut: int | None = Field(default=None, alias="podsCut")
    """PodsCut is the number of pods of whose logs lines may be missing."""
    pods_unread: int | None = Field(default=None, alias="podsUnread")
    """PodsUnread is the number of pods whose logs could not be read."""
    size: int | None = None
    """Size is the size of the compressed logs in bytes."""


class Step(Received):
    """ConsumptionStep is the consumption up to a time."""

    cpu_core_seconds: int = Field(alias="cpuCoreSeconds")
    """CpuCoreSeconds is the requested CPU cores multiplied by seconds."""
    gpu_seconds: dict[str, int] | None = Field(default=None, alias="gpuSeconds")
    """GpuSeconds is the requested devices multiplied by seconds, for each resource such as nvidia.com/gpu."""
    memory_gib_seconds: int = Field(alias="memoryGiBSeconds")
    """MemoryGiBSeconds is the requested memory in GiB multiplied by seconds."""
    time: datetime
    """Time is the time up to which consumption is counted."""


class Consumption(Received):
    """Consumption is the resources that the job's pods have reserved so far: their requests, multiplied by the time
    that they held them.

    What they used is in usage.
    """

    cpu_core_seconds: int = Field(alias="cpuCoreSeconds")
    """CpuCoreSeconds is the requested CPU cores multiplied by seconds."""
    gpu_seconds: dict[str, int] | None = Field(default=None, alias="gpuSeconds")
    """GpuSeconds is the requested devices multiplied by seconds, for each resource such as nvidia.com/gpu."""
    held: dict[str, int | str] | None = None
    """Held is what the job's pods hold together at the time until.

    It is empty if they hold nothing.
    """
    memory_gib_seconds: int = Field(alias="memoryGiBSeconds")
    """MemoryGiBSeconds is the requested memory in GiB multiplied by seconds."""
    steps: list[Step] = Field(default_factory=list)
    """Steps are the totals at the times at which the pods began to hold more or less, oldest first.

    Between two steps, and from the last one to the time until, the totals grow evenly. If a job has too many steps,
    those are left out that change the totals least.
    """
    until: datetime
    """Until is the time up to which consumption is counted."""


class By(OpenEnum):
    """By is what the points are numbered by."""

    STEP = "Step"
    EPOCH = "Epoch"
    TIME = "Time"


class Figure(Received):
    """TrainingCurve is a figure by step, epoch or time.

    When a curve has more than 120 points, every second one is left out.
    """

    at: list[int] = Field(default_factory=list)
    """At are the places of the points, in ascending order: steps, thousandths of epochs, or seconds since 1970."""
    by: By
    """By is what the points are numbered by."""
    epoch: int | None = None
    """Epoch is the epoch of the last point in thousandths, if it is known."""
    name: str
    """Name is the name of the figure, such as loss."""
    not_finite_at: int | None = Field(default=None, alias="notFiniteAt")
    """NotFiniteAt is the place of the first value that is NaN or infinite."""
    not_finite_count: int | None = Field(default=None, alias="notFiniteCount")
    """NotFiniteCount is how many values in a row were NaN or infinite, up to the latest one."""
    offset: int | None = None
    """Offset is what is added to a step if the program counts the steps of each epoch from the start."""
    values: list[str] = Field(default_factory=list)
    """Values are the values at these places: decimal numbers with six digits, NaN, Inf or -Inf.

    The last one is the latest value.
    """
    width: int
    """Width is the least distance of two points."""


class Curves(Received):
    """Curves are the figures that the program printed over time, such as its loss, with at most 120 points each."""

    epoch: int | None = None
    """Epoch is the last epoch that was printed, in thousandths."""
    figures: list[Figure] = Field(default_factory=list)
    """Figures are the curves, in the order in which the program first printed their names."""
    until: datetime
    """Until is when the last line with a figure was written."""


class EncryptionState(OpenEnum):
    """State is Encrypted, NotEncrypted (nothing is known to encrypt the traffic, or pods communicate past what does) or
    Unknown."""

    ENCRYPTED = "Encrypted"
    NOT_ENCRYPTED = "NotEncrypted"
    UNKNOWN = "Unknown"


class Encryption(Received):
    """Encryption is whether the cluster's network encrypted the traffic between the job's pods when they last started
    to run.

    It is unset before that, for a job of one pod, and if it was not looked up.
    """

    by: list[str] = Field(default_factory=list)
    """By is what encrypts the traffic between pods on different nodes, such as Cilium."""
    message: str | None = None
    """Message explains why the traffic is not encrypted, or why that is unknown."""
    state: EncryptionState
    """State is Encrypted, NotEncrypted (nothing is known to encrypt the traffic, or pods communicate past what does) or
    Unknown."""


class EndEstimate(Received):
    """EndEstimate is when a running job is expected to end, by the progress that its program printed.

    It is unset if the program printed no share of its work, and while the job does not run.
    """

    attempt: int | None = None
    """Attempt is the attempt of the launcher that the progress is of."""
    by: datetime | None = None
    first: int
    """First is the completed share of the work when it was first read, and firstAt is when that was."""
    first_at: datetime = Field(alias="firstAt")
    from_: datetime | None = Field(default=None, alias="from")
    """From and by limit the time at which the job is expected to end.

    They are unset if there is no estimate.
    """
    longest_step_seconds: int | None = Field(default=None, alias="longestStepSeconds")
    message: str | None = None
    """Message is the estimate, or why there is none, in one sentence."""
    reached: int
    """Reached is the completed share that was read last, and reachedAt is when it was reached."""
    reached_at: datetime = Field(alias="reachedAt")
    reason: str | None = None
    """Reason is why there is no estimate: TooEarly, StandsStill, or WentBack if the program printed less than before,
    so that what it prints is not the share of the whole job."""
    steps: int | None = None
    """Steps is how often the share has grown, and longestStepSeconds is the longest time that this took."""


class Failure(Received):
    """Failure describes where and how the job failed, with the end of its log."""

    code: str
    """Code is the code of the first finding."""
    exit_code: int | None = Field(default=None, alias="exitCode")
    """ExitCode is the exit code of the program in that pod.

    Values over 128 are 128 plus the number of a signal.
    """
    log_tail: list[str] = Field(default_factory=list, alias="logTail")
    """LogTail contains the last log lines of the launcher and of the failed pods, with secrets masked.

    Each line starts with the name of its pod in brackets.
    """
    pod: str | None = None
    """Pod is the pod that failed first."""
    rank: int | None = None
    """Rank is the rank that failed first."""


class Change(Received):
    """FieldChange sets a field of a job."""

    field: str
    """Field is the path of the field, with the index of a list entry or a name with dots in brackets, such as
    spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]; or env.NAME for a variable of every rank."""
    value: str
    """Value is the new value: that of a path in YAML, that of a variable as it is, or empty to remove it."""


class Remedy(Received):
    """Remedy is a suggested fix."""

    action: str | None = None
    """Action is a command to run, or a field of the job and its new value, if there is one."""
    changes: list[Change] = Field(default_factory=list)
    """Changes are fields of the job to set in the copy, in this order."""
    rerun: bool | None = None
    """Rerun is whether clients can apply the fix: by a copy of the job, with the changes below if there are any."""
    text: str
    """Text describes the fix to users."""


class Severity(OpenEnum):
    """Severity is Error (the job failed because of it, or cannot continue), Warning (it may resolve without action) or
    Info (a consequence of another finding)."""

    ERROR = "Error"
    WARNING = "Warning"
    INFO = "Info"


class Finding(Received):
    """Finding is a problem of a job."""

    affected: list[str] = Field(default_factory=list)
    """Affected lists the names of the pods or objects that have the problem."""
    code: str
    """Code identifies the kind of problem for programs, such as OutOfMemory."""
    evidence: list[str] = Field(default_factory=list)
    """Evidence lists the observations that the finding is based on: log lines, events, figures."""
    exit_code: int | None = Field(default=None, alias="exitCode")
    """ExitCode is the exit code of the program in that pod.

    Values over 128 are 128 plus the number of a signal.
    """
    pod: str | None = None
    """Pod is the pod in which the problem began, if it is known."""
    rank: int | None = None
    """Rank is the rank in which the problem began, if it is known."""
    remedies: list[Remedy] = Field(default_factory=list)
    """Remedies are suggested fixes, the most likely first."""
    severity: Severity
    """Severity is Error (the job failed because of it, or cannot continue), Warning (it may resolve without action) or
    Info (a consequence of another finding)."""
    summary: str
    """Summary describes the problem in one or two sentences."""


class Link(Received):
    """Link is a link to a page about a job."""

    title: str
    """Title names the page, such as MLflow."""
    url: str
    """Url is the address of the page, with http or https."""


class Logs(Received):
    """Logs contains the ends of the logs of all pods of a finished job.

    It is unset if none of them has run, or the operator keeps no logs.
    """

    data: str | None = None
    """Data is the text of the logs, compressed with gzip: one line for each line of a log, in the order of time.

    It is the time, the name of the pod in brackets, and the text, with secrets masked and without control characters.
    If it is empty, see omitted.
    """
    lines: int | None = None
    """Lines is the number of lines."""
    omitted: str | None = None
    """Omitted is why the logs of pods could not be read, or why there is no data any more."""
    pods: int | None = None
    """Pods is the number of pods whose logs were read."""
    pods_cut: int | None = Field(default=None, alias="podsCut")
    """PodsCut is the number of pods of whose logs only the last lines are contained."""
    pods_unread: int | None = Field(default=None, alias="podsUnread")
    """PodsUnread is the number of pods whose logs could not be read."""
    size: int | None = None
    """Size is the size of the compressed data in bytes."""


class MPIStatus(Received):
    """Mpi describes the MPI library of the job, its slots, and its startup times."""

    binding: str | None = None
    """Binding is how ranks are bound to cores, such as "none, cores are shared", "each rank to a core of its pod" or
    "as set: --bind-to core".

    It is empty if that is unknown, as with sshd.
    """
    connect_milliseconds: int | None = Field(default=None, alias="connectMilliseconds")
    """ConnectMilliseconds is the time from the first attempt to connect to a worker until all workers were connected."""
    implementation: str | None = None
    """Implementation is OpenMPI, Intel or MPICH."""
    init_milliseconds: int | None = Field(default=None, alias="initMilliseconds")
    """InitMilliseconds is the time from the first command on a worker until a rank's process started there, for the
    slowest worker."""
    ranks: int | None = None
    """Ranks is the number of ranks if every slot of the job is used."""
    slots_expected: int | None = Field(default=None, alias="slotsExpected")
    """SlotsExpected is the number of slots of the workers in the hostfile.

    This field and the following ones are reported by the agent at the end of the launcher's latest run.
    """
    slots_found: int | None = Field(default=None, alias="slotsFound")
    """SlotsFound is the number of slots of the workers on which the launcher started processes.

    A program with fewer ranks than slots may not need all workers.
    """
    slots_per_worker: int | None = Field(default=None, alias="slotsPerWorker")
    """SlotsPerWorker is the number of ranks (processes of the program) per worker."""


class Phase(OpenEnum):
    """Phase is the step of its life that the job is in: Pending (nothing started), Queued (waits in a queue),
    GangScheduling (waits until all pods fit), Initializing (pods start), Running, Suspended, Succeeded or Failed."""

    PENDING = "Pending"
    QUEUED = "Queued"
    GANG_SCHEDULING = "GangScheduling"
    INITIALIZING = "Initializing"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class PhaseTime(Received):
    """PhaseTime is the time that a job spent in a phase."""

    phase: Phase
    """Phase is the name of the phase."""
    seconds: int
    """Seconds is how long the job was in the phase.

    For the current phase, add the time since it was entered.
    """
    since: datetime
    """Since is when the job last entered the phase."""


class PodStatus(Received):
    """PodStatus describes one pod of a job."""

    exit_code: int | None = Field(default=None, alias="exitCode")
    """ExitCode is the exit code of the first container that failed."""
    index: int
    """Index is the number of the worker, from 0, or of the launcher's attempt."""
    name: str
    """Name of the pod."""
    node: str | None = None
    """Node is the node that the pod is bound to."""
    phase: str | None = None
    """Phase is Pending, Running, Succeeded, Failed or Unknown; Terminating while the pod is being deleted; or Gone if
    the pod of a finished job was deleted."""
    ranks: str | None = None
    """Ranks are the ranks that run in the pod, such as 8-15."""
    ready: bool | None = None
    """Ready is whether the pod is ready."""
    reason: str | None = None
    """Reason is the cause of the phase, such as ImagePullBackOff or OOMKilled."""
    restarts: int | None = None
    """Restarts is how often containers of the pod were restarted."""
    role: str
    """Role is launcher or worker."""


class Call(Received):
    """ProfileCall is what the ranks did in a function of MPI."""

    bytes: int
    """Bytes is the size of the data that the ranks sent or passed to it; 0 for functions that receive or wait."""
    call: str
    """Call is the name of the function, such as MPI_Allreduce."""
    count: int
    """Count is how often the ranks called it."""
    milliseconds: int
    """Milliseconds is the time in it."""


class LateRank(Received):
    """LateRank is the rank that the others wait for.

    It is unset if there is none.
    """

    rank: int
    """Rank is the number of the rank."""
    waited_milliseconds: int = Field(alias="waitedMilliseconds")
    """WaitedMilliseconds is how much longer the median of the other ranks was in functions of MPI."""


class MessageSize(Received):
    """MessageSizes is the number of calls with data of some size."""

    count: int
    """Count is the number of calls."""
    up_to_bytes: int | None = Field(default=None, alias="upToBytes")
    """UpToBytes is the largest size, above that of the entry before.

    It is unset in the last entry.
    """


class PerRank(Received):
    """RankProfile is where the time of a rank went."""

    communication_milliseconds: int = Field(alias="communicationMilliseconds")
    milliseconds: int
    """Milliseconds is the time between MPI_Init and MPI_Finalize, and communicationMilliseconds that in functions of
    MPI."""
    rank: int
    """Rank is the number of the rank."""


class Profile(Received):
    """Profile is where the time of the job's ranks went: in functions of MPI, and in which.

    It is unset unless the job asks for it.
    """

    calls: list[Call] = Field(default_factory=list)
    """Calls are the functions of MPI with the most time, of all ranks."""
    communication_milliseconds: int = Field(alias="communicationMilliseconds")
    communication_percent: int = Field(alias="communicationPercent")
    """CommunicationPercent is the share of the time in functions of MPI."""
    imbalance_percent: int = Field(alias="imbalancePercent")
    """ImbalancePercent is how much less time the mean rank spent outside of functions of MPI than the one with the
    most."""
    late_rank: LateRank | None = Field(default=None, alias="lateRank")
    """LateRank is the rank that the others wait for.

    It is unset if there is none.
    """
    message_sizes: list[MessageSize] = Field(default_factory=list, alias="messageSizes")
    """MessageSizes are the numbers of calls by the size of the data that the rank sent or passed to a collective
    function."""
    milliseconds: int
    """Milliseconds and communicationMilliseconds are the sums of all ranks: their time, and that in functions of MPI."""
    per_rank: list[PerRank] = Field(default_factory=list, alias="perRank")
    """PerRank are the ranks.

    If there are more than 32, those are listed that differ most from the others.
    """
    ranks: int
    """Ranks is the number of ranks that were measured."""
    runs: int | None = None
    """Runs is the number of runs of MPI's launcher, such as mpirun, in which ranks were measured.

    The other figures are those of the run that began last. 33 stands for more than 32.
    """
    since: datetime | None = None
    """Since is when the run began: the first of its ranks had called MPI_Init."""
    until: datetime
    """Until is the time of the last measurement."""


class Run(Received):
    """Run is what the job runs, and who created it.

    It is kept when the job is deleted.
    """

    attempts: int | None = None
    """Attempts is how often the launcher's container was started.

    It is 0 before the first start, and for jobs without a launcher.
    """
    command: str | None = None
    """Command is the command with its arguments, quoted as for a shell, with secrets masked.

    It is the launcher's, or that of the nodes of a TrainJob without MPI. It is empty if it is only defined in the
    image, and cut if it is long.
    """
    creator: str | None = None
    """Creator is the user who created the job, if the admission webhook recorded it."""
    field_manager: str | None = Field(default=None, alias="fieldManager")
    """FieldManager is the field manager of the request that created the job, if its creator was not recorded because no
    operator answered.

    It names a program, such as kubectl-create. The client chooses this name, so that it does not prove who created the
    job.
    """
    image: str | None = None
    """Image is the image of the workers, and launcherImage that of the launcher if it is another one."""
    launcher_image: str | None = Field(default=None, alias="launcherImage")
    limits: dict[str, int | str] | None = None
    """ResourceList is a set of (resource name, quantity) pairs."""
    mpi_versions: list[str] = Field(default_factory=list, alias="mpiVersions")
    """MpiVersions are the MPI libraries that ran, with their versions, such as "Open MPI 5.0.7".

    The launcher's agent asks mpirun or mpiexec, and reports them when the launcher ends. It is empty if they are
    unknown.
    """
    requests: dict[str, int | str] | None = None
    """Requests and limits are the resources of the main container of each worker."""
    runtime: str | None = None
    """Runtime is the name of the TrainJob's runtime."""


class Basis(OpenEnum):
    """Basis is what the estimate follows from: the deadlines of the jobs before it (Deadlines), the durations of
    similar jobs that succeeded (Durations), both (DeadlinesAndDurations), or how long other jobs waited (PastWaits)."""

    DEADLINES = "Deadlines"
    DURATIONS = "Durations"
    DEADLINES_AND_DURATIONS = "DeadlinesAndDurations"
    PAST_WAITS = "PastWaits"


class Estimate(Received):
    """Estimate is when the job is expected to start, or why that is unknown.

    It is unset if waiting does not help.
    """

    basis: Basis | None = None
    """Basis is what the estimate follows from: the deadlines of the jobs before it (Deadlines), the durations of
    similar jobs that succeeded (Durations), both (DeadlinesAndDurations), or how long other jobs waited (PastWaits)."""
    by: datetime | None = None
    """By is when they have ended if they take as long as nine in ten similar jobs, or until their deadlines.

    It is unset if there is no estimate.
    """
    from_: datetime | None = Field(default=None, alias="from")
    """From is when the jobs before it have ended if they take their usual time.

    It is unset if they may end at any time.
    """
    message: str | None = None
    """Message is the estimate, or why there is none, in one sentence."""
    reason: str | None = None
    """Reason is why there is no estimate: NoDeadline, Overdue, PodsStay, NotReleased, NoneAhead, Autoscaled, FewSamples
    or WaitedLonger."""


class SchedulingStatus(Received):
    """Scheduling describes what the job waits for before its pods can be placed.

    It is unset when the job does not wait.
    """

    attempts: int | None = None
    """Attempts is how often the job was requeued because not all of its pods could be placed in time."""
    backend: str | None = None
    """Backend is what admits or schedules the job: kueue, podgroup, coscheduling, volcano or embedded."""
    estimate: Estimate | None = None
    """Estimate is when the job is expected to start, or why that is unknown.

    It is unset if waiting does not help.
    """
    evicted_at: datetime | None = Field(default=None, alias="evictedAt")
    """EvictedAt is when the job was last requeued.

    Pods created before are deleted.
    """
    message: str | None = None
    """Message explains to users what the job waits for."""
    next_try: datetime | None = Field(default=None, alias="nextTry")
    """NextTry is when the job is retried after it was requeued."""
    nodes_fit: int | None = Field(default=None, alias="nodesFit")
    """NodesFit is the number of nodes that have room for a pod of this job now."""
    nodes_needed: int | None = Field(default=None, alias="nodesNeeded")
    """NodesNeeded is the number of nodes that the job needs."""
    nodes_total: int | None = Field(default=None, alias="nodesTotal")
    """NodesTotal is the number of nodes of the cluster."""
    observed_at: datetime | None = Field(default=None, alias="observedAt")
    """ObservedAt is when these values were written.

    The operator compares them every 30 s, and writes those that changed; if none changed, it confirms them about every
    5 minutes.
    """
    placed: int | None = None
    """Placed is the number of pods that are bound to a node."""
    pods_fit: int | None = Field(default=None, alias="podsFit")
    """PodsFit is how many of the pods that need a node could be placed now."""
    position: int | None = None
    """Position is the position of the job in the queue.

    The next job has position 1.
    """
    position_scope: str | None = Field(default=None, alias="positionScope")
    """PositionScope names the queue or the set of jobs that position counts."""
    queue: str | None = None
    """Queue is the queue that the job waits in."""
    samples: int | None = None
    """Samples is the number of jobs that waitP50 and waitP90 are based on."""
    since: datetime | None = None
    """Since is when the job started to wait."""
    wait_p50: int | None = Field(default=None, alias="waitP50")
    """WaitP50 is the median wait in seconds of comparable jobs: those of the same queue with half to twice as many
    pods.

    WaitP50 and waitP90 are unset if fewer than ten such jobs are known.
    """
    wait_p90: int | None = Field(default=None, alias="waitP90")
    """WaitP90 is the 90th percentile of the wait in seconds of comparable jobs."""
    waited_seconds: int | None = Field(default=None, alias="waitedSeconds")
    """WaitedSeconds is how long the job had waited at observedAt."""
    wanted: int | None = None
    """Wanted is the number of pods that need a node."""


class Specification(Received):
    """Specification is the job as its user wrote it, with secrets masked.

    It is kept when the job is deleted.
    """

    manifest: str | None = None
    """Manifest is the job as YAML: its labels, annotations and spec, without what the cluster has added.

    **** replaces secrets. It is empty if it is too large; see omitted.
    """
    masked: int | None = None
    """Masked is the number of values in which secrets were masked."""
    omitted: str | None = None
    """Omitted is why there is no manifest."""
    runtime_version: str | None = Field(default=None, alias="runtimeVersion")
    """RuntimeVersion identifies the runtime of a TrainJob when the job was first seen: its UID and generation."""
    size: int | None = None
    """Size is the size of the manifest in bytes."""
    version: str
    """Version identifies the generation, labels and annotations of the job that the manifest has."""


class Name(OpenEnum):
    """Name is the part."""

    ADMISSION = "Admission"
    PODS_CREATED = "PodsCreated"
    SCHEDULED = "Scheduled"
    VOLUMES = "Volumes"
    INIT_CONTAINERS = "InitContainers"
    CONTAINERS = "Containers"
    READY = "Ready"
    LAUNCH = "Launch"
    CONNECTED = "Connected"
    MPI_INIT = "MPIInit"
    FIRST_LINE = "FirstLine"


class StartupStep(Received):
    """StartupStep is how long a part of a start took."""

    median_milliseconds: int | None = Field(default=None, alias="medianMilliseconds")
    """MedianMilliseconds is the median of all pods.

    It is unset if the step is not one of each pod.
    """
    milliseconds: int
    """Milliseconds is how long it took, in the slowest pod."""
    name: Name
    """Name is the part."""
    node: str | None = None
    pod: str | None = None
    """Pod is the slowest pod, and node is where it runs.

    They are unset if the step is not one of a pod.
    """
    start_milliseconds: int | None = Field(default=None, alias="startMilliseconds")
    """StartMilliseconds is the time from since until the part began, in the slowest pod.

    It is negative for Admission, which ends at since.
    """


class Startup(Received):
    """Startup is how long the parts of the job's latest start took.

    It is set when all pods have started.
    """

    milliseconds: int
    """Milliseconds is the time from then until the containers of all pods had started, or until the first line of
    output if that is known."""
    since: datetime
    """Since is when the first of the pods was created."""
    steps: list[StartupStep] = Field(default_factory=list)
    """Steps are the parts, in the order in which they happen.

    Unknown parts are left out. Steps of different pods overlap.
    """


class TimelineEntry(Received):
    """TimelineEntry is an event of a job."""

    detail: str | None = None
    """Detail describes the event."""
    event: str
    """Event identifies the event, such as Created, PodsStarting, Running, LauncherRestarted or Failed."""
    time: datetime
    """Time is when the event happened, or when the operator observed it."""


class Trace(Received):
    """Trace identifies the job's trace.

    It is unset if the operator sends no traces, or the trace of the job's caller is not sampled.
    """

    id: str
    """Id is the trace ID in hexadecimal: that of the annotation mpi.opendatahub.io/traceparent, or the UID of the job
    without hyphens."""
    parent: str | None = None
    """Parent is the ID of the span that the job is a part of, from the same annotation."""


class Training(Received):
    """Training is the last progress that the program printed, as JSON or key=value lines."""

    accuracy: str | None = None
    """Accuracy is the latest accuracy."""
    at: datetime
    """At is when the line was written, or when it was read if that is unknown."""
    epoch: str | None = None
    """Epoch is the current epoch."""
    loss: str | None = None
    """Loss is the latest loss."""
    progress: str | None = None
    """Progress is the completed share of the work, as printed."""
    step: str | None = None
    """Step is the current step."""


class Earlier(Received):
    """EarlierUsage is what the pods of a job used in an earlier run of its launcher."""

    cpu_core_seconds: int = Field(alias="cpuCoreSeconds")
    """CpuCoreSeconds is the used CPU cores multiplied by seconds."""
    gpu_seconds: int | None = Field(default=None, alias="gpuSeconds")
    """GpuSeconds is the busy GPUs multiplied by seconds.

    It is unset if they were not measured.
    """
    memory_gib_seconds: int = Field(alias="memoryGiBSeconds")
    """MemoryGiBSeconds is the used memory in GiB multiplied by seconds."""
    since: datetime
    """Since and until are the times of the first and the last measurement."""
    until: datetime


class Metric(OpenEnum):
    """Metric is the name of the metric."""

    CPU = "CPU"
    MEMORY = "Memory"
    THROTTLED = "Throttled"
    MAJOR_FAULTS = "MajorFaults"
    CPU_PRESSURE = "CPUPressure"
    MEMORY_PRESSURE = "MemoryPressure"
    IO_PRESSURE = "IOPressure"
    NETWORK = "Network"
    IO = "IO"
    GPU = "GPU"
    GPU_MEMORY = "GPUMemory"


class UsageMetric(Received):
    """UsageMetric is what was measured of a metric, in whole numbers of its unit."""

    limit: int | None = None
    """Limit is the most that can be used.

    It is unset if there is no limit.
    """
    max: int
    """Max is the maximum."""
    mean: int
    """Mean is the mean of all samples by time."""
    metric: Metric
    """Metric is the name of the metric."""
    p95: int
    """P95 is the value that was not exceeded for 95 % of the time."""
    points: list[int] = Field(default_factory=list)
    """Points are means, oldest first; -1 for times in which nothing was measured."""
    recent: int | None = None
    """Recent is the mean of the last 10 minutes, of the metrics Throttled and GPU of a pod.

    It is unset if much less was measured.
    """


class PerPod(Received):
    """PodUsage is what a pod used."""

    metrics: list[UsageMetric] = Field(default_factory=list)
    """Metrics are the figures of the pod's samples.

    Of several pods, the memory of the one that reaches its limit first has points.
    """
    pod: str
    """Pod is the name of the pod."""


class UsagePerRank(Received):
    """RankUsage is what a rank used, with the processes that it started."""

    cpu_millicores: int = Field(alias="cpuMillicores")
    """CpuMillicores is the mean of its CPU usage in thousandths of a core."""
    memory_mi_b: int = Field(alias="memoryMiB")
    """MemoryMiB is the maximum of its resident memory in MiB."""
    rank: int
    """Rank is the number of the rank."""


class Usage(Received):
    """Usage is what the job's pods used over time, as their agents measured it, with at most 120 points per metric.

    It is unset if no agent measured it.
    """

    earlier: list[Earlier] = Field(default_factory=list)
    """Earlier are the runs of the launcher before this one, oldest first.

    If there are more than 16, the oldest ones are added up.
    """
    metrics: list[UsageMetric] = Field(default_factory=list)
    """Metrics are the sums of all pods, and the means of those that are shares of time.

    Metrics that the kernel of a pod does not count are left out, and so are those that were always 0, except CPU,
    Memory and GPU. With more than one pod, p95 and max are those of the points.
    """
    per_pod: list[PerPod] = Field(default_factory=list, alias="perPod")
    """PerPod are the pods.

    If there are more than 32, those are listed that differ most from the others.
    """
    per_rank: list[UsagePerRank] = Field(default_factory=list, alias="perRank")
    """PerRank are the ranks.

    If there are more than 32, those are listed that differ most from the others.
    """
    pods: int
    """Pods is the number of pods that were measured: those with ranks."""
    point_seconds: int = Field(alias="pointSeconds")
    """PointSeconds is the length of a point."""
    points_since: datetime = Field(alias="pointsSince")
    """PointsSince is when the first point of each metric begins."""
    since: datetime
    """Since and until are the times of the first and the last measurement."""
    until: datetime


class Waited(Received):
    """Waited is how long the job waited until it was first admitted."""

    backend: str
    """Backend is what admitted the job: kueue, podgroup, coscheduling, volcano or embedded."""
    pods: int
    """Pods is the number of pods of the job."""
    queue: str | None = None
    """Queue is the queue that the job waited in."""
    seconds: int
    """Seconds is how long the job waited."""
    until: datetime
    """Until is when the job was admitted."""


class WorkersStatus(Received):
    """Workers counts the job's worker pods."""

    failed: int
    """Failed is the number of workers whose pod failed."""
    ready: int
    """Ready is the number of workers whose pod is ready."""
    running: int
    """Running is the number of workers whose pod is running, ready or not."""
    succeeded: int
    """Succeeded is the number of workers whose pod succeeded."""
    summary: str | None = None
    """Summary is the ready and the wanted number of workers, such as 7/8.

    For a finished job, whose pods are not ready any more, it is the wanted number, such as 8.
    """
    wanted: int
    """Wanted is the number of workers in the job's specification."""


class JobReportStatus(Received):
    """Status is the state of the job as the operator observed it."""

    complete_logs: CompleteLogs | None = Field(default=None, alias="completeLogs")
    """CompleteLogs is where the complete logs of all pods of a finished job are, in the bucket of the cluster's
    administrator.

    It is unset if there is no such bucket, or the logs are not written yet.
    """
    completion_time: datetime | None = Field(default=None, alias="completionTime")
    """CompletionTime is when the job succeeded or failed."""
    consumption: Consumption | None = None
    """Consumption is the resources that the job's pods have reserved so far: their requests, multiplied by the time
    that they held them.

    What they used is in usage.
    """
    curves: Curves | None = None
    """Curves are the figures that the program printed over time, such as its loss, with at most 120 points each."""
    encryption: Encryption | None = None
    """Encryption is whether the cluster's network encrypted the traffic between the job's pods when they last started
    to run.

    It is unset before that, for a job of one pod, and if it was not looked up.
    """
    end_estimate: EndEstimate | None = Field(default=None, alias="endEstimate")
    """EndEstimate is when a running job is expected to end, by the progress that its program printed.

    It is unset if the program printed no share of its work, and while the job does not run.
    """
    failure: Failure | None = None
    """Failure describes where and how the job failed, with the end of its log."""
    findings: list[Finding] = Field(default_factory=list)
    """Findings are the problems of the job: first the cause, then its consequences and other problems.

    A healthy job has none.
    """
    links: list[Link] = Field(default_factory=list)
    """Links are pages about the job, such as that of its run in MLflow: those that its user or the administrator wrote,
    and what its variables name."""
    logs: Logs | None = None
    """Logs contains the ends of the logs of all pods of a finished job.

    It is unset if none of them has run, or the operator keeps no logs.
    """
    logs_link: str | None = Field(default=None, alias="logsLink")
    """LogsLink is the address of the complete logs of the job in the log store of the cluster.

    It is unset if the administrator has set no log store.
    """
    message: str | None = None
    """Message explains the phase to users."""
    mpi: MPIStatus | None = None
    """Mpi describes the MPI library of the job, its slots, and its startup times."""
    observed_generation: int | None = Field(default=None, alias="observedGeneration")
    """ObservedGeneration is the generation of the job that the report describes."""
    phase: Phase | None = None
    """Phase is the step of its life that the job is in: Pending (nothing started), Queued (waits in a queue),
    GangScheduling (waits until all pods fit), Initializing (pods start), Running, Suspended, Succeeded or Failed."""
    phase_times: list[PhaseTime] = Field(default_factory=list, alias="phaseTimes")
    """PhaseTimes are the times that the job spent in each phase, in the order in which it first entered them."""
    pods: list[PodStatus] = Field(default_factory=list)
    """Pods are the latest attempts of the launcher, and the workers.

    If there are too many, those with problems are listed first.
    """
    pods_omitted: int | None = Field(default=None, alias="podsOmitted")
    """PodsOmitted is the number of pods that are not listed in pods."""
    profile: Profile | None = None
    """Profile is where the time of the job's ranks went: in functions of MPI, and in which.

    It is unset unless the job asks for it.
    """
    reason: str | None = None
    """Reason is the cause of the phase as an identifier for programs."""
    run: Run | None = None
    """Run is what the job runs, and who created it.

    It is kept when the job is deleted.
    """
    running_time: datetime | None = Field(default=None, alias="runningTime")
    """RunningTime is when the launcher and all workers were running for the first time."""
    scheduling: SchedulingStatus | None = None
    """Scheduling describes what the job waits for before its pods can be placed.

    It is unset when the job does not wait.
    """
    specification: Specification | None = None
    """Specification is the job as its user wrote it, with secrets masked.

    It is kept when the job is deleted.
    """
    start_time: datetime | None = Field(default=None, alias="startTime")
    """StartTime is when the operator first saw the job."""
    startup: Startup | None = None
    """Startup is how long the parts of the job's latest start took.

    It is set when all pods have started.
    """
    timeline: list[TimelineEntry] = Field(default_factory=list)
    """Timeline lists the events of the job, oldest first."""
    trace: Trace | None = None
    """Trace identifies the job's trace.

    It is unset if the operator sends no traces, or the trace of the job's caller is not sampled.
    """
    training: Training | None = None
    """Training is the last progress that the program printed, as JSON or key=value lines."""
    usage: Usage | None = None
    """Usage is what the job's pods used over time, as their agents measured it, with at most 120 points per metric.

    It is unset if no agent measured it.
    """
    waited: Waited | None = None
    """Waited is how long the job waited until it was first admitted."""
    workers: WorkersStatus | None = None
    """Workers counts the job's worker pods."""


class JobReport(Received):
    """JobReport reports the state of one MPI job: its phase, its pods, its problems and how to fix them.

    The operator writes it. The job does not own it: it is kept after the job is deleted, until its retention expires.
    It has no status subresource: only the operator writes it, and writes metadata, spec and status in one request.
    """

    api_version: str | None = Field(default=None, alias="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object.

    Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More
    info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents.

    Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    metadata: dict[str, Any] | None = None
    spec: JobReportSpec
    """Spec identifies the job."""
    status: JobReportStatus | None = None
    """Status is the state of the job as the operator observed it."""
