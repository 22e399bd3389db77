package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

// hidden is the secret part of the tests' connections.
const hidden = "hJ7kPq2WmZr9TnVb4XcL5sGd"

// tellConnection has a rank say what it has of a connection, but for the secret part, of which it says the length.
const tellConnection = `echo "$(hostname) has $AWS_S3_BUCKET at $AWS_S3_ENDPOINT and a key of ${#AWS_SECRET_ACCESS_KEY}"`

// saysConnection is what a rank on a pod then says.
func saysConnection(pod string) string {
	return fmt.Sprintf("%s has training at https://s3.example.com and a key of %d\n", pod, len(hidden))
}

// connection is a Secret as the dashboard of OpenShift AI makes it.
func connection(namespace, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"opendatahub.io/dashboard": "true"},
			Annotations: map[string]string{"opendatahub.io/connection-type-ref": "s3", "openshift.io/display-name": name},
		},
		StringData: map[string]string{
			"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": hidden, "AWS_S3_ENDPOINT": "https://s3.example.com",
			"AWS_S3_BUCKET": "training", "AWS_DEFAULT_REGION": "us-east-1",
		},
	}
}

func connected(job client.Object, names string) {
	job.SetAnnotations(map[string]string{mpi.AnnotationConnections: names})
}

// TestConnectionReachesRanks: every rank of an MPIJob, also on workers, has the variables of a data connection whose Secret is created
// after the job. Until then, the job's report names the missing Secret. Neither the report nor the operator's log contains the secret
// values.
func TestConnectionReachesRanks(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	heard := &warnings{}
	by := clientWith(t, heard, func(*rest.Config) {})
	job := openMPI(namespace, 2, "mpirun", "-n", "4", "sh", "-c", tellConnection)
	connected(job, "training-data")
	// On a busy machine, the webhook leaves out what it cannot read in time.
	eventually(t, "a dry run warns of the missing Secret", time.Minute, func() error {
		heard.texts = nil
		if err := by.Create(t.Context(), job.DeepCopy(), client.DryRunAll); err != nil {
			return err
		}
		if all := strings.Join(heard.texts, "\n"); !strings.Contains(all, `metadata.annotations[opendatahub.io/connections]: Secret "training-data" does not exist`) {
			return fmt.Errorf("warnings are %q", heard.texts)
		}
		return nil
	})
	create(t, job)
	reported(t, "MPIJob", namespace, job.Name, "the report says what is missing", func(status v1alpha1.JobReportStatus) error {
		for _, finding := range status.Findings {
			if finding.Code == codes.MissingReference && strings.Contains(finding.Summary, `data connection "training-data" does not exist`) {
				return nil
			}
		}
		return fmt.Errorf("findings are %+v", status.Findings)
	})
	create(t, connection(namespace, "training-data"))
	waitFor(t, job, "it succeeds", succeeded)
	printed := output(t, job)
	for _, pod := range []string{"job-worker-0", "job-worker-1"} {
		if n := strings.Count(printed, saysConnection(pod)); n != 2 {
			t.Errorf("%d ranks on %s have the connection, want 2; printed was\n%s", n, pod, printed)
		}
	}
	tellsNothing(t, "MPIJob", namespace, job.Name)
}

// TestConnectionReachesTrainJobsRanks: the launcher and all workers of a TrainJob have the variables of a data connection. Neither the
// report nor the operator's log contains the secret values.
func TestConnectionReachesTrainJobsRanks(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	create(t, connection(namespace, "training-data"))
	job := trainJob(t, namespace, "{numNodes: 3, command: [mpirun, -n, '3', sh, -c, '"+tellConnection+"']}")
	connected(job, namespace+"/training-data")
	createTrainJob(t, job)
	ends(t, job, "Complete")
	text := printed(t, job)
	for _, pod := range []string{"pi-launcher-0-0", "pi-node-0-0", "pi-node-0-1"} {
		if n := strings.Count(text, saysConnection(pod)); n != 1 {
			t.Errorf("%d ranks on %s have the connection, want 1; printed was\n%s", n, pod, text)
		}
	}
	tellsNothing(t, "TrainJob", namespace, job.GetName())
}

// tellsNothing checks that neither a finished job's report nor the operator's log has the secret part of a connection.
func tellsNothing(t *testing.T, kind, namespace, name string) {
	t.Helper()
	report := reported(t, kind, namespace, name, "the report says that it is over", func(status v1alpha1.JobReportStatus) error {
		if status.CompletionTime == nil {
			return errors.New("it does not")
		}
		return nil
	})
	text, err := yaml.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), hidden) {
		t.Errorf("the report has the connection's secret:\n%s", text)
	}
	var pods corev1.PodList
	if err := api.List(t.Context(), &pods, client.InNamespace("mpijob-system")); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		log, err := logs.CoreV1().Pods("mpijob-system").GetLogs(pods.Items[i].Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err == nil && strings.Contains(string(log), hidden) {
			t.Errorf("the log of %s has the connection's secret", pods.Items[i].Name)
		}
	}
}

// TestConnectionsAreJudged: two with the same keys, and one of another namespace, are refused for jobs of both kinds.
func TestConnectionsAreJudged(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, connection(namespace, "data"))
	create(t, connection(namespace, "results"))
	keepOperators(t)
	for names, want := range map[string]string{
		"data,results": `"data,results": both set AWS_ACCESS_KEY_ID, AWS_DEFAULT_REGION, AWS_S3_BUCKET, AWS_S3_ENDPOINT, AWS_SECRET_ACCESS_KEY, and a rank can only get one of each`,
		"default/data": `"default/data": is in another namespace than the job`,
	} {
		job := openMPI(namespace, 1, "true")
		connected(job, names)
		refusedWith(t, api.Create(t.Context(), job), []string{want})
	}
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 2, command: ['true']}", "  suspend: true")
	connected(job, "data, results")
	refusedWith(t, submit(t, api, job), []string{`"data,results": both set`})
	connected(job, "data")
	createTrainJob(t, job)
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"results"}}}`, mpi.AnnotationConnections))
	refusedWith(t, api.Patch(t.Context(), job.DeepCopy(), patch), []string{"metadata.annotations[opendatahub.io/connections]: Forbidden: cannot be changed after the job was created"})
}

// onThisMachine skips a test on clusters whose nodes are other machines.
func onThisMachine(t *testing.T) {
	t.Helper()
	if kubeconfig := os.Getenv("KUBECONFIG"); filepath.Base(filepath.Dir(kubeconfig)) != ".cluster" {
		t.Skip("SKIPPED: only the one-machine cluster's nodes can be given a folder or a device")
	}
}

// writeResult has a rank read the job's data and write its own result beside them.
const writeResult = `echo "$(cat /data/input) on $(hostname) as $(id -u)" > /data/result-$OMPI_COMM_WORLD_RANK`

// claim makes a claim named data with a volume that all pods can write, on any node of this machine, and data in it. It
// returns its folder.
func claim(t *testing.T, namespace string) string {
	t.Helper()
	onThisMachine(t)
	folder := t.TempDir()
	if err := errors.Join(os.Chmod(folder, 0o777), os.WriteFile(filepath.Join(folder, "input"), []byte("computed"), 0o644)); err != nil {
		t.Fatal(err)
	}
	claimOf(t, namespace, corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}})
	return folder
}

// claimOf makes a claim named data with a volume for all pods, which is mounted with options.
func claimOf(t *testing.T, namespace string, source corev1.PersistentVolumeSource, options ...string) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: "data"},
			PersistentVolumeSource: source, MountOptions: options,
		},
	}
	create(t, volume)
	t.Cleanup(func() { _ = api.Delete(context.Background(), volume) })
	create(t, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}, StorageClassName: new(""), VolumeName: namespace,
		},
	})
}

// leaves deletes a job and waits until it and its pods are gone.
func leaves(t *testing.T, job client.Object) {
	t.Helper()
	if err := api.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job is gone", time.Minute, func() error {
		var pods corev1.PodList
		if err := api.List(t.Context(), &pods, client.InNamespace(job.GetNamespace())); err != nil || len(pods.Items) > 0 {
			return fmt.Errorf("%d pods are there: %w", len(pods.Items), err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// kept compares the results that a job has left when it is gone.
func kept(t *testing.T, job client.Object, folder string, hosts ...string) {
	t.Helper()
	leaves(t, job)
	var after corev1.PersistentVolumeClaim
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: job.GetNamespace(), Name: "data"}, &after); err != nil || after.Status.Phase != corev1.ClaimBound {
		t.Errorf("the claim is %s: %v", after.Status.Phase, err)
	}
	for rank, host := range hosts {
		want := fmt.Sprintf("computed on %s as 1000650000\n", host)
		if text, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("result-%d", rank))); err != nil || string(text) != want {
			t.Errorf("rank %d has left %q (%v), want %q", rank, text, err, want)
		}
	}
}

// TestResultsOutliveJob: each rank of an MPIJob, as a user ID that OpenShift assigns under the policy restricted, reads and writes a volume
// that all pods share. The results are there when the job is deleted.
func TestResultsOutliveJob(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	folder := claim(t, namespace)
	job := openMPI(namespace, 2, "mpirun", "-n", "4", "sh", "-c", writeResult)
	mountClaim(job)
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	kept(t, job, folder, "job-worker-0", "job-worker-0", "job-worker-1", "job-worker-1")
}

// mountClaim has all pods of a job mount the claim data at /data.
func mountClaim(job *kubeflow.MPIJob) {
	for _, role := range []kubeflow.MPIReplicaType{kubeflow.MPIReplicaTypeLauncher, kubeflow.MPIReplicaTypeWorker} {
		pod := &job.Spec.MPIReplicaSpecs[role].Template.Spec
		pod.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
}

// claimMounted is what a TrainJob says to have the same, in the words of the cluster's Trainer.
func claimMounted(t *testing.T) string {
	t.Helper()
	return podsPatched(t, "spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}], containers: [{name: node, volumeMounts: [{name: data, mountPath: /data}]}]}")
}

// podsPatched is what a TrainJob says to change launcher and workers, in the words of the cluster's Trainer.
func podsPatched(t *testing.T, pod string) string {
	t.Helper()
	if !takesPatches(t) {
		return "  podTemplateOverrides: [{targetJobs: [{name: launcher}, {name: node}], " + pod + "}]"
	}
	template := "template: {spec: {template: {" + pod + "}}}"
	return "  runtimePatches: [{manager: example.com/me, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: launcher, " + template + "}, {name: node, " + template + "}]}}}}]"
}

// TestTrainJobsResultsOutliveJob: each rank of a TrainJob, as a user ID that OpenShift assigns under the policy restricted, reads and
// writes a volume that all pods share. The results are there when the job is deleted.
func TestTrainJobsResultsOutliveJob(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi", "runAsUser: 1000\n", "runAsUser: 1000650000\n")
	folder := claim(t, namespace)
	job := trainJob(t, namespace, "{numNodes: 3, command: [mpirun, -n, '3', sh, -c, '"+writeResult+"']}", claimMounted(t))
	createTrainJob(t, job)
	ends(t, job, "Complete")
	kept(t, job, folder, "pi-launcher-0-0", "pi-node-0-0", "pi-node-0-1")
}

// takesPatches reports whether TrainJobs change their runtimes by runtimePatches, as from Trainer v2.2 on.
func takesPatches(t *testing.T) bool {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := api.Get(t.Context(), client.ObjectKey{Name: "trainjobs.trainer.kubeflow.org"}, crd); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(crd.Object)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "runtimePatches:")
}
