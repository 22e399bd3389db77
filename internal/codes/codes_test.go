package codes_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
)

// constants returns the names and values of the codes.
func constants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found[spec.Names[0].Name] = value
		return true
	})
	return found
}

func TestEveryConstantIsDefinedOnceAndNamedAsItsValue(t *testing.T) {
	t.Parallel()
	defined := map[string]int{}
	for _, e := range codes.Entries() {
		defined[e.Code]++
	}
	all := constants(t)
	for name, value := range all {
		if name != value {
			t.Errorf("constant %s has the value %q", name, value)
		}
		if defined[value] != 1 {
			t.Errorf("%s has %d definitions", name, defined[value])
		}
	}
	if len(defined) != len(all) {
		t.Errorf("%d definitions for %d constants", len(defined), len(all))
	}
}

func TestEveryCodeIsUsed(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../codes/") {
			return err
		}
		content, err := os.ReadFile(path)
		sources.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range constants(t) {
		if !regexp.MustCompile(`\bcodes\.` + name + `\b`).MatchString(sources.String()) {
			t.Errorf("%s is not used", name)
		}
	}
}

// known are the placeholders that texts may contain.
var known = strings.Fields(`
	namespace what child childOf stall function holder holderPlace boundPods boundRanks cores nodeText usable job kind kindLower jobKinds service secret report role field reference image
	workers perWorker ranks slots alone limit limitText slotsField workersField workerTemplate deadlineField gangField
	runtime jobHosts templateName otherTemplate rankLower who whoLower pod logPod worker hostPod launcherPods selector node onNode host hosts hostText
	rank rankText rankWho ranksText code codeText errorText placeText probe program where library file uid size gpus gpuText totalText
	idle message said reason hookText workerImage key state known since others folder seconds portText cause advice action deadline
	workersText hostsText slotsText launcherImage asked largest largestText policy address mounted programTemplate module variable volume othersEnded gates scheduler at first firstAction second secondAction sidecarAction missing claimText claims container times exit imageNow why
	want have nodes offer resource is how expect insist network in
	object name quota figures level violations webhook queue workload pods
	shmText mpiField capabilities option lastText meant devices replaces interface interfaces setting settingText value component figure is
	used usedOf rate ofLimit more moreMemory moreCPU newCommand probeField hookField gatesField commandField argsField launcherTemplate found expected errors running ready launcher attempt tries ranksNow share source by evicted wanted position step progress time median words places effect containers limitSet unit ownVariable setBy variableField replacedText awaited most pace enough nodesAre slower rdma abortText dnsPolicy ofURL
	of both firstCall firstPlace secondCall secondPlace second script caller called call assign others containerField perRank line limitText proxy service hostPlaces part warned packageText wrapped unwrapped`)

func TestTexts(t *testing.T) {
	t.Parallel()
	isKnown := map[string]bool{}
	for _, name := range known {
		isKnown[name] = true
	}
	for _, kind := range codes.OwnErrors {
		for _, name := range kind.Matches.SubexpNames() {
			isKnown[strings.TrimRight(name, "0123456789")] = true
		}
	}
	placeholder := regexp.MustCompile(`\{([a-zA-Z]+)(?:\|[^{}]*)?\}`)
	for _, e := range allEntries() {
		switch {
		case e.Phase == "":
			t.Errorf("%s has no phase", e.Code)
		case e.Summary == "" && e.Status == "":
			t.Errorf("%s has no text", e.Code)
		case e.IsFinding() != (len(e.Remedies) > 0):
			t.Errorf("%s has the summary %q and %d remedies", e.Code, e.Summary, len(e.Remedies))
		case len(e.Remedies) > 5:
			t.Errorf("%s has more than 5 remedies", e.Code)
		}
		texts := []string{e.Status, e.Summary}
		for _, r := range e.Remedies {
			if r.Text == "" {
				t.Errorf("%s has a remedy without a text", e.Code)
			}
			if len(r.Changes) > 0 && !r.Rerun {
				t.Errorf("%s has a remedy with changes that is not run again: %q", e.Code, r.Text)
			}
			if strings.HasPrefix(r.Text, "Start the job again") != (r.Rerun && len(r.Changes) == 0) && r.Action == "" {
				t.Errorf("%s: the remedy %q is run again: %t", e.Code, r.Text, r.Rerun)
			}
			texts = append(texts, r.Text, r.Action)
			for _, change := range r.Changes {
				texts = append(texts, change.Field, change.Value)
			}
		}
		for _, text := range texts {
			for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
				if !isKnown[match[1]] && match[0] != "{Launcher}" {
					t.Errorf("%s: placeholder %s is not known", e.Code, match[0])
				}
			}
		}
		if len(e.Summary) > 170 {
			t.Errorf("%s: the summary has %d characters", e.Code, len(e.Summary))
		}
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{who} failed{why}.":          "Worker 1 failed.",
		"{host|A worker} is missing.": "A worker is missing.",
		"{who|A pod} is missing.":     "Worker 1 is missing.",
	} {
		if got := codes.Fill(text, map[string]string{"who": "Worker 1"}); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestFillRemedy(t *testing.T) {
	t.Parallel()
	change := func(field, value string) []v1alpha1.FieldChange {
		return []v1alpha1.FieldChange{{Field: field, Value: value}}
	}
	for name, test := range map[string]struct{ remedy, want v1alpha1.Remedy }{
		"a text":            {v1alpha1.Remedy{Text: "Look at {pod}.", Action: "kubectl {pod}"}, v1alpha1.Remedy{Text: "Look at x.", Action: "kubectl x"}},
		"run again":         {v1alpha1.Remedy{Text: "Start {pod}.", Rerun: true}, v1alpha1.Remedy{Text: "Start x.", Rerun: true}},
		"a change":          {v1alpha1.Remedy{Rerun: true, Changes: change("{field}.a", "{size}")}, v1alpha1.Remedy{Rerun: true, Changes: change("spec.a", "4")}},
		"an unknown value":  {v1alpha1.Remedy{Text: "Try.", Rerun: true, Changes: change("{field}.a", "{gpus}")}, v1alpha1.Remedy{Text: "Try."}},
		"an unknown field":  {v1alpha1.Remedy{Text: "Try.", Rerun: true, Changes: change("{gpus}", "4")}, v1alpha1.Remedy{Text: "Try."}},
		"one of two values": {v1alpha1.Remedy{Rerun: true, Changes: append(change("a", "4"), change("b", "{gpus}")...)}, v1alpha1.Remedy{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := codes.FillRemedy(test.remedy, map[string]string{"pod": "x", "field": "spec", "size": "4"})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLookupOfAnUnknownCode(t *testing.T) {
	t.Parallel()
	if e := codes.Lookup("Odd"); e.Code != "Odd" || !strings.Contains(e.Summary, "Odd") || e.Strength != codes.Cause {
		t.Errorf("got %+v", e)
	}
}

func TestPropertiesOfCodes(t *testing.T) {
	t.Parallel()
	if codes.StrengthOf(codes.SegmentationFault) >= codes.StrengthOf(codes.ConnectionLost) || codes.StrengthOf(codes.ConnectionLost) >= codes.StrengthOf(codes.ApplicationFailed) ||
		codes.StrengthOf(codes.ApplicationFailed) >= codes.StrengthOf(codes.Unknown) {
		t.Error("a cause is not stronger than its consequences, these than how a process ended, and that than nothing known")
	}
	if !codes.Has(codes.Evicted, codes.RemovesPods) || codes.Has(codes.Evicted, codes.RemovesPods|codes.EndsRank) || codes.Has("Odd", codes.RemovesPods) {
		t.Error("Has does not compare all traits")
	}
	if !codes.Has(codes.OutOfMemory, codes.EndsAttempt) || codes.Has(codes.Evicted, codes.EndsAttempt) {
		t.Error("what ends a program ends an attempt of the launcher, and an eviction does not")
	}
	if got, want := codes.Status(codes.Queued, map[string]string{"queue": "team"}), "Waiting in queue team."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if codes.Lookup(codes.OutOfMemory).Code != codes.OutOfMemory || !codes.Lookup(codes.OutOfMemory).IsFinding() || codes.Lookup(codes.Queued).IsFinding() {
		t.Error("Lookup or IsFinding is wrong")
	}
}
