package diagnose_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
)

// volumeAt mounts a volume at /results in the workers.
func volumeAt(source corev1.VolumeSource) func(*scene) {
	return func(s *scene) {
		spec := &s.job.Workers.Template.Spec
		spec.Volumes = []corev1.Volume{{Name: "results", VolumeSource: source}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "results", MountPath: "/results"}}
	}
}

// TestResultsNotKept: a result that a program reports to have written to no volume is deleted with the pod.
func TestResultsNotKept(t *testing.T) {
	claim := volumeAt(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "results"}})
	for name, test := range map[string]struct {
		log    string
		change func(*scene)
		want   bool
	}{
		"in /tmp":                      {"model saved to /tmp/model.npy", func(*scene) {}, true},
		"in /tmp, beside a claim":      {"[1,0]<stdout>:Saved checkpoint to '/tmp/out/checkpoint-100'.", claim, true},
		"on a claim":                   {"model saved to /results/model.npy", claim, false},
		"on an emptyDir":               {"Writing table (/results/all.csv)", volumeAt(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), true},
		"on a claim of the pod":        {"Writing table (/results/all.csv)", volumeAt(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}), true},
		"in the working directory":     {"[1,0]<stdout>:Saved model to ./out/model.pt", func(*scene) {}, true},
		"there, beside a ConfigMap":    {"saved model.safetensors", volumeAt(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}), true},
		"there, beside a claim":        {"saved model.safetensors", claim, false},
		"there, read":                  {"loaded model.safetensors", func(*scene) {}, false},
		"there, a table":               {"Writing table results.csv", func(*scene) {}, true},
		"there, a cache":               {"Saving cache to train_cache.npz", func(*scene) {}, false},
		"there, temporary":             {"saved to tmp_state.pt", func(*scene) {}, false},
		"there, removed":               {"Checkpoint saved at step 5 (best.ckpt removed)", func(*scene) {}, false},
		"there, missing":               {"WARN: model.bin not found, using model.safetensors; saved nothing", func(*scene) {}, false},
		"there, beside what is saved":  {"Saved a summary of best.ckpt", func(*scene) {}, false},
		"a key of a bucket":            {"Saved model to my-bucket/run1/model.pt", func(*scene) {}, false},
		"a path of HDFS":               {"saving to hdfs path user/me/model.pt", func(*scene) {}, false},
		"pushed elsewhere":             {"Saved state to model.pt, pushed to the registry", func(*scene) {}, false},
		"removed at once":              {"saved, then removed /tmp/model.pt", func(*scene) {}, false},
		"at an address":                {"saved to https://hub/model.pt", func(*scene) {}, false},
		"a file that is read":          {"loading /tmp/model.npy", func(*scene) {}, false},
		"a checkpoint it resumes from": {"Resuming from checkpoint /opt/base.ckpt", func(*scene) {}, false},
		"a checkpoint that is loaded":  {"Loading checkpoint /opt/base.ckpt", func(*scene) {}, false},
		"a saved model that is read":   {"Loaded saved model /opt/model.pt", func(*scene) {}, false},
		"a restored one":               {"[1,0]<stdout>:=> restored the saved weights from '/opt/base/checkpoint-10'", func(*scene) {}, false},
		"a checkpoint without a verb":  {"checkpoint: /opt/saved/base.ckpt", func(*scene) {}, false},
		"a verb behind the file":       {"/tmp/model.pt saved", func(*scene) {}, true},
		"a program of Open MPI":        {"/opt/openmpi/bin/train: wrote /tmp/model.pt", func(*scene) {}, true},
		"a cache":                      {"saved /tmp/.cache/torch/model.pt", func(*scene) {}, false},
		"a file that is no result":     {"wrote /tmp/trace.log", func(*scene) {}, false},
		"a result that is uploaded":    {"saved /tmp/model.pt\nuploaded to s3://bucket/model.pt", func(*scene) {}, false},
	} {
		found := reportedSuccess(test.log, "mpirun", "train").with(test.change).findings()
		if got := slices.ContainsFunc(found, func(f diagnose.Finding) bool { return f.Code == codes.ResultsNotKept }); got != test.want {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	check(t, map[string]expect{"results-not-kept": {codes.ResultsNotKept, reportedSuccess("model saved to /tmp/model.npy", "mpirun", "train")}})
}
