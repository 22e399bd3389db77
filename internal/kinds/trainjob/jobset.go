package trainjob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/podstatus"
)

// tree is an object of JSON. Fields of a JobSet that are unknown here stay unchanged.
type tree = map[string]any

// Wire completes the JobSet that Trainer creates for a TrainJob with one of our runtimes, given as JSON:
//
//   - the TrainJob's image and variables go to the workers too (Trainer gives them to the launcher alone);
//   - the launcher's command runs under the agent, which reports how it ended;
//   - the job's key can be read by whatever user a pod runs as (Trainer mounts it for root and a group);
//   - workers find the launcher by its bare host name, at which MPICH's and Intel's have them call back;
//   - the keys of the TrainJob's data connections are variables of launcher and workers;
//   - launcher and workers run in one rack, zone or the like, where the TrainJob says so;
//   - all pods have the priority class that the TrainJob says;
//   - a failed job is started again as often as the TrainJob says, and disruptions do not count;
//   - a service mesh keeps out of the pods;
//   - pods have no labels of another job, by which NetworkPolicies would take them for its pods;
//   - pods have no API token, unless a service account or the token was chosen;
//   - a variable tells the agent how long ranks may take to end, and another one that it is to profile them.
//
// The domain is the cluster's; empty stands for cluster.local.
//
// Neither the number of pods nor their size changes: Kueue has counted them by Trainer's own code. RemoveRDMA only makes them
// smaller.
func Wire(jobSet tree, job TrainJob, domain string) error {
	if errs := checkWiring(job); len(errs) > 0 {
		return errs.ToAggregate()
	}
	connections, _ := mpi.ParseConnections(job.Namespace, job.Annotations)
	class, _ := mpi.ParsePriorityClass(job.Annotations)
	for _, part := range parts(jobSet) {
		part.dropIdentity()
		part.prioritize(class)
		for _, field := range []string{"labels", "annotations"} {
			child(part.pod, "metadata", field)[mpi.IstioInject] = "false"
		}
		part.withholdToken()
		if err := part.connect(connections); err != nil {
			return err
		}
		if err := part.gather(job); err != nil {
			return err
		}
		if !part.agent() {
			continue
		}
		if err := part.equip(job, domain); err != nil {
			return err
		}
	}
	return restart(jobSet, job)
}

// equip completes pods that bring the agent along.
func (p jobPart) equip(job TrainJob, domain string) error {
	for _, item := range list(p.keys(), "items") {
		item["mode"] = int64(0o444)
	}
	p.search(job.Name + "." + job.Namespace + ".svc." + cmp.Or(domain, "cluster.local"))
	switch trainer := job.trainer(); {
	case p.container == nil:
	case p.name == launcherName:
		p.supervise()
	case p.name == nodeName:
		if trainer.Image != nil {
			p.container["image"] = *trainer.Image
		}
		if err := p.addEnv(trainer); err != nil {
			return err
		}
	}
	if seconds, set := at(p.pod, "spec")["terminationGracePeriodSeconds"]; set {
		p.passSetting(agentapi.EnvGrace, fmt.Sprintf("%vs", seconds))
	}
	if isProfiled, _ := mpi.ParseProfile(job.Annotations); isProfiled {
		p.passSetting(agentapi.EnvProfile, agentapi.ProfileFolder)
	}
	return nil
}

// PassAddressWait gives the agents of a new JobSet the time to wait for pods without a node (mpi.Gang.AddressWait), unless the runtime or
// the job sets it.
func PassAddressWait(jobSet tree, wait time.Duration) {
	for _, part := range parts(jobSet) {
		if part.agent() {
			part.passSetting(agentapi.EnvAddressWait, wait.String())
		}
	}
}

// PassCores tells the agents of a new JobSet how many cores each worker owns if its node has a static CPU manager (mpi.Job.WorkerCores).
func PassCores(jobSet tree, cores int64) {
	for _, part := range parts(jobSet) {
		if part.agent() && cores > 0 {
			part.passSetting(agentapi.EnvCores, strconv.FormatInt(cores, 10))
		}
	}
}

// PassGPUs has the agents of those pods of a new JobSet measure no GPUs that request none (mpi.MayHaveGPUs).
func PassGPUs(jobSet tree) error {
	pods, err := PodSpecs(jobSet)
	if err != nil {
		return err
	}
	for i, part := range parts(jobSet) {
		if part.agent() && !mpi.MayHaveGPUs(pods[i]) {
			part.passSetting(agentapi.EnvMeasureGPUs, "false")
		}
	}
	return nil
}

// Gate holds back the pods of a new JobSet: it stays suspended until the operator has room for all of its pods
// (mpi.AnnotationGate).
func Gate(jobSet tree) {
	state := mpi.GateClosed
	if at(jobSet, "spec")["suspend"] == true {
		state = mpi.GateSuspended
	}
	child(jobSet, "metadata", "annotations")[mpi.AnnotationGate] = state
	child(jobSet, "spec")["suspend"] = true
}

// OpenGate lets the pods of a new JobSet be created at once, by a gate that can be closed later. It holds back those of a JobSet that is
// suspended.
func OpenGate(jobSet tree) {
	if at(jobSet, "spec")["suspend"] == true {
		Gate(jobSet)
		return
	}
	child(jobSet, "metadata", "annotations")[mpi.AnnotationGate] = mpi.GateOpen
}

// Ungate removes the gate that a runtime's template has added to a new JobSet.
func Ungate(jobSet tree) { delete(at(jobSet, "metadata", "annotations"), mpi.AnnotationGate) }

// keepGate keeps the pods of a changed JobSet back: Trainer resumes what its TrainJob does not suspend, whenever it applies a
// JobSet. Only the operator opens a gate; a JobSet that was suspended meanwhile waits again. Trainer applies the annotations that
// a TrainJob adds to its runtime, so that those of others do not count.
func keepGate(jobSet, before tree, byOperator bool) {
	was, gated := at(before, "metadata", "annotations")[mpi.AnnotationGate]
	if !gated {
		Ungate(jobSet)
		return
	}
	annotations := child(jobSet, "metadata", "annotations")
	wasSuspended, isSuspended := at(before, "spec")["suspend"] == true, at(jobSet, "spec")["suspend"] == true
	mayResume := annotations[mpi.AnnotationGate] == mpi.GateOpen && was != mpi.GateSuspended
	switch {
	case byOperator && (isSuspended || mayResume):
		// It closes the gate, opens it, or changes something else.
	case byOperator:
		annotations[mpi.AnnotationGate] = was
		child(jobSet, "spec")["suspend"] = true
	case isSuspended, wasSuspended:
		Gate(jobSet)
	default:
		annotations[mpi.AnnotationGate] = was
	}
}

// PodSpecs returns the specifications of the pods of a JobSet, one of each of its jobs.
func PodSpecs(jobSet tree) ([]corev1.PodSpec, error) {
	var pods []corev1.PodSpec
	for _, part := range parts(jobSet) {
		var spec corev1.PodSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(child(part.pod, "spec"), &spec); err != nil {
			return nil, fmt.Errorf("read pods of job %s: %w", part.name, err)
		}
		pods = append(pods, spec)
	}
	return pods, nil
}

// JobOf returns what a JobSet contains of a job with MPI: the numbers of its pods, and their templates.
func JobOf(jobSet tree) (mpi.Job, error) {
	job := mpi.Job{External: true, Fields: fields}
	job.Launcher.None = true
	for _, entry := range list(at(jobSet, "spec"), "replicatedJobs") {
		var of ReplicatedJob
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(entry, &of); err != nil {
			return job, fmt.Errorf("read job %v: %w", entry["name"], err)
		}
		switch of.Name {
		case launcherName:
			job.Launcher.None, job.Launcher.Template = false, of.Template.Spec.Template
		case nodeName:
			job.Workers.Count, job.Workers.Template = int32(min(of.count(), maxNodes)), of.Template.Spec.Template
		}
	}
	return job, nil
}

// IsResumed reports whether a change of a JobSet resumes it.
func IsResumed(jobSet, before tree) bool {
	return at(before, "spec")["suspend"] == true && at(jobSet, "spec")["suspend"] != true
}

// RemoveRDMA removes the requests for RDMA from the pods of a JobSet, and marks it (mpi.LabelWithoutRDMA).
func RemoveRDMA(jobSet tree) {
	child(jobSet, "metadata", "labels")[mpi.LabelWithoutRDMA] = "true"
	for _, part := range parts(jobSet) {
		spec := at(part.pod, "spec")
		for _, container := range slices.Concat(list(spec, "initContainers"), list(spec, "containers")) {
			for _, field := range []string{"requests", "limits"} {
				maps.DeleteFunc(at(container, "resources", field), func(name string, _ any) bool { return podspec.IsRDMA(corev1.ResourceName(name)) })
			}
		}
	}
}

// UseKeys lets the pods of a JobSet use the SSH keys of a Secret in place of those that Trainer makes.
func UseKeys(jobSet tree, secret string) {
	for _, part := range parts(jobSet) {
		if keys := part.keys(); keys != nil {
			keys["secretName"] = secret
		}
	}
}

// Keep leaves in a changed JobSet what Wire has set, or has not, when it was made. JobSets cannot be changed in these
// fields, and Trainer applies them as it made them whenever a suspended job is changed or resumed.
//
// byOperator is whether the operator itself changes it, which may open and close its gate.
func Keep(jobSet, before tree, byOperator bool) {
	keepGate(jobSet, before, byOperator)
	copyField(jobSet, before, "spec", "failurePolicy")
	if at(before, "metadata", "labels")[mpi.LabelWithoutRDMA] != nil {
		RemoveRDMA(jobSet)
	}
	old := parts(before)
	isSuspended := at(before, "spec")["suspend"] == true || at(jobSet, "spec")["suspend"] == true
	for _, part := range parts(jobSet) {
		i := slices.IndexFunc(old, func(p jobPart) bool { return p.name == part.name })
		if i < 0 {
			continue
		}
		was := old[i]
		part.keepIdentity(was, isSuspended)
		for _, field := range []string{"labels", "annotations"} {
			copyField(part.pod, was.pod, "metadata", field, mpi.IstioInject)
		}
		copyField(part.pod, was.pod, "spec", "automountServiceAccountToken")
		copyField(part.pod, was.pod, "spec", "priorityClassName")
		copyField(part.pod, was.pod, "spec", "priority")
		copyField(part.pod, was.pod, "spec", "dnsConfig")
		copyField(part.pod, was.pod, "spec", "affinity")
		if part.container != nil && was.container != nil {
			for _, field := range []string{"image", "env", "envFrom", "command"} {
				copyField(part.container, was.container, field)
			}
		}
		copyField(part.keys(), was.keys(), "secretName")
		items, had := list(part.keys(), "items"), list(was.keys(), "items")
		for j := range min(len(items), len(had)) {
			copyField(items[j], had[j], "mode")
		}
	}
}

// LostNodeLabels returns the labels of nodes that launcher or workers of a JobSet asked for before it was changed.
func LostNodeLabels(jobSet, before tree) map[string]string {
	lost := map[string]string{}
	now := map[string]tree{}
	for _, part := range parts(jobSet) {
		now[part.name] = at(part.pod, "spec", "nodeSelector")
	}
	for _, part := range parts(before) {
		if part.name != launcherName && part.name != nodeName {
			continue
		}
		for key, value := range at(part.pod, "spec", "nodeSelector") {
			if text, is := value.(string); is && now[part.name][key] != value {
				lost[key] = text
			}
		}
	}
	return lost
}

// jobPart is one of a JobSet's jobs.
type jobPart struct {
	name string
	// pod is its pod template, container the container that Trainer wires, nil where there is none.
	pod, container tree
}

// parts are a JobSet's jobs.
func parts(jobSet tree) []jobPart {
	var all []jobPart
	for _, job := range list(at(jobSet, "spec"), "replicatedJobs") {
		name, _ := job["name"].(string)
		pod := child(job, "template", "spec", "template")
		p := jobPart{name: name, pod: pod}
		for _, c := range list(at(pod, "spec"), "containers") {
			if c["name"] == nodeName {
				p.container = c
			}
		}
		all = append(all, p)
	}
	return all
}

// agent reports whether the pods bring the agent along: an init container copies it, or they mount its image.
func (p jobPart) agent() bool {
	return slices.ContainsFunc(list(at(p.pod, "spec"), "initContainers"), func(c tree) bool { return c["name"] == agentapi.Container }) ||
		slices.ContainsFunc(list(at(p.pod, "spec"), "volumes"), func(v tree) bool { return v["name"] == agentapi.Volume && v["image"] != nil })
}

// keys is the source of the volume with the job's SSH keys: a Secret, its files and their modes; nil where there is none.
func (p jobPart) keys() tree {
	for _, volume := range list(at(p.pod, "spec"), "volumes") {
		if volume["name"] == keyVolume {
			return at(volume, "secret")
		}
	}
	return nil
}

// withholdToken keeps the API token of a service account that nobody chose out of the pods, as those of MPIJobs have none.
func (p jobPart) withholdToken() {
	spec := child(p.pod, "spec")
	account, _ := spec["serviceAccountName"].(string)
	deprecated, _ := spec["serviceAccount"].(string)
	if spec["automountServiceAccountToken"] == nil && account == "" && deprecated == "" {
		spec["automountServiceAccountToken"] = false
	}
}

// prioritize gives the pods a priority class in place of the runtime's; an empty name changes nothing.
func (p jobPart) prioritize(class string) {
	if class != "" {
		spec := child(p.pod, "spec")
		spec["priorityClassName"] = class
		delete(spec, "priority")
	}
}

// search has the pods look for names in one more domain.
func (p jobPart) search(domain string) {
	dns := child(p.pod, "spec", "dnsConfig")
	searches, _ := dns["searches"].([]any)
	dns["searches"] = append(searches, domain)
}

// supervise has the agent run an explicit command. What only the image knows cannot be put after it.
func (p jobPart) supervise() {
	command, _ := p.container["command"].([]any)
	if len(command) == 0 || command[0] == agentapi.Binary {
		return
	}
	p.container["command"] = append([]any{agentapi.Binary, "launch", "--"}, command...)
}

// passSetting gives the agent of launcher or workers a setting as a variable, unless there is one of this name.
func (p jobPart) passSetting(name, value string) {
	if p.container == nil {
		return
	}
	env, _ := p.container["env"].([]any)
	if !slices.ContainsFunc(env, func(have any) bool { is, _ := have.(tree); return is["name"] == name }) {
		p.container["env"] = append(env, tree{"name": name, "value": value})
	}
}

// addEnv sets the TrainJob's variables, over the runtime's where these have the same names.
func (p jobPart) addEnv(trainer Trainer) error {
	env, _ := p.container["env"].([]any)
	for i := range trainer.Env {
		entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&trainer.Env[i])
		if err != nil {
			return fmt.Errorf("take over variable %s: %w", trainer.Env[i].Name, err)
		}
		same := func(have any) bool { is, _ := have.(tree); return is["name"] == trainer.Env[i].Name }
		if at := slices.IndexFunc(env, same); at >= 0 {
			env[at] = entry
		} else {
			env = append(env, entry)
		}
	}
	if len(env) > 0 {
		p.container["env"] = env
	}
	return nil
}

// Rules of a failurePolicy (jobset api/jobset/v1alpha2). With ruleProgramFailed, config/runtimes end a job whose program failed;
// ruleDisrupted starts a disrupted job again.
const (
	ruleProgramFailed = "programFailed"
	ruleDisrupted     = "disrupted"

	actionFail             = "FailJobSet"
	actionRestartUncounted = "RestartJobSetAndIgnoreMaxRestarts"

	// exitDisrupted is the exit code that config/runtimes give the launcher's agent for a disruption (agentapi.EnvExitDisrupted).
	exitDisrupted = 75
)

// restart has JobSet start the whole job again after a failure as often as the job requests. Pods of the attempt before must be gone by
// then: they have the same host names. Disruptions, which do not count, are restarted as the runtime sets if the job allows no restart.
// If it allows some, the launcher's agent limits them, because JobSet has only one counter: without the agent they count. Call it when the
// parts of the JobSet are complete.
func restart(jobSet tree, job TrainJob) error {
	limit, errs := mpi.ParseMaxRestarts(job.Annotations)
	if len(errs) > 0 || limit == nil {
		return errs.ToAggregate()
	}
	if *limit == 0 {
		endFailedProgram(at(jobSet, "spec", "failurePolicy"))
		return nil
	}
	policy := child(jobSet, "spec", "failurePolicy")
	policy["maxRestarts"], policy["restartStrategy"] = int64(*limit), "BlockingRecreate"
	rules, _ := policy["rules"].([]any)
	rules = slices.DeleteFunc(rules, func(rule any) bool {
		is, _ := rule.(tree)
		return is["name"] == ruleProgramFailed
	})
	if targets := jobsWithDisruptions(jobSet); len(targets) > 0 && limitRestarts(jobSet, *limit+jobstate.MostDisrupted) {
		rules = append(rules, tree{
			"name": ruleDisrupted, "action": actionRestartUncounted,
			"onJobFailureReasons": []any{batchv1.JobReasonPodFailurePolicy}, "targetReplicatedJobs": targets,
		})
	}
	if len(rules) > 0 {
		policy["rules"] = rules
	} else {
		delete(policy, "rules")
	}
	return nil
}

// limitRestarts has the launcher's agent fail if JobSet has started the job again more often than a number, and reports whether the agent
// runs the launcher's command.
func limitRestarts(jobSet tree, most int32) (limited bool) {
	for _, part := range parts(jobSet) {
		if !part.launches() {
			continue
		}
		limited = true
		// A user must not raise it.
		env, _ := part.container["env"].([]any)
		env = slices.DeleteFunc(env, func(have any) bool {
			is, _ := have.(tree)
			return is["name"] == agentapi.EnvRestart || is["name"] == agentapi.EnvMaxRestarts
		})
		part.container["env"] = append(env,
			tree{"name": agentapi.EnvRestart, "valueFrom": tree{"fieldRef": tree{"fieldPath": "metadata.labels['" + labelRestart + "']"}}},
			tree{"name": agentapi.EnvMaxRestarts, "value": strconv.Itoa(int(most))})
	}
	return limited
}

// launches reports whether the container that Trainer wires has the agent run the launcher's command.
func (p jobPart) launches() bool {
	command, _ := p.container["command"].([]any)
	return len(command) > 1 && command[0] == agentapi.Binary && command[1] == "launch"
}

// endFailedProgram has a failurePolicy end the job if its program failed. A JobSet without a policy ends by itself.
func endFailedProgram(policy tree) {
	ends := func(rule tree) bool {
		var is FailureRule
		return runtime.DefaultUnstructuredConverter.FromUnstructured(rule, &is) == nil && endsFailedProgram(is)
	}
	if policy == nil || slices.ContainsFunc(list(policy, "rules"), ends) {
		return
	}
	rules, _ := policy["rules"].([]any)
	policy["rules"] = append([]any{tree{
		"name": ruleProgramFailed, "action": actionFail, "onJobFailureReasons": []any{batchv1.JobReasonBackoffLimitExceeded},
	}}, rules...)
}

// jobsWithDisruptions returns the names of the jobs of a JobSet that fail with the reason PodFailurePolicy only if a pod was disrupted:
// Kubernetes or the agent reports this. Other runtimes may end a job by a podFailurePolicy because of its program.
func jobsWithDisruptions(jobSet tree) (names []any) {
	all := parts(jobSet)
	for i, job := range list(at(jobSet, "spec"), "replicatedJobs") {
		var spec struct {
			PodFailurePolicy batchv1.PodFailurePolicy `json:"podFailurePolicy"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(at(job, "template", "spec"), &spec); err != nil {
			continue
		}
		rules := slices.DeleteFunc(spec.PodFailurePolicy.Rules, func(r batchv1.PodFailurePolicyRule) bool { return r.Action != batchv1.PodFailurePolicyActionFailJob })
		if len(rules) > 0 && !slices.ContainsFunc(rules, func(r batchv1.PodFailurePolicyRule) bool { return !all[i].isDisruption(r) }) {
			names = append(names, job["name"])
		}
	}
	return names
}

// isDisruption reports whether a rule only matches pods that were disrupted.
func (p jobPart) isDisruption(rule batchv1.PodFailurePolicyRule) bool {
	if codes := rule.OnExitCodes; codes != nil {
		return codes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && slices.Equal(codes.Values, []int32{exitDisrupted}) &&
			ptr.Deref(codes.ContainerName, "") == nodeName && p.reportsDisruptions()
	}
	return len(rule.OnPodConditions) > 0 && !slices.ContainsFunc(rule.OnPodConditions, func(c batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
		return c.Type != corev1.DisruptionTarget && c.Type != podstatus.TerminatedByKueue
	})
}

// reportsDisruptions reports whether the container that Trainer wires ends with exitDisrupted only if the job was disrupted: the agent runs
// its command and has this code. Any program may end with it.
func (p jobPart) reportsDisruptions() bool {
	code := ""
	for _, variable := range list(p.container, "env") {
		if variable["name"] == agentapi.EnvExitDisrupted {
			code, _ = variable["value"].(string)
		}
	}
	return p.launches() && code == strconv.Itoa(exitDisrupted)
}

// connect gives launcher and workers the keys of data connections as variables, before what they take from elsewhere.
func (p jobPart) connect(connections []string) error {
	if p.container == nil || p.name != launcherName && p.name != nodeName {
		return nil
	}
	var all []any
	for _, source := range mpi.ConnectionSources(connections) {
		entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&source)
		if err != nil {
			return fmt.Errorf("take over connection %s: %w", source.SecretRef.Name, err)
		}
		all = append(all, entry)
	}
	have, _ := p.container["envFrom"].([]any)
	if all = append(all, have...); len(all) > 0 {
		p.container["envFrom"] = all
	}
	return nil
}

// gather places launcher and workers in one topology domain, if the job requests it.
func (p jobPart) gather(job TrainJob) error {
	topology, errs := mpi.ParseTopology(job.Annotations)
	if len(errs) > 0 {
		return errs.ToAggregate()
	}
	if topology.Key == "" || p.name != launcherName && p.name != nodeName {
		return nil
	}
	var pod struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Affinity *corev1.Affinity `json:"affinity"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(p.pod, &pod); err != nil {
		return fmt.Errorf("read pods of job %s: %w", p.name, err)
	}
	affinity := mpi.Job{Name: job.Name, Names: names, External: true, Topology: topology}.WithTopologyAffinity(pod.Spec.Affinity, pod.Metadata.Annotations)
	if affinity == nil {
		return nil
	}
	made, err := runtime.DefaultUnstructuredConverter.ToUnstructured(affinity)
	if err != nil {
		return fmt.Errorf("keep pods of job %s together: %w", p.name, err)
	}
	child(p.pod, "spec")["affinity"] = made
	return nil
}

// child is the object at a path, which is made where it is missing.
func child(of tree, path ...string) tree {
	for _, name := range path {
		next, ok := of[name].(tree)
		if !ok {
			next = tree{}
			of[name] = next
		}
		of = next
	}
	return of
}

// at is the object at a path, nil where it is missing.
func at(of tree, path ...string) tree {
	for _, name := range path {
		of, _ = of[name].(tree)
	}
	return of
}

// list are the objects in a list.
func list(of tree, name string) []tree {
	entries, _ := of[name].([]any)
	var all []tree
	for _, entry := range entries {
		if object, ok := entry.(tree); ok {
			all = append(all, object)
		}
	}
	return all
}

// copyField makes a field what it is elsewhere, missing or not.
func copyField(to, from tree, path ...string) {
	last := len(path) - 1
	if value, has := at(from, path[:last]...)[path[last]]; has {
		child(to, path[:last]...)[path[last]] = value
	} else {
		delete(at(to, path[:last]...), path[last])
	}
}
