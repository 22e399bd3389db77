package report_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/report"
)

// recorded returns the specification that the record of an object has.
func recorded(object metav1.Object) *v1alpha1.Specification {
	var status v1alpha1.JobReportStatus
	job := mpi.Job{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Namespace: object.GetNamespace(), Name: object.GetName()}
	report.SetSpecification(&status, job, object, logs.Masker{}.Text)
	return status.Specification
}

func objectFrom(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestSpecificationMasksSecrets(t *testing.T) {
	// A test in which "hunter2" is part of every secret.
	got := recorded(objectFrom(t, `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: train
  namespace: ns
  generation: 3
  uid: u
  resourceVersion: "7"
  labels: {team: a, api-token: hunter2-label-value}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"password":"hunter2"}'
    mpi.opendatahub.io/created-by: alice
    note: 'the password is hunter2, ask bob'
    config: '{"db": {"password": "hunter2 with blanks"}}'
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher:
      template:
        metadata: {creationTimestamp: null}
        spec:
          initContainers:
          - {name: fetch, image: a, command: [sh, -c, "curl -u me:hunter2 https://x; export API_KEY=hunter2"]}
          containers:
          - name: launcher
            image: quay.io/me/train:1
            command: [mpirun, -n, "4", python, train.py, --password]
            args: ["hunter2 and blanks", --db, "postgres://me:hunter2@db/x", --epochs, "3", --api-key=hunter2hunter2, --header, "Authorization: Bearer hunter2hunter2"]
            env:
            - {name: HF_TOKEN, value: hunter2hunter2}
            - {name: PASSPHRASE, value: "two words hunter2\nand a line hunter2"}
            - {name: DATABASE, value: "postgres://me:hunter2@db/x"}
            - {name: EPOCHS, value: "3"}
            - {name: MODEL, value: "bert"}
            - {name: FROM_SECRET, valueFrom: {secretKeyRef: {name: db-secret, key: password}}}
            readinessProbe: {httpGet: {port: 80, httpHeaders: [{name: Authorization, value: Basic aHVudGVyMg==hunter2}]}}
          volumes:
          - {name: keys, secret: {secretName: train-keys}}
          - {name: store, csi: {driver: x, volumeAttributes: {accessKey: hunter2hunter2, bucket: b}}}
status: {conditions: [{type: Running}]}
`))
	const want = `apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  annotations:
    config: '{"db": {"password": "****"}}'
    note: the password is **** ask bob
  labels:
    api-token: '****'
    team: a
  name: train
  namespace: ns
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        metadata: {}
        spec:
          containers:
          - args:
            - '****'
            - --db
            - postgres://****@db/x
            - --epochs
            - "3"
            - --api-key=****
            - --header
            - 'Authorization: Bearer ****'
            command:
            - mpirun
            - -n
            - "4"
            - python
            - train.py
            - --password
            env:
            - name: HF_TOKEN
              value: '****'
            - name: PASSPHRASE
              value: '****'
            - name: DATABASE
              value: postgres://****@db/x
            - name: EPOCHS
              value: "3"
            - name: MODEL
              value: bert
            - name: FROM_SECRET
              valueFrom:
                secretKeyRef:
                  key: password
                  name: db-secret
            image: quay.io/me/train:1
            name: launcher
            readinessProbe:
              httpGet:
                httpHeaders:
                - name: Authorization
                  value: '****'
                port: 80
          initContainers:
          - command:
            - sh
            - -c
            - curl -u me:**** https://x; export API_KEY=****
            image: a
            name: fetch
          volumes:
          - name: keys
            secret:
              secretName: train-keys
          - csi:
              driver: x
              volumeAttributes:
                accessKey: '****'
                bucket: b
            name: store
  slotsPerWorker: 2
`
	if diff := cmp.Diff(want, got.Manifest); diff != "" {
		t.Error(diff)
	}
	if got.Masked != 13 || int(got.Size) != len(got.Manifest) || got.Omitted != "" {
		t.Errorf("masked %d, bytes %d, omitted %q", got.Masked, got.Size, got.Omitted)
	}
}

func TestSpecificationOfTypedJobs(t *testing.T) {
	job := &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Name: "pi", Namespace: "ns"}}
	job.Spec.MPIReplicaSpecs = map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{kubeflow.MPIReplicaTypeWorker: nil}
	before := job.DeepCopy()
	got := recorded(job)
	if strings.Contains(got.Manifest, "null") || strings.Contains(got.Manifest, "status") || !strings.Contains(got.Manifest, "kind: MPIJob") {
		t.Error(got.Manifest)
	}
	if diff := cmp.Diff(before, job); diff != "" {
		t.Error("the object was changed:", diff)
	}
}

func TestSpecificationIsWrittenWhenItChanges(t *testing.T) {
	object := objectFrom(t, "{metadata: {name: pi, namespace: ns, generation: 1, labels: {a: b}}, spec: {slotsPerWorker: 1}}")
	var status v1alpha1.JobReportStatus
	set := func() *v1alpha1.Specification {
		report.SetSpecification(&status, mpi.Job{Kind: "MPIJob", Name: "pi", RuntimeVersion: "u/1"}, object, logs.Masker{}.Text)
		return status.Specification
	}
	first := set()
	status.Specification.Manifest = "" // as in the cache
	if again := set(); again != first || again.Manifest != "" {
		t.Error("an unchanged specification was written again")
	}
	object.SetAnnotations(map[string]string{mpi.AnnotationCreator: "alice"})
	if again := set(); again != first {
		t.Error("an annotation of the operator changed the specification")
	}
	object.SetAnnotations(map[string]string{"note": "x"})
	if changed := set(); changed == first || !strings.Contains(changed.Manifest, "note: x") || changed.RuntimeVersion != "u/1" {
		t.Errorf("after a change: %+v", changed)
	}
	status.CompletionTime = &metav1.Time{}
	object.SetGeneration(2)
	last := status.Specification
	if set() != last {
		t.Error("the specification changed after the end of the job")
	}
	status.Specification = nil
	if late := set(); late == nil || late.Manifest == "" {
		t.Error("a report of an earlier version of the operator gets no specification")
	}
}

// TestNeedsManifest: the recorded manifest is only read for the new fields of an MPIJob that Kueue may have admitted.
func TestNeedsManifest(t *testing.T) {
	object := objectFrom(t, "{metadata: {name: pi, namespace: ns, generation: 2}, spec: {}}")
	recordedOld := func() v1alpha1.JobReportStatus {
		return v1alpha1.JobReportStatus{Specification: &v1alpha1.Specification{Version: "1", Size: 100}}
	}
	var written v1alpha1.JobReportStatus
	report.SetSpecification(&written, mpi.Job{}, object, logs.Masker{}.Text)
	written.Specification.Manifest = "" // as in the cache
	suspended := mpi.Job{Queue: "team", Lifecycle: mpi.Lifecycle{Suspended: true}}
	ended, tooLarge := recordedOld(), recordedOld()
	ended.CompletionTime, tooLarge.Specification.Size = &metav1.Time{}, 0
	for name, test := range map[string]struct {
		status v1alpha1.JobReportStatus
		job    mpi.Job
		want   bool
	}{
		"admitted":                {recordedOld(), mpi.Job{Queue: "team"}, true},
		"suspended":               {recordedOld(), suspended, false},
		"in no queue":             {recordedOld(), mpi.Job{}, false},
		"a TrainJob":              {recordedOld(), mpi.Job{Queue: "team", External: true}, false},
		"unchanged":               {written, mpi.Job{Queue: "team"}, false},
		"without a specification": {v1alpha1.JobReportStatus{}, mpi.Job{Queue: "team"}, false},
		"it was too large":        {tooLarge, mpi.Job{Queue: "team"}, false},
		"ended":                   {ended, mpi.Job{Queue: "team"}, false},
	} {
		if got := report.NeedsManifest(test.status, test.job, object); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestSpecificationIsBounded(t *testing.T) {
	for name, value := range map[string]string{
		"large":              strings.Repeat("x", 100<<10),
		"many quotes":        strings.Repeat(`"`, 31<<10),
		"control characters": strings.Repeat("\x01", 31<<10),
		"one secret":         "password=" + strings.Repeat("x", 100<<10),
	} {
		t.Run(name, func(t *testing.T) {
			object := objectFrom(t, "{metadata: {name: pi, namespace: ns}, spec: {}}")
			object.Object["spec"] = map[string]any{"value": value}
			got := recorded(object)
			if got.Manifest != "" || !strings.Contains(got.Omitted, "bytes; reports keep up to 32768") {
				t.Errorf("%d bytes, omitted %q", len(got.Manifest), got.Omitted)
			}
		})
	}
}

// TestSpecificationSizes measures what decision 33 is based on.
func TestSpecificationSizes(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			object := objectFrom(t, document)
			if object.GetKind() != "MPIJob" && object.GetKind() != "TrainJob" {
				continue
			}
			got := recorded(object)
			if got.Manifest == "" || len(got.Manifest) > 4<<10 {
				t.Errorf("%s: %d bytes, %s", file, len(got.Manifest), got.Omitted)
			}
			t.Logf("%s: %d bytes, compressed %d", filepath.Base(file), len(got.Manifest), compressed(got.Manifest))
		}
	}
	var large strings.Builder
	for i := 0; large.Len() < 100<<10; i++ {
		fmt.Fprintf(&large, "            - name: VARIABLE_%d\n              value: value-%x\n", i, i*7919)
	}
	t.Logf("100 kB of variables: compressed %d", compressed(large.String()))
}

func compressed(text string) int {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return base64.StdEncoding.EncodedLen(packed.Len())
}
