package offline

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestMutants: jobs of test/e2e's TestMutants that were told wrongly once are told right. Each folder of testdata/mutants has what was saved of
// one (MUTANTS_SAVE), the truth, and in findings.yaml what is found.
func TestMutants(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("testdata/mutants/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are none: %v", err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			var truth mpitest.Truth
			text, err := os.ReadFile(filepath.Join(folder, "truth"))
			if err == nil {
				err = yaml.UnmarshalStrict(text, &truth)
			}
			if err != nil {
				t.Fatal(err)
			}
			found := diagnoseFolder(t, folder)
			if verdict, why := truth.Judge(found); verdict != mpitest.Right {
				t.Errorf("%s: %s", verdict, why)
			}
			mpitest.Golden(t, filepath.Join("mutants", filepath.Base(folder), "findings"), found)
		})
	}
}

// diagnoseFolder returns the findings of the job in a folder.
func diagnoseFolder(t *testing.T, folder string) []v1alpha1.Finding {
	t.Helper()
	saved, err := Read(Input{Paths: []string{folder}})
	if err != nil {
		t.Fatal(err)
	}
	if len(saved.Jobs()) == 0 || len(saved.Problems) > 0 {
		t.Fatalf("%d jobs, problems %q", len(saved.Jobs()), saved.Problems)
	}
	found, err := saved.Diagnose(t.Context(), saved.Jobs()[0], saved.Time(), logs.Masker{})
	if err != nil {
		t.Fatal(err)
	}
	return found.Report.Status.Findings
}
