package binaries

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/hack/cluster/layout"
)

// restOfRun is the CPU time in seconds that make run needs with empty caches besides the cluster's programs: for the operator, the
// images and the dashboard.
const restOfRun = 500

// TestDocumentedTimes: the times in the documents follow from the components.
func TestDocumentedTimes(t *testing.T) {
	cpu := restOfRun
	for _, c := range components(layout.KubernetesVersion) {
		if c.cpu == 0 {
			t.Errorf("the time of %s is unknown", c.name)
		}
		cpu += c.cpu
	}
	on := func(cores int) int { return int(Estimate(cpu, cores).Round(time.Minute) / time.Minute) }
	want := fmt.Sprintf("%d minutes on two cores, %d on four and %d on eight", on(2), on(4), on(8))
	for _, page := range []string{"README.md", "docs/one-machine.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("%s does not have %q", page, want)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "one-machine.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, sentence, _ := strings.Cut(string(text), fmt.Sprintf("\nthe time) and the operator, and builds the images. Of %d,%03d s of CPU time, ", cpu/1000, cpu%1000))
	sentence, _, _ = strings.Cut(sentence, ";")
	for _, c := range append(components(layout.KubernetesVersion), component{name: "the dashboard", cpu: restOfRun}) {
		if said := regexp.MustCompile(`(?i)` + c.name + `( takes)? ` + strconv.Itoa(c.cpu) + `\b`); c.cpu > 1 && !said.MatchString(strings.Join(strings.Fields(sentence), " ")) {
			t.Errorf("docs/one-machine.md does not say that %s takes %d of %d s: %q", c.name, c.cpu, cpu, sentence)
		}
	}
}

func TestFirstTime(t *testing.T) {
	for _, test := range []struct {
		cpu, cores int
		want       string
	}{
		{1, 2, "compiling, first time only"},
		{735, 1, "compiling, first time only, takes about 14 minutes on 1 core"},
		{735, 2, "compiling, first time only, takes about 7 minutes on 2 cores"},
		{735, 4, "compiling, first time only, takes about 4 minutes on 4 cores"},
		{735, 64, "compiling, first time only, takes about 2 minutes on 64 cores"},
		{90, 2, "compiling, first time only, takes about a minute on 2 cores"},
	} {
		if got := firstTimeOn(test.cpu, test.cores); got != test.want {
			t.Errorf("%d s on %d cores: %q, want %q", test.cpu, test.cores, got, test.want)
		}
	}
}

// TestAnnouncement: only what the cache lacks counts.
func TestAnnouncement(t *testing.T) {
	b := newBuilder(t)
	all := components(layout.KubernetesVersion)
	if got, want := b.announcement(all, 2), "the cache lacks 5 of 5 programs (kubernetes, etcd, coredns, containerd, pause): compiling, first time only, takes about 12 minutes on 2 cores"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, c := range all {
		if c.name == "etcd" || c.name == "containerd" {
			continue
		}
		key, err := b.key(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(b.cache, key), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.announcement(all, 2), "the cache lacks 2 of 5 programs (etcd, containerd): compiling, first time only, takes about 3 minutes on 2 cores"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := b.announcement(all[:2], 2); got != "" {
		t.Errorf("one program is announced by its own step, and here as %q", got)
	}
}

// TestAPIServer: the oldest version has a program with only its kube-apiserver, which has a key of its own.
func TestAPIServer(t *testing.T) {
	b := newBuilder(t)
	oldest, err := layout.Kubernetes("1.29")
	if err != nil {
		t.Fatal(err)
	}
	c, exists := b.apiServer(oldest)
	if !exists {
		t.Fatal("there is no kube-apiserver of " + oldest)
	}
	all := components(oldest)
	own, err := b.key(c)
	if err != nil {
		t.Fatal(err)
	}
	if whole, err := b.key(all[len(all)-1]); err != nil || own == whole || !strings.HasPrefix(own, "kube-apiserver-v1.29-"+oldest) {
		t.Errorf("the keys are %s and %s, %v", own, whole, err)
	}
	if _, exists := b.apiServer(layout.KubernetesVersion); exists {
		t.Error("the newest version has a kube-apiserver of its own, although all its servers are one program")
	}
}
