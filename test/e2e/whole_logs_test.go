package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// manyLines is the number of lines that a job prints: more than a report keeps.
const manyLines = 50_000

// printManyLines has rank 0 print lines with a secret, and each rank a last one. mpirun prints what it reads of a rank, which may end within a
// line: rank 0 waits until rank 1 has printed.
var printManyLines = fmt.Sprintf(`if [ $OMPI_COMM_WORLD_RANK = 0 ]; then sleep 2; i=0; while [ $i -lt %d ]; do i=$((i+1)); echo "line $i has api_key=0123456789abcdef"; done; fi; echo "rank $OMPI_COMM_WORLD_RANK ends"`, manyLines)

// TestWholeLogsStayWhenTheJobIsGone: all 50,000 lines of an MPIJob, and those of all of its pods, are read from a bucket after the job was
// deleted, with secrets masked.
func TestWholeLogsStayWhenTheJobIsGone(t *testing.T) {
	whenAsked(t, "WholeLogs")
	needCommandLine(t)
	bucket := keepWholeLogs(t)
	namespace := newNamespace(t)
	s := shell{t, namespace}
	s.run(0, []string{"mpijob/chatty: Succeeded"}, "create", "chatty", "--workers", "2", "--image", image, "--run-as-user", "1000", "--cpu", "50m", "--memory", "128Mi",
		"--wait", "--timeout", "5m", "--", "sh", "-c", printManyLines)
	s.run(0, nil, "delete", "chatty", "--yes", "--wait")
	checkWholeLogs(t, bucket, namespace, "chatty")
	code, one, _ := plugin(t, namespace, "", "logs", "chatty", "--rank", "1")
	if code != 0 || !strings.Contains(one, "rank 1 ends") || strings.Contains(one, "line 1 has") {
		t.Errorf("logs --rank 1 ended with %d, and has %d bytes", code, len(one))
	}
	// The workers were deleted with their logs, which have the lines of their agents.
	_, all, _ := plugin(t, namespace, "", "logs", "chatty", "--agent", "--tail", "20")
	for _, worker := range []string{"[worker-0 ", "[worker-1 "} {
		if !strings.Contains(all, worker) || !strings.Contains(all, `{"time":"`) {
			t.Errorf("the complete logs lack the lines of %s", worker)
		}
	}
}

// TestWholeLogsOfTrainJobsStay: all 50,000 lines of a TrainJob are read from a bucket after the job was deleted, with secrets masked.
func TestWholeLogsOfTrainJobsStay(t *testing.T) {
	whenAsked(t, "WholeLogs")
	needCommandLine(t)
	needTrainer(t)
	bucket := keepWholeLogs(t)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	createTrainJob(t, trainJob(t, namespace, "{numNodes: 2, command: [mpirun, --tag-output, -n, '2', sh, -c, '"+printManyLines+"']}"))
	s := shell{t, namespace}
	s.run(0, []string{"Succeeded"}, "wait", "pi", "--timeout", "5m")
	s.run(0, nil, "delete", "pi", "--yes", "--wait")
	checkWholeLogs(t, bucket, namespace, "trainjob/pi")
}

// keepWholeLogs starts an S3 server, and has the operator keep complete logs in it until the test ends. It returns the folder of the bucket.
func keepWholeLogs(t *testing.T) string {
	t.Helper()
	server := startS3(t)
	keys := &corev1.Secret{StringData: map[string]string{"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": hidden}}
	keys.Namespace, keys.Name = operatorKey.Namespace, "e2e-log-bucket"
	if err := api.Create(t.Context(), keys); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	var before appsv1.Deployment
	if err := api.Get(t.Context(), operatorKey, &before); err != nil {
		t.Skipf("SKIPPED: the operator is not installed as %s: %v", operatorKey, err)
	}
	t.Cleanup(func() {
		replaceOperator(context.Background(), t, before.Spec.Template)
		_ = api.Delete(context.Background(), keys)
	})
	template := *before.Spec.Template.DeepCopy()
	container := &template.Spec.Containers[0]
	container.Args = append(container.Args, "--log-bucket=training", "--log-bucket-endpoint="+server.endpoint, "--log-bucket-retention=1h")
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "log-bucket", MountPath: "/etc/mpijob/log-bucket", ReadOnly: true})
	template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: "log-bucket", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: keys.Name}}})
	replaceOperator(t.Context(), t, template)
	return server.bucket
}

// replaceOperator replaces the operator's pods by those of another template, and waits until they are available and the others are gone.
func replaceOperator(ctx context.Context, t *testing.T, template corev1.PodTemplateSpec) {
	t.Helper()
	var operator appsv1.Deployment
	if err := api.Get(ctx, operatorKey, &operator); err != nil {
		t.Fatal(err)
	}
	changed := operator.DeepCopy()
	changed.Spec.Template = template
	if err := api.Patch(ctx, changed, client.MergeFrom(&operator)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the operator is replaced", 3*time.Minute, func() error {
		if err := api.Get(ctx, operatorKey, &operator); err != nil {
			return err
		}
		s := operator.Status
		if s.ObservedGeneration < operator.Generation || s.UpdatedReplicas != *operator.Spec.Replicas || s.Replicas != s.UpdatedReplicas || s.AvailableReplicas != s.Replicas {
			return fmt.Errorf("%d of %d replicas are new, %d are available", s.UpdatedReplicas, s.Replicas, s.AvailableReplicas)
		}
		return nil
	})
}

// checkWholeLogs checks that the command line reads all lines of printManyLines, masked and in their order.
func checkWholeLogs(t *testing.T, bucket, namespace, job string) {
	t.Helper()
	eventually(t, "the report has the address of the complete logs", 2*time.Minute, func() error {
		var reports v1alpha1.JobReportList
		if err := api.List(t.Context(), &reports, client.InNamespace(namespace)); err != nil || len(reports.Items) != 1 {
			return fmt.Errorf("there are %d reports: %w", len(reports.Items), err)
		}
		kept := reports.Items[0].Status.CompleteLogs
		if kept == nil || kept.Index == "" {
			return fmt.Errorf("it has %+v", kept)
		}
		t.Logf("%d lines of %d pods are kept, %d bytes; cut are %d pods, unread %d: %s", kept.Lines, kept.Pods, kept.Size, kept.PodsCut, kept.PodsUnread, kept.Message)
		return nil
	})
	// Not by plugin, which prints what the command does.
	var shown, told bytes.Buffer
	command := exec.CommandContext(t.Context(), "kubectl", "odh", "mpijob", "logs", job, "-n", namespace)
	command.Stdout, command.Stderr = &shown, &told
	failed := command.Run()
	out, notes := shown.String(), told.String()
	if failed != nil || !strings.Contains(notes, "these are the complete logs of") {
		t.Fatalf("logs ended with %v: %s", failed, notes)
	}
	next := 1
	for line := range strings.SplitSeq(out, "\n") {
		if !strings.Contains(line, "line ") {
			continue
		}
		if want := fmt.Sprintf("line %d has api_key=****", next); !strings.HasSuffix(line, want) {
			t.Fatalf("the log has %q, want %q", line, want)
		}
		next++
	}
	if next != manyLines+1 {
		t.Errorf("the logs have %d lines, want %d", next-1, manyLines)
	}
	for rank := range 2 {
		if !strings.Contains(out, fmt.Sprintf("rank %d ends", rank)) {
			t.Errorf("the logs lack the last line of rank %d", rank)
		}
	}
	objects := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(bucket, "mpijob-logs", namespace), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(hidden)) {
			t.Errorf("%s has the keys of the bucket", path)
		}
		objects[filepath.Base(path)] = true
		return err
	})
	if err != nil || len(objects) < 3 || !objects["index.json"] {
		t.Errorf("the bucket has the objects %v: %v", slices.Sorted(maps.Keys(objects)), err)
	}
}
