package dashboard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/jobs"
)

func TestOutputsOfAJob(t *testing.T) {
	const named = `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {Worker: {template: {spec: {
  containers: [{name: worker, image: solver, env: [{name: OUTPUT_DIR, value: /results/run}], volumeMounts: [{name: data, mountPath: /data, readOnly: true}, {name: scratch, mountPath: /scratch}, {name: models, mountPath: /models}, {name: r, mountPath: /results, subPath: train}]}],
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}, {name: scratch, emptyDir: {}}, {name: models, persistentVolumeClaim: {claimName: shared-models}}, {name: r, persistentVolumeClaim: {claimName: results}}]}}}}}}`
	const connected = `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {annotations: {opendatahub.io/connections: "model, lab/other"}}, spec: {runtimeRef: {name: mpi}, trainer: {command: [sh, -c], args: ["run --out /tmp/x; aws s3 cp /tmp/x \"s3://$AWS_S3_BUCKET/runs/1\""]},
  runtimePatches: [{trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{template: {spec: {template: {spec: {containers: [{name: node, volumeMounts: [{name: r, mountPath: /results}]}], volumes: [{name: r, persistentVolumeClaim: {claimName: results}}]}}}}}]}}}}]}}`
	for name, test := range map[string]struct {
		manifest string
		want     []string
	}{
		"the folder that the job names is first": {named, []string{
			"PersistentVolumeClaim results: Folder train/run of the claim; in the pods /results/run (named)",
			"PersistentVolumeClaim shared-models: Folder / of the claim; in the pods /models",
		}},
		"connections and the claim of a TrainJob": {connected, []string{
			"PersistentVolumeClaim results: Folder / of the claim; in the pods /results",
			"Data connection model: The command names s3://$AWS_S3_BUCKET/runs/1", "Data connection lab/other: The command names s3://$AWS_S3_BUCKET/runs/1",
		}},
		"none": {largeMPIJob, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, output := range outputsOf(jobOf(t, test.manifest)) {
				text := output.Title + ": " + output.Where
				if output.Named {
					text += " (named)"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
	outputs := outputsOf(jobOf(t, named))
	for _, want := range []string{`"claimName":"results"`, "kubectl -n lab cp train-results:/results/train/run train-results", "kubectl -n lab delete pod train-results"} {
		if !strings.Contains(outputs[0].Command, want) {
			t.Errorf("the command does not contain %s:\n%s", want, outputs[0].Command)
		}
	}
	hostile := jobOf(t, connected)
	hostile.Object.SetAnnotations(map[string]string{"opendatahub.io/connections": `x"; rm -rf ~; "`})
	if command := outputsOf(hostile)[1].Command; !strings.Contains(command, `secret 'x"; rm -rf ~; "'`) {
		t.Errorf("a hostile name is not quoted:\n%s", command)
	}
	if got := outputsOf(jobs.Job{Kind: "MPIJob"}); len(got) != 0 {
		t.Errorf("of a deleted job: %+v", got)
	}
}
