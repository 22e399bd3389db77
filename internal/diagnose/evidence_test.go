package diagnose_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
)

// named are what evidence contains that names a cause, and the codes of the findings that may show it.
var named = []struct {
	text  *regexp.Regexp
	codes []codes.Code
}{
	{regexp.MustCompile(`OOMKilled|because of memory`), []codes.Code{codes.OutOfMemory}},
	{regexp.MustCompile(`low on resource|[Ee]xceeds the (?:total )?limit|exceeded its local ephemeral storage|sizeLimit`), []codes.Code{codes.Evicted}},
	{regexp.MustCompile(`Eviction API|Event Evicted `), []codes.Code{codes.Evicted}},
	{regexp.MustCompile(`preempting to accommodate`), []codes.Code{codes.Preempted}},
	{regexp.MustCompile(`node no longer exists|: Taint manager: deleting`), []codes.Code{codes.NodeLost, codes.NodeMissing}},
	{regexp.MustCompile(`was deleted at|is being deleted`), []codes.Code{codes.LauncherDeleted, codes.WorkerDeleted, codes.EarlierJobLeaving}},
	{regexp.MustCompile(`failed (?:liveness|startup) probe`), []codes.Code{codes.ProbeFailed}},
	{regexp.MustCompile(`FailedPostStartHook`), []codes.Code{codes.ContainerCreateFailed}},
	{regexp.MustCompile(`exceeded quota`), []codes.Code{codes.QuotaExceeded, codes.QuotaTooSmall, codes.QuotaExhausted}},
	{regexp.MustCompile(`violates PodSecurity`), []codes.Code{codes.PodSecurityDenied}},
	{regexp.MustCompile(`failed calling webhook`), []codes.Code{codes.WebhookUnreachable}},
	{regexp.MustCompile(`admission webhook ".*" denied`), []codes.Code{codes.AdmissionDenied}},
	{regexp.MustCompile(`(?:secret|configmap) "[^"]+" not found`), []codes.Code{codes.MissingReference}},
	{regexp.MustCompile(`ErrImage|ImagePullBackOff`), []codes.Code{codes.ImagePullFailed}},
	{regexp.MustCompile(`didn't match|untolerated taint`), []codes.Code{codes.NoMatchingNode, codes.InsufficientResources, codes.RDMANotOffered, codes.PodRejected, codes.Unschedulable}},
}

// TestEvidenceNamesNoOtherCause: the evidence of the first finding of every golden file does not state the cause of another, stronger
// or equally strong code.
func TestEvidenceNamesNoOtherCause(t *testing.T) {
	for file, found := range goldenFindings(t) {
		if len(found) == 0 {
			continue
		}
		for _, line := range found[0].Evidence {
			for _, other := range causesIn(line) {
				if found[0].Code == codes.RDMANotUsed && other[0] == codes.LockedMemoryLimit || found[0].Code == codes.NoTransport && other[0] == codes.SegmentationFault ||
					found[0].Code == codes.WrongGPU && other[0] == codes.MoreSlotsThanGPUs {
					// The summary says that this is why, the crash follows from what the job selects, and the pods have enough GPUs.
					continue
				}
				if !slices.Contains(other, found[0].Code) && codes.StrengthOf(other[0]) <= codes.StrengthOf(found[0].Code) {
					t.Errorf("%s: the finding is %s, and its evidence names %s: %s", file, found[0].Code, other[0], line)
				}
			}
		}
	}
}

// goldenFindings returns the findings of all golden files, by the names of the files. Those that hold something else are left out.
func goldenFindings(t *testing.T) map[string][]diagnose.Finding {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	all := make(map[string][]diagnose.Finding, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var found []diagnose.Finding
		if err := yaml.Unmarshal(text, &found); err == nil {
			all[filepath.Base(file)] = found
		}
	}
	return all
}

// causesIn returns the codes whose cause a line of evidence names: one of each list.
func causesIn(line string) (causes [][]codes.Code) {
	for _, n := range named {
		if n.text.MatchString(line) {
			causes = append(causes, n.codes)
		}
	}
	_, logged, isLog := strings.Cut(line, ": ")
	if !isLog || !strings.HasPrefix(line, "Log of ") {
		return causes
	}
	// A line shows one problem, as the first symptom that matches it.
	byLine := map[codes.Code]bool{}
	for _, implemented := range mpi.Implementations {
		for _, symptom := range implementation.For(implemented).Symptoms() {
			if _, is := symptom.Match(logged); is {
				if !symptom.Umbrella {
					byLine[symptom.Code] = true
				}
				break
			}
		}
	}
	if len(byLine) > 0 {
		causes = append(causes, slices.Sorted(maps.Keys(byLine)))
	}
	return causes
}
