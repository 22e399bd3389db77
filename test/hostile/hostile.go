// Package hostile makes jobs that nobody should write: odd, contradictory and malicious ones. The same seed makes the same
// jobs. The package is pure.
//
// A job consists of a base, which runs a tiny program and ends, and of hazards, each of which sets one field to an odd value.
// Its tests take the jobs through validation, conversion and planning; the test Hostile of test/e2e creates them on a cluster.
package hostile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/mpi"
)

// Image is the image of the jobs, and Runtime the name of the TrainJobs' runtime, of kind TrainingRuntime.
const (
	Image   = "odh/mpi-sample-openmpi:dev"
	Runtime = "mpi"
)

// Case is a job with hazards.
type Case struct {
	// Name is unique among the jobs of one call. It is the name of the job, unless a hazard sets another one.
	Name string
	// Kind is mpi.KindMPIJob or mpi.KindTrainJob.
	Kind string
	// Hazards are the fields that were set, with their values.
	Hazards []string
	// Object is the job, without a namespace.
	Object map[string]any
	// Later are annotations that the job gets after its creation.
	Later map[string]string
	// Ends is whether the job must end if it is accepted, because nothing that keeps it from running was set.
	Ends bool
	// Elsewhere is whether the job names another controller.
	Elsewhere bool
}

// String returns the kind, name and hazards.
func (c Case) String() string { return c.Kind + " " + c.Name + ": " + strings.Join(c.Hazards, "; ") }

// Generate returns n jobs: first those that were found to be handled wrongly once, then random ones.
func Generate(seed uint64, n int) []Case {
	cases := corpus()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the jobs are to be the same each time
	for i := len(cases); i < n; i++ {
		cases = append(cases, One(random, fmt.Sprintf("hostile-%d", i)))
	}
	return cases[:min(n, len(cases))]
}

// One returns a random job with the given name and one to three hazards.
func One(random *rand.Rand, name string) Case {
	c := mpiJob(name, pick(random, programs), random.IntN(3))
	all := mpiJobHazards
	if random.IntN(3) == 0 {
		c = trainJob(name, pick(random, programs))
		all = trainJobHazards
	}
	for range 1 + random.IntN(3) {
		h := pick(random, pick(random, all))
		c.apply(h.at, pick(random, h.values))
	}
	if random.IntN(8) == 0 {
		c.Later = map[string]string{pick(random, annotations): fmt.Sprint(pick(random, words))}
	}
	return c
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// apply sets a field. Fields of pods are set in the pods of the launcher, of the workers or of both. Fields in what another
// hazard replaced are left.
func (c *Case) apply(at string, value any) {
	c.Hazards = append(c.Hazards, fmt.Sprintf("%s=%.80q", at, fmt.Sprint(value)))
	value = runtime.DeepCopyJSONValue(value)
	c.Ends = false
	c.Elsewhere = c.Elsewhere || strings.HasSuffix(at, "managedBy")
	role, rest, _ := strings.Cut(at, " ")
	roles := map[string][]string{"launcher": {"Launcher"}, "worker": {"Worker"}, "pod": {"Launcher", "Worker"}}[role]
	switch {
	case roles == nil:
		set(c.Object, value, strings.Fields(at)...)
	case c.Kind == mpi.KindMPIJob:
		for _, role := range roles {
			if _, has := get(c.Object, "spec", "mpiReplicaSpecs", role).(map[string]any); has {
				set(c.Object, value, append([]string{"spec", "mpiReplicaSpecs", role, "template"}, strings.Fields(rest)...)...)
			}
		}
	default:
		if get(c.Object, "spec", "runtimePatches") == nil {
			set(c.Object, object("[{manager: example.com/hostile, trainingRuntimeSpec: {template: {spec: {replicatedJobs: []}}}}]"), "spec", "runtimePatches")
		}
		for _, role := range roles {
			name := map[string]string{"Launcher": mpi.JobSetLauncher, "Worker": "node"}[role]
			c.patch(name, value, strings.Fields(rest))
		}
	}
}

// patch sets a field of the pods of one of the runtime's jobs.
func (c *Case) patch(job string, value any, at []string) {
	jobs := []string{"spec", "runtimePatches", "0", "trainingRuntimeSpec", "template", "spec", "replicatedJobs"}
	list, is := get(c.Object, jobs...).([]any)
	if !is {
		return
	}
	index := slices.IndexFunc(list, func(one any) bool { return get(one, "name") == job })
	if index < 0 {
		index = len(list)
		set(c.Object, object("{name: "+job+", template: {spec: {template: {}}}}"), append(jobs, strconv.Itoa(index))...)
	}
	if len(at) > 2 && at[1] == "containers" {
		set(c.Object, "node", slices.Concat(jobs, []string{strconv.Itoa(index), "template", "spec", "template", "spec", "containers", "0", "name"})...)
	}
	set(c.Object, value, slices.Concat(jobs, []string{strconv.Itoa(index), "template", "spec", "template"}, at)...)
}

// get returns a field of an object; nil if there is none.
func get(in any, at ...string) any {
	for _, part := range at {
		switch parent := in.(type) {
		case map[string]any:
			in = parent[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(parent) {
				return nil
			}
			in = parent[i]
		default:
			return nil
		}
	}
	return in
}

// set sets a field of an object, with the maps and lists that lead to it. It changes nothing if another value is in the way.
// The value absent removes the field.
func set(in, value any, at ...string) {
	parent, is := in.(map[string]any)
	if !is || len(at) == 0 {
		return
	}
	if len(at) == 1 {
		if value == absent {
			delete(parent, at[0])
		} else {
			parent[at[0]] = value
		}
		return
	}
	index, err := strconv.Atoi(at[1])
	if err != nil {
		if parent[at[0]] == nil {
			parent[at[0]] = map[string]any{}
		}
		set(parent[at[0]], value, at[1:]...)
		return
	}
	list, is := parent[at[0]].([]any)
	if !is && parent[at[0]] != nil || index > len(list) {
		return
	}
	if index == len(list) {
		list = append(list, any(map[string]any{}))
	}
	parent[at[0]] = list
	if len(at) == 2 {
		list[index] = value
	} else {
		set(list[index], value, at[2:]...)
	}
}

// object parses YAML.
func object(text string) any {
	var value any
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = utiljson.Unmarshal(data, &value)
	}
	if err != nil {
		panic(fmt.Sprintf("%s: %v", text, err)) // a mistake in this package
	}
	return value
}

func objects(texts ...string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = object(text)
	}
	return all
}

// programs are the launchers' commands. They end within seconds.
var programs = []string{
	"['true']", "['false']", "[sh, -c, 'exit 3']", "[sh, -c, 'kill -9 $$']", "[mpirun, -n, '1', 'true']", "[mpirun, -n, '1', sleep, '1']", "[mpirun, -n, '1', sh, -c, 'exit 7']",
	"[sh, -c, 'sleep 2; echo done']",
}

const container = `{name: main, image: "` + Image + `", imagePullPolicy: IfNotPresent,
  securityContext: {runAsNonRoot: true, runAsUser: 1000650000, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}},
  resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 256Mi}}%s}`

func mpiJob(name, command string, workers int) Case {
	replicas := "Launcher: {restartPolicy: Never, template: {spec: {terminationGracePeriodSeconds: 1, containers: [" + fmt.Sprintf(container, ", command: "+command) + "]}}}"
	if workers > 0 {
		replicas += ", Worker: {replicas: " + strconv.Itoa(workers) + ", template: {spec: {terminationGracePeriodSeconds: 1, containers: [" + fmt.Sprintf(container, "") + "]}}}"
	}
	made := object("{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: " + name + "}, spec: {slotsPerWorker: 1, runPolicy: {backoffLimit: 0}, mpiReplicaSpecs: {" + replicas + "}}}")
	return Case{Name: name, Kind: mpi.KindMPIJob, Object: made.(map[string]any), Ends: true}
}

func trainJob(name, command string) Case {
	made := object("{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: " + name + "}, spec: {runtimeRef: {name: " + Runtime + ", kind: TrainingRuntime}, trainer: {numNodes: 2, command: " + command + "}}}")
	return Case{Name: name, Kind: mpi.KindTrainJob, Object: made.(map[string]any), Ends: true}
}

// hazard is a field, with its path separated by spaces, and odd values of it. Paths that begin with launcher, worker or pod are
// of the pod template of a role or of both.
type hazard struct {
	at     string
	values []any
}

// absent is the value of a field that is removed.
const absent = "\x00absent"

// annotations are those of this project, and those that it reads.
var annotations = []string{
	mpi.AnnotationTemplate, mpi.AnnotationDisrupted, mpi.AnnotationEarlierAttempts, mpi.AnnotationActiveSince, mpi.AnnotationActiveBefore, mpi.AnnotationLinks, mpi.AnnotationImplementation, mpi.AnnotationMaxWorkers, mpi.AnnotationMinWorkers, mpi.AnnotationMaxGPUs, mpi.AnnotationNodeLabels, mpi.AnnotationCreator,
	mpi.AnnotationSuspendSetBy, mpi.AnnotationChangedBy, mpi.AnnotationQueueSuspendSetBy, mpi.AnnotationConnections, mpi.AnnotationLaunch, mpi.AnnotationRequeues, mpi.AnnotationMaxRestarts, mpi.AnnotationTTL, mpi.AnnotationGate,
	mpi.AnnotationWaitForQuota, mpi.AnnotationRDMA, mpi.AnnotationSilence, mpi.AnnotationProfile, mpi.AnnotationRequiredTopology, mpi.AnnotationPreferredTopology, mpi.AnnotationAllowEgress, mpi.AnnotationEndpoints,
	mpi.AnnotationGangTimeouts, mpi.AnnotationSuspendInQueue, mpi.AnnotationRequireEncryption, mpi.AnnotationTraceParent, mpi.AnnotationScheduleTimeout, mpi.AnnotationPriorityClass, mpi.AnnotationRemovedRDMA, mpi.AnnotationAdmitted,
}

// words are odd values of fields that hold text.
var words = []any{
	"", " ", "x y", "-1", "0", "1", "3", "true", "TRUE", "false", "99999999999999999999", "1e9", "NaN", "1.5h", "-1h", "0s", "100000000h", "a,b,,c", ",", "../../etc/passwd", "/", "$(id)", "`id`; id",
	"{{.Name}}", "{resource}", "a\nb", "a\x00b", "\u202eabc", "é", "UPPER", "-", "a.b/c", strings.Repeat("x", 64), strings.Repeat("y", 300), strings.Repeat("z,", 200), "fd00::1:2049", "169.254.169.254:80",
	"0.0.0.0/0", "http://[::1]:2379", "a=b,a=c", "=", "agent", "sshd", "Required", "closed", "open", "kubernetes.io/hostname", "kubernetes.io/no-such-label", "no-such-secret", "default/no-such-secret", "kube-system/x",
}

func numbers(more ...int64) []any {
	all := []any{int64(-1), int64(0), int64(math.MaxInt32), int64(math.MaxInt64), int64(math.MinInt32), "one", 1.5}
	for _, n := range more {
		all = append(all, n)
	}
	return all
}

func eachAnnotation() []hazard {
	var all []hazard
	for _, name := range annotations {
		all = append(all, hazard{"metadata annotations " + name, words})
	}
	return all
}

var metadataHazards = append(eachAnnotation(),
	hazard{"metadata labels " + mpi.LabelJob, words}, hazard{"metadata labels " + mpi.LabelJobSet, words}, hazard{"metadata labels " + mpi.LabelWithoutRDMA, words}, hazard{"metadata labels app", words},
	hazard{"metadata name", []any{"", "UPPER", "a.b", "0digits", "-", strings.Repeat("n", 40), strings.Repeat("n", 63), strings.Repeat("n", 253), "a b", "é", "kube-root-ca.crt", absent}},
)

// podHazards are of fields that MPIJobs and the patches of TrainJobs have.
var podHazards = slices.Concat(onRoles("metadata labels "+mpi.LabelJobSet, "", "other", "x y"), onRoles("metadata labels "+mpi.LabelJobSetJob, "", "node", "launcher"), onRoles("metadata labels "+mpi.LabelOperator, "", "other"),
	onRoles("metadata labels "+mpi.LabelJob, "", "other"), onRoles("metadata labels "+mpi.LabelRole, "worker", "launcher", "x"), onRoles("metadata labels "+mpi.LabelIndex, "-1", "9", "x"), onRoles("metadata labels job-name", "x"),
	onRoles("metadata annotations "+mpi.AnnotationTemplate, words...), onRoles("metadata annotations "+mpi.IstioInject, "true", "x y"), onRoles("metadata annotations k8s.v1.cni.cncf.io/networks", words...),
	onRoles("spec nodeSelector", objects("{no-such-label: x}", "{'x y': z}", "{kubernetes.io/os: windows}", "{'': ''}")...),
	onRoles("spec tolerations", objects("[{operator: Exists}]", "[{operator: Maybe}]", "[{key: 'x y'}]", "[{operator: Exists, effect: NoExecute, tolerationSeconds: -1}]", "[{}]")...),
	onRoles("spec affinity", objects("{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}", "{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: ''}]}}",
		"{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {}}]}}", "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: x, operator: Like}]}]}}}")...),
	onRoles("spec serviceAccountName", "no-such-account", "x y", "default"),
	onRoles("spec volumes", objects("[{name: mpi-agent, emptyDir: {}}]", "[{name: ssh-auth, emptyDir: {}}]", "[{name: x}]", "[{name: x, emptyDir: {}}, {name: x, emptyDir: {}}]", "[{name: x, secret: {secretName: no-such-secret}}]",
		"[{name: x, configMap: {name: no-such-map}}]", "[{name: x, persistentVolumeClaim: {claimName: no-such-claim}}]", "[{name: x, hostPath: {path: /}}]", "[{name: x, emptyDir: {sizeLimit: -1}}]", "[{name: 'X Y', emptyDir: {}}]",
		"[{name: x, projected: {sources: [{serviceAccountToken: {path: ../x, expirationSeconds: 1}}]}}]", "[{name: x, nfs: {server: no-such-host.invalid, path: /}}]")...),
	onRoles("spec imagePullSecrets", objects("[{name: no-such-secret}]", "[{}]", "[{name: 'x y'}]")...),
	onRoles("spec schedulingGates", objects("[{name: example.com/never}]", "[{name: ''}]")...),
	onRoles("spec securityContext", objects("{runAsUser: -1}", "{runAsUser: 0, runAsNonRoot: true}", "{sysctls: [{name: kernel.msgmax, value: '1'}]}", "{sysctls: [{name: net.ipv4.ip_local_port_range, value: x}]}", "{supplementalGroups: [-1]}",
		"{seccompProfile: {type: Localhost}}", "{appArmorProfile: {type: Localhost, localhostProfile: no-such-profile}}", "{fsGroup: 99999999999}")...),
	onRoles("spec containers 0 volumeMounts", objects("[{name: no-such-volume, mountPath: /x}]", "[{name: x, mountPath: x}]", "[{name: mpi-agent, mountPath: /opt/mpi-agent}]", "[{name: x, mountPath: '/a:b'}]", "[{name: ssh-auth, mountPath: /root/.ssh}]")...),
	onRoles("spec containers 0 env", objects("[{name: ''}]", "[{name: '1A', value: x}]", "[{name: 'A=B', value: x}]", "[{name: PATH, value: /nowhere}]", "[{name: LD_PRELOAD, value: /no/such.so}]", "[{name: X, valueFrom: {secretKeyRef: {name: no-such-secret, key: x}}}]",
		"[{name: MPI_AGENT_KEY, value: /dev/zero}]", "[{name: OMPI_MCA_orte_default_hostfile, value: /dev/null}]", "[{name: K_MPI_JOB_ROLE, value: other}]", "[{name: X, value: x, valueFrom: {fieldRef: {fieldPath: spec.x}}}]")...),
	onRoles("spec containers 0 securityContext", objects("{privileged: true}", "{runAsUser: -1}", "{capabilities: {add: [SYS_ADMIN]}}", "{procMount: Unmasked}")...),
)

// templateHazards are of fields that only MPIJobs set.
var templateHazards = slices.Concat(
	onRoles("metadata labels", objects("{'x y': z}", "{x: 'y z'}", "{'': ''}")...), onRoles("metadata name", "x y", "other"), onRoles("metadata annotations", objects("{'x y': z}", "{'': ''}")...),
	onRoles("spec containers", objects("[]", "[{}]", "[{name: 'X Y', image: x}]", "[{name: mpi-agent, image: x}]", "[{name: a, image: x}, {name: a, image: x}]")...),
	onRoles("spec containers 0 image", "", " ", "no-such-registry.invalid/x:y", "UPPER/x", "x:y:z", "odh/no-such-image:dev", strings.Repeat("i", 600)),
	onRoles("spec containers 0 imagePullPolicy", "Never", "Maybe"),
	onRoles("spec containers 0 command", objects("[]", "['']", "[no-such-program]", "[/]", `["a\0b"]`, "[sh, -c, 'exit 255']", "[sleep, '600']", "['$(NO_SUCH)']", "[sh, -c, 'exec 2>&- >&-; exit 1']")...),
	onRoles("spec containers 0 args", objects("['--', x]", "['']", `["a\0b"]`)...),
	onRoles("spec containers 0 workingDir", "/no/such/folder", "relative", "/etc/passwd"),
	onRoles("spec containers 0 ports", objects("[{containerPort: 0}]", "[{containerPort: 2222, hostPort: 2222}]", "[{containerPort: 70000}]", "[{containerPort: 1, name: 'X Y'}]")...),
	onRoles("spec containers 0 resources", objects("{requests: {cpu: -1}}", "{requests: {cpu: 2}, limits: {cpu: 1}}", "{requests: {memory: 1Ei}}", "{requests: {cpu: 100000}}", "{limits: {nvidia.com/gpu: 1}}", "{limits: {nvidia.com/gpu: 0.5}}",
		"{limits: {memory: 1}}", "{requests: {'x y': 1}}", "{requests: {cpu: much}}", "{limits: {rdma/hca: 1}}", "{claims: [{name: no-such-claim}]}", "{requests: {hugepages-2Mi: 2Mi}}")...),
	onRoles("spec containers 0 livenessProbe", objects("{exec: {command: ['false']}, periodSeconds: 1, failureThreshold: 1}", "{}", "{tcpSocket: {port: 99999}}", "{exec: {command: ['true']}, periodSeconds: -1}")...),
	onRoles("spec containers 0 readinessProbe", objects("{exec: {command: ['false']}, periodSeconds: 1}")...),
	onRoles("spec containers 0 lifecycle", objects("{postStart: {exec: {command: ['false']}}}", "{postStart: {}}")...),
	onRoles("spec initContainers", objects("[{name: init}]", "[{name: mpi-agent, image: x}]", fmt.Sprintf("["+strings.Replace(container, "main", "init", 1)+"]", ", command: ['false']"),
		fmt.Sprintf("["+strings.Replace(container, "main", "sidecar", 1)+"]", ", restartPolicy: Always, command: [sleep, '600']"), fmt.Sprintf("["+strings.Replace(container, "main", "listener", 1)+"]", ", restartPolicy: Always, command: [python3, -m, http.server, '2222']"))...),
	onRoles("spec hostNetwork", true), onRoles("spec hostPID", true), onRoles("spec hostIPC", true), onRoles("spec hostUsers", false, "no"),
	onRoles("spec hostname", strings.Repeat("h", 64), "x y", "localhost"), onRoles("spec subdomain", "other", "x y"), onRoles("spec setHostnameAsFQDN", true),
	onRoles("spec dnsPolicy", "None", "Maybe", "Default"), onRoles("spec dnsConfig", objects("{nameservers: [x]}", "{options: [{name: ndots, value: '-1'}]}")...),
	onRoles("spec restartPolicy", "Always", "Never", "Maybe"), onRoles("spec activeDeadlineSeconds", int64(-1), int64(0), int64(1), int64(math.MaxInt64)), onRoles("spec terminationGracePeriodSeconds", int64(-1), int64(0), "x"),
	onRoles("spec priorityClassName", "no-such-class", "x y"), onRoles("spec priority", int64(1000000000), int64(-1)), onRoles("spec schedulerName", "no-such-scheduler", "x y"), onRoles("spec runtimeClassName", "no-such-class"),
	onRoles("spec nodeName", "no-such-node"), onRoles("spec os", objects("{name: windows}", "{name: x}")...), onRoles("spec overhead", objects("{cpu: 1}")...), onRoles("spec readinessGates", objects("[{conditionType: example.com/never}]", "[{}]")...),
	onRoles("spec topologySpreadConstraints", objects("[{maxSkew: 0, topologyKey: x, whenUnsatisfiable: DoNotSchedule}]", "[{maxSkew: 1, topologyKey: no-such-label, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]")...),
	onRoles("spec ephemeralContainers", objects("[{name: e, image: x}]")...), onRoles("spec hostAliases", objects("[{ip: x, hostnames: [a]}]", "[{ip: 127.0.0.1, hostnames: [kubernetes.default.svc]}]")...),
	onRoles("spec shareProcessNamespace", true), onRoles("spec automountServiceAccountToken", true), onRoles("spec resourceClaims", objects("[{name: c, resourceClaimName: no-such-claim}]")...), onRoles("spec noSuchField", "x"),
)

// onRoles returns the hazards of a field of the launcher's pod, the workers' pods and both.
func onRoles(at string, values ...any) []hazard {
	return []hazard{{"launcher " + at, values}, {"worker " + at, values}, {"pod " + at, values}}
}

// mpiJobHazards and trainJobHazards are grouped: each group is as likely as the others.
var mpiJobHazards = [][]hazard{metadataHazards, podHazards, templateHazards, {
	{"spec slotsPerWorker", numbers(2)},
	{"spec mpiImplementation", []any{"LAM", "", "MPICH", "Intel", "openmpi"}},
	{"spec sshAuthMountPath", []any{"/", "/etc/mpi", "relative", "/proc/x", "/a:b", "/dev", "/opt/mpi-agent", strings.Repeat("/p", 400)}},
	{"spec launcherCreationPolicy", []any{"WaitForWorkersReady", "Never"}},
	{"spec runLauncherAsWorker", []any{true, "yes"}},
	{"spec noSuchField", []any{"x"}},
	{"spec runPolicy suspend", []any{true, "yes"}},
	{"spec runPolicy cleanPodPolicy", []any{"All", "Running", "None", "Some"}},
	{"spec runPolicy ttlSecondsAfterFinished", numbers()},
	{"spec runPolicy activeDeadlineSeconds", numbers(1)},
	{"spec runPolicy backoffLimit", numbers(1)},
	{"spec runPolicy managedBy", []any{"kueue.x-k8s.io/multikueue", "example.com/other", ""}},
	{"spec runPolicy schedulingPolicy", objects("{}", "{minAvailable: -1}", "{minAvailable: 0}", "{minAvailable: 1000}", "{queue: 'x y'}", "{priorityClass: no-such-class}", "{scheduleTimeoutSeconds: -1}", "{scheduleTimeoutSeconds: 0}",
		"{minResources: {cpu: -1}}", "{minResources: {cpu: 100000}}", "{minResources: {'x y': 1}}")},
	{"spec mpiReplicaSpecs Launcher", []any{absent, nil, map[string]any{}}},
	{"spec mpiReplicaSpecs Worker", []any{absent, nil, map[string]any{}, "x"}},
	{"spec mpiReplicaSpecs Evaluator", objects("{}", "{replicas: 1}")},
	{"spec mpiReplicaSpecs Launcher replicas", numbers(2)},
	{"spec mpiReplicaSpecs Worker replicas", numbers(100000)},
	{"spec mpiReplicaSpecs Launcher restartPolicy", []any{"Always", "OnFailure", "Maybe", "ExitCode"}},
	{"spec mpiReplicaSpecs Worker restartPolicy", []any{"Always", "Maybe"}},
	{"spec", []any{absent, nil, map[string]any{}, "x"}},
	{"status", objects("{conditions: [{type: Succeeded, status: 'True'}]}")},
}}

var trainJobHazards = [][]hazard{metadataHazards, podHazards, {
	{"spec runtimeRef name", []any{"", "no-such-runtime", "x y", absent}},
	{"spec runtimeRef kind", []any{"ClusterTrainingRuntime", "Pod", ""}},
	{"spec runtimeRef apiGroup", []any{"example.com", ""}},
	{"spec trainer numNodes", numbers(1, 3)},
	{"spec trainer numProcPerNode", append(numbers(2), "auto", "cpu", "gpu", "x y")},
	{"spec trainer image", []any{"", " ", "no-such-registry.invalid/x:y", "UPPER/x", "odh/no-such-image:dev"}},
	{"spec trainer command", objects("[]", "['']", "[no-such-program]", `["a\0b"]`, "[sleep, '600']")},
	{"spec trainer args", objects("[]", "['']", "[x]")},
	{"spec trainer env", objects("[{name: ''}]", "[{name: PATH, value: /nowhere}]", "[{name: 'A=B', value: x}]",
		"[{name: MPI_AGENT_KEY, value: /dev/zero}]", "[{name: X, value: a}, {name: X, value: b}]")},
	{"spec trainer resourcesPerNode", objects("{requests: {cpu: -1}}", "{requests: {cpu: 2}, limits: {cpu: 1}}", "{requests: {memory: 1Ei}}", "{limits: {nvidia.com/gpu: 1}}", "{limits: {memory: 1}}", "{requests: {'x y': 1}}", "{limits: {rdma/hca: 1}}", "{claims: [{name: x}]}")},
	{"spec trainer", []any{absent, nil, map[string]any{}}},
	{"spec suspend", []any{true, "yes"}},
	{"spec managedBy", []any{"kueue.x-k8s.io/multikueue", "example.com/other", ""}},
	{"spec activeDeadlineSeconds", numbers(1)},
	{"spec runtimePatches", objects("[{}]", "[{manager: 'x y', trainingRuntimeSpec: {}}]", "[{manager: example.com/a, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: no-such-job, template: {spec: {template: {spec: {}}}}}]}}}}]", "[{manager: example.com/a}, {manager: example.com/a}]")},
	{"spec podTemplateOverrides", objects("[{targetJobs: [{name: no-such-job}]}]", "[{targetJobs: [{name: node}], spec: {nodeSelector: {no-such-label: x}}}]")},
	{"spec initializer", objects("{dataset: {storageUri: 'hf://no/such'}}", "{model: {storageUri: 'x y'}}")},
	{"spec labels", objects("{'x y': z}", "{jobset.sigs.k8s.io/jobset-name: other}")},
	{"spec annotations", objects("{mpi.opendatahub.io/gate: open}", "{mpi.opendatahub.io/mpi-implementation: x}")},
	{"spec", []any{absent, nil, map[string]any{}, "x"}},
	{"spec noSuchField", []any{"x"}},
}}
