package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// whenAsked skips what takes long unless the command line names it.
func whenAsked(t *testing.T, suite string) {
	t.Helper()
	if asked := flag.Lookup("test.run").Value.String(); !strings.Contains(strings.ToLower(asked), strings.ToLower(suite)) {
		t.Skipf("SKIPPED: it takes minutes; make e2e SUITE=%s runs it", suite)
	}
}

// labelBare is on namespaces of which our webhooks hear nothing while a test lasts.
const labelBare = "e2e.mpi.opendatahub.io/bare"

// takeWebhooksAway keeps our webhooks out of namespaces with labelBare until the test ends. Others are guarded as ever.
func takeWebhooksAway(t *testing.T) {
	t.Helper()
	set := func(ctx context.Context, selector metav1.LabelSelector) error {
		mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
		if err := errors.Join(api.Get(ctx, client.ObjectKey{Name: "mpijob-mutating"}, mutating), api.Get(ctx, client.ObjectKey{Name: "mpijob-validating"}, validating)); err != nil {
			return err
		}
		for i := range mutating.Webhooks {
			mutating.Webhooks[i].NamespaceSelector = &selector
		}
		for i := range validating.Webhooks {
			validating.Webhooks[i].NamespaceSelector = &selector
		}
		return errors.Join(api.Update(ctx, mutating), api.Update(ctx, validating))
	}
	t.Cleanup(func() {
		eventually(t, "the webhooks are as they were", time.Minute, func() error { return set(context.Background(), metav1.LabelSelector{}) })
	})
	unless := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: labelBare, Operator: metav1.LabelSelectorOpDoesNotExist}}}
	eventually(t, "the webhooks let namespaces out", time.Minute, func() error { return set(t.Context(), unless) })
}

// bare takes our webhooks away from a namespace, or gives them back, and waits until the API server does so.
func bare(t *testing.T, namespace string, yes bool) {
	t.Helper()
	value := "null"
	if yes {
		value = `"true"`
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, labelBare, value)
	if err := api.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	probe := client.NewDryRunClient(api)
	eventually(t, fmt.Sprintf("without webhooks is %v", yes), time.Minute, func() error {
		err := tryRuntime(t, probe, namespace, "mpi-openmpi", "numNodes: 1", "numNodes: 4", "name: mpi-openmpi", "name: probe")
		if taken := err == nil || strings.Contains(err.Error(), "already exists"); taken != yes {
			return fmt.Errorf("a faulty runtime is answered by %w", err)
		}
		return nil
	})
}

// guardedAndBare makes two namespaces with a runtime of ours, changed in its text: one as ever, one without our webhooks.
func guardedAndBare(t *testing.T, runtime string, change ...string) (guarded, without string) {
	t.Helper()
	guarded, without = newNamespace(t), newNamespace(t)
	bare(t, without, true)
	runtimeIn(t, guarded, runtime, change...)
	runtimeIn(t, without, runtime, change...)
	return guarded, without
}

// hasPods waits until a TrainJob has so many launchers and workers.
func hasPods(t *testing.T, job client.Object, launchers, workers int) {
	t.Helper()
	eventually(t, fmt.Sprintf("it has %d launchers and %d workers", launchers, workers), time.Minute, func() error {
		if l, w := len(trainerPods(t, job, "launcher")), len(trainerPods(t, job, "node")); l != launchers || w != workers {
			return fmt.Errorf("it has %d and %d", l, w)
		}
		return nil
	})
}

// finding waits until a TrainJob's report has a finding first.
func finding(t *testing.T, job client.Object, code codes.Code, phase v1alpha1.Phase) v1alpha1.Finding {
	t.Helper()
	report := reported(t, trainjob.Kind, job.GetNamespace(), job.GetName(), fmt.Sprintf("its report tells of %s", code), func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != code || status.Phase != phase {
			return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
		}
		return nil
	})
	t.Log(report.Status.Findings[0].Summary)
	return report.Status.Findings[0]
}

// TestTrainerFaultsShown: what Kubeflow Trainer does by itself, and what becomes of that with our guards. docs/trainjob.md
// has the table.
func TestTrainerFaultsShown(t *testing.T) {
	whenAsked(t, "TrainerFaults")
	needTrainer(t)
	takeWebhooksAway(t)
	for name, show := range map[string]func(*testing.T){
		"4 launchers":                       showLaunchers,
		"1 node makes 2 pods":               showOneNode,
		"image and variables":               showImage,
		"a list of hosts that is not read":  showHostsUnread,
		"other MPIs than Open MPI":          showOtherMPI,
		"workers and their logs vanish":     showVanishedLogs,
		"a key that OpenSSH refuses":        showKeyRefused,
		"a failed run that counts as well":  showUnnoticed,
		"a status that says nothing":        showSilentStatus,
		"connections that cannot be":        showConnections,
		"a gang in order, which is refused": showGang,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			show(t)
		})
	}
}

// showLaunchers: Trainer gives the runtime's numNodes to the launcher, and the TrainJob's to the workers.
func showLaunchers(t *testing.T) {
	namespace := newNamespace(t)
	bare(t, namespace, true)
	change := []string{"numNodes: 1", "numNodes: 4"}
	runtimeIn(t, namespace, "mpi-openmpi", change...)
	job := trainJob(t, namespace, "{command: [sleep, '600']}")
	createTrainJob(t, job)
	hasPods(t, job, 4, 1)

	// The runtime has slipped through: each TrainJob that names it is refused, and no other runtime gets through.
	bare(t, namespace, false)
	later := trainJob(t, namespace, "{numNodes: 4, command: [sleep, '600']}")
	later.SetName("later")
	refusedWith(t, submit(t, api, later), []string{"cannot be used as it is", "must be 1: Trainer would start 4 launchers"})
	refusedWith(t, tryRuntime(t, api, newNamespace(t), "mpi-openmpi", change...), []string{"must be 1: Trainer would start 4 launchers"})
}

// showOneNode: where the launcher is a node there are 2 pods at least.
func showOneNode(t *testing.T) {
	guarded, without := guardedAndBare(t, "mpi-openmpi")
	for namespace, warned := range map[string]bool{guarded: true, without: false} {
		heard := &warnings{}
		job := trainJob(t, namespace, "{numNodes: 1, command: [sleep, '600']}")
		if err := submit(t, clientWith(t, heard, func(*rest.Config) {}), job); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(heard.texts, "\n"), "1 makes 2 pods with ranks"); got != warned {
			t.Errorf("with our webhooks %v: warnings are %q", warned, heard.texts)
		}
		hasPods(t, job, 1, 1)
	}
}

// showImage: the TrainJob's image and, where the launcher is no node, its variables reach the launcher alone.
func showImage(t *testing.T) {
	const missing = "registry.invalid/none:none"
	guarded, without := guardedAndBare(t, "mpi-openmpi", "image: "+image, "image: "+missing, "runLauncherAsNode: true", "runLauncherAsNode: false")
	for namespace, reaches := range map[string]bool{guarded: true, without: false} {
		job := trainJob(t, namespace, "{numNodes: 2, image: '"+image+"', env: [{name: GREETING, value: hello}], command: [sleep, '600']}")
		createTrainJob(t, job)
		hasPods(t, job, 1, 2)
		worker := trainerPods(t, job, "node")[0].Spec.Containers[0]
		greets := slices.ContainsFunc(worker.Env, func(v corev1.EnvVar) bool { return v.Name == "GREETING" })
		if reaches != (worker.Image == image) || reaches != greets {
			t.Errorf("with our webhooks %v: the worker's image is %s, and it has variables %v", reaches, worker.Image, worker.Env)
		}
	}
}

// showHostsUnread: Open MPI 5 reads the list of hosts from a variable that Trainer does not set. All ranks run beside the
// launcher, and the job is Complete.
func showHostsUnread(t *testing.T) {
	guarded, without := guardedAndBare(t, "mpi-openmpi5", "PRTE_MCA_prte_default_hostfile", "IGNORED")
	const trainer = "{numNodes: 2, command: [mpirun, -n, '2', --map-by, ':OVERSUBSCRIBE', ranks]}"
	silent := trainJob(t, without, trainer)
	createTrainJob(t, silent)
	ends(t, silent, "Complete")
	if where := ranksByPod(printed(t, silent)); len(where) != 1 || where["pi-launcher-0-0"] != 2 {
		t.Errorf("without us ranks were on %v", where)
	}
	told := trainJob(t, guarded, trainer)
	createTrainJob(t, told)
	finding(t, told, codes.HostfileIgnored, v1alpha1.PhaseFailed)

	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi5")
	ours := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks]}")
	createTrainJob(t, ours)
	ends(t, ours, "Complete")
	if where := ranksByPod(printed(t, ours)); len(where) != 2 {
		t.Errorf("with our runtime ranks were on %v", where)
	}
}

// showOtherMPI: Trainer's API takes Open MPI alone. Our runtimes for others say so in an annotation.
func showOtherMPI(t *testing.T) {
	namespace := newNamespace(t)
	bare(t, namespace, true)
	for _, name := range []string{"MPICH", "Intel"} {
		err := tryRuntime(t, api, namespace, "mpi-openmpi", "mpiImplementation: OpenMPI", "mpiImplementation: "+name)
		refusedWith(t, err, []string{"spec.mlPolicy.mpi.mpiImplementation: Unsupported value: \"" + name + "\""})
	}
	guarded := newNamespace(t)
	runtimeIn(t, guarded, "mpi-mpich")
	job := trainJob(t, guarded, "{numNodes: 2, command: [mpiexec, -n, '2', ranks]}")
	createTrainJob(t, job)
	ends(t, job, "Complete")
	if where := ranksByPod(printed(t, job)); len(where) != 2 {
		t.Errorf("MPICH's ranks were on %v", where)
	}
}

// showVanishedLogs: the pods of workers go with their job, and with them what they have said. The report has it.
func showVanishedLogs(t *testing.T) {
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', sh, -c, 'test $OMPI_COMM_WORLD_RANK = 0 || { echo out of ideas >&2; exit 4; }; sleep 60']}")
	createTrainJob(t, job)
	ends(t, job, "Failed")
	eventually(t, "no worker is left", time.Minute, func() error {
		if left := trainerPods(t, job, "node"); len(left) > 0 {
			return fmt.Errorf("%s is there", left[0].Name)
		}
		return nil
	})
	status := reported(t, trainjob.Kind, namespace, job.GetName(), "its report says where it began", func(status v1alpha1.JobReportStatus) error {
		if status.Failure == nil || status.Failure.Rank == nil || status.Phase != v1alpha1.PhaseFailed {
			return fmt.Errorf("it says %+v", status.Failure)
		}
		return nil
	}).Status
	if *status.Failure.Rank != 1 || !strings.HasPrefix(status.Failure.Pod, "pi-node-0-0") || !strings.Contains(strings.Join(status.Failure.LogTail, "\n"), "out of ideas") {
		t.Errorf("it began at %+v", status.Failure)
	}
}

// showKeyRefused: Trainer mounts the job's key for a group. OpenSSH does not take it from root; MPI's own words are of
// something else.
func showKeyRefused(t *testing.T) {
	namespace := openNamespace(t)
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(sshRuntime(sampleImage("openmpi-sshd"))), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.RuntimeKind))
	object.SetNamespace(namespace)
	create(t, object)
	const trainer = "{numNodes: 2, command: [mpirun, -n, '2', ranks]}"
	job := trainJob(t, namespace, trainer)
	createTrainJob(t, job)
	ends(t, job, "Failed")
	told := finding(t, job, codes.KeyUnprotected, v1alpha1.PhaseFailed)
	if now, err := trainjob.LoadJob(t.Context(), api, client.ObjectKeyFromObject(job)); err == nil {
		t.Logf("the TrainJob's conditions are %+v; the report says: %s", now.Status.Conditions, told.Summary)
	}

	guarded := newNamespace(t)
	runtimeIn(t, guarded, "mpi-openmpi")
	ours := trainJob(t, guarded, trainer)
	createTrainJob(t, ours)
	ends(t, ours, "Complete")
}

// sshRuntime is a runtime as users of Trainer write them: with an image that has OpenSSH, and root.
func sshRuntime(image string) string {
	return `
metadata: {name: mpi, labels: {trainer.kubeflow.org/framework: mpi}}
spec:
  mlPolicy: {numNodes: 1, mpi: {mpiImplementation: OpenMPI, numProcPerNode: 1, runLauncherAsNode: true, sshAuthMountPath: /root/.ssh}}
  template:
    spec:
      network: {publishNotReadyAddresses: true}
      successPolicy: {operator: All, targetReplicatedJobs: [launcher]}
      failurePolicy: {maxRestarts: 0}
      replicatedJobs:
      - name: node
        template:
          spec:
            template:
              spec:
                securityContext: {runAsUser: 0}
                containers:
                - {name: node, image: '` + image + `', command: [/usr/sbin/sshd, -De], readinessProbe: {tcpSocket: {port: 2222}, periodSeconds: 1}}
      - name: launcher
        dependsOn: [{name: node, status: Ready}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            backoffLimit: 0
            template:
              spec:
                restartPolicy: Never
                securityContext: {runAsUser: 0}
                containers:
                - name: node
                  image: '` + image + `'
                  env:
                  - {name: OMPI_ALLOW_RUN_AS_ROOT, value: "1"}
                  - {name: OMPI_ALLOW_RUN_AS_ROOT_CONFIRM, value: "1"}
                  - {name: OMPI_MCA_plm_rsh_agent, value: /usr/bin/ssh -o StrictHostKeyChecking=no}
`
}

// showUnnoticed: a command that goes on after mpirun turns a failed run into a Complete one.
func showUnnoticed(t *testing.T) {
	guarded, without := guardedAndBare(t, "mpi-openmpi")
	for namespace, told := range map[string]bool{guarded: true, without: false} {
		job := trainJob(t, namespace, "{numNodes: 2, command: [sh, -c, 'mpirun -n 2 ranks --exit 1:3; echo done']}")
		createTrainJob(t, job)
		ends(t, job, "Complete")
		if told {
			if f := finding(t, job, codes.RankFailed, v1alpha1.PhaseSucceeded); !strings.Contains(f.Summary, "rank 1 (ranks) failed with code 3") {
				t.Errorf("the finding is %+v", f)
			}
		}
	}
}

// showSilentStatus: a TrainJob whose pods cannot start has no condition that says so.
func showSilentStatus(t *testing.T) {
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 2, image: registry.invalid/none:none, command: [ranks]}")
	createTrainJob(t, job)
	finding(t, job, codes.ImagePullFailed, v1alpha1.PhaseInitializing)
	now, err := trainjob.LoadJob(t.Context(), api, client.ObjectKeyFromObject(job))
	if err != nil || len(now.Status.Conditions) > 0 {
		t.Errorf("its own conditions are %+v: %v", now.Status.Conditions, err)
	}
}

// showConnections: a job that came while no operator answered, with connections that it cannot have, is told so by its
// report: Trainer's JobSet for it is refused.
func showConnections(t *testing.T) {
	namespace := newNamespace(t)
	bare(t, namespace, true)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 2, command: [ranks]}", "  suspend: true")
	connected(job, "default/data")
	createTrainJob(t, job)
	bare(t, namespace, false)
	suspend(t, job, false)
	f := finding(t, job, codes.JobInvalid, v1alpha1.PhasePending)
	if !strings.Contains(f.Summary, "is in another namespace than the job") {
		t.Errorf("the finding is %+v", f)
	}
}

// showGang: no gang scheduler runs here that could wait for pods which are never made. That such a runtime is refused
// can be shown.
func showGang(t *testing.T) {
	guarded, without := newNamespace(t), newNamespace(t)
	bare(t, without, true)
	change := []string{"spec:\n  mlPolicy", "spec:\n  podGroupPolicy: {coscheduling: {}}\n  mlPolicy", "name: launcher\n", "name: launcher\n        dependsOn: [{name: node, status: Ready}]\n"}
	runtimeIn(t, without, "mpi-openmpi", change...)
	refusedWith(t, tryRuntime(t, api, guarded, "mpi-openmpi", change...), []string{"all pods are scheduled together"})
}
