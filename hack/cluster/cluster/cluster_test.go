package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/hack/cluster/binaries"
	"opendatahub.io/mpijob/hack/cluster/imagetar"
	"opendatahub.io/mpijob/hack/cluster/internal/golden"
	"opendatahub.io/mpijob/hack/cluster/layout"
)

func TestMergeKeepsWhatIsNotAskedFor(t *testing.T) {
	gates := map[string]bool{"A": true}
	tests := map[string]struct {
		now     settings
		options UpOptions
		want    settings
	}{
		"new cluster":            {want: settings{Kubernetes: layout.Newest(), Nodes: 2}},
		"new cluster, 3 nodes":   {options: UpOptions{Nodes: 3}, want: settings{Kubernetes: layout.Newest(), Nodes: 3}},
		"as it is":               {now: settings{Nodes: 3, FeatureGates: gates}, want: settings{Kubernetes: layout.Newest(), Nodes: 3, FeatureGates: gates}},
		"other number of nodes":  {now: settings{Nodes: 3, FeatureGates: gates}, options: UpOptions{Nodes: 1}, want: settings{Kubernetes: layout.Newest(), Nodes: 1, FeatureGates: gates}},
		"add-ons stay":           {now: settings{Nodes: 2, With: map[string]string{"trainer": "v2.3.0"}}, options: UpOptions{Nodes: 1}, want: settings{Kubernetes: layout.Newest(), Nodes: 1, With: map[string]string{"trainer": "v2.3.0"}}},
		"add-ons taken away":     {now: settings{Nodes: 2, With: map[string]string{"trainer": "v2.3.0"}}, options: UpOptions{With: map[string]string{}}, want: settings{Kubernetes: layout.Newest(), Nodes: 2, With: map[string]string{}}},
		"static CPU manager":     {now: settings{Nodes: 2}, options: UpOptions{CPUManager: "static"}, want: settings{Kubernetes: layout.Newest(), Nodes: 2, CPUManager: "static"}},
		"CPU manager stays":      {now: settings{Nodes: 2, CPUManager: "static"}, want: settings{Kubernetes: layout.Newest(), Nodes: 2, CPUManager: "static"}},
		"gates taken away again": {now: settings{Nodes: 2, FeatureGates: gates}, options: UpOptions{FeatureGates: map[string]bool{}}, want: settings{Kubernetes: layout.Newest(), Nodes: 2, FeatureGates: map[string]bool{}}},
		"oldest version":         {options: UpOptions{Kubernetes: "1.29"}, want: settings{Kubernetes: "1.29", Nodes: 2}},
		"version stays":          {now: settings{Kubernetes: "1.29", Nodes: 2}, options: UpOptions{Nodes: 3}, want: settings{Kubernetes: "1.29", Nodes: 3}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := merge(test.now, test.options); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestSettingsRefuseAFolderOfSomebodyElse(t *testing.T) {
	tests := map[string]struct {
		file, content string
		none          bool
	}{
		"empty folder":             {none: true},
		"folder with other files":  {file: "thesis.txt", content: "x"},
		"settings of another tool": {file: "settings.json", content: `{"kind":"editor"}`},
		"settings cut off":         {file: "settings.json", content: `{"ki`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{Layout: layout.Layout{State: t.TempDir()}}
			if test.file != "" {
				if err := os.WriteFile(filepath.Join(c.Layout.State, test.file), []byte(test.content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.settings(); err == nil || errors.Is(err, errNoCluster) != test.none {
				t.Errorf("got error %v, want errNoCluster: %v", err, test.none)
			}
		})
	}
}

func TestSettingsAreReadBack(t *testing.T) {
	c := &Cluster{Layout: layout.Layout{State: filepath.Join(t.TempDir(), "new")}}
	want := settings{Kind: settingsKind, Kubernetes: "1.29", Nodes: 3, RuntimeConfig: map[string]string{"a/v1": "true"}}
	if err := c.saveSettings(want); err != nil {
		t.Fatal(err)
	}
	if got, err := c.settings(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestVersionOfAClusterWithDataIsKept(t *testing.T) {
	tests := map[string]struct {
		before    settings
		requested string
		noData    bool
		refused   bool
	}{
		"new cluster":                {requested: "1.29", noData: true},
		"version not given":          {before: settings{Kubernetes: "1.29"}},
		"same version":               {before: settings{Kubernetes: "1.29"}, requested: "1.29"},
		"older version":              {before: settings{Kubernetes: layout.Newest()}, requested: "1.29", refused: true},
		"newer version":              {before: settings{Kubernetes: "1.29"}, requested: layout.Newest(), refused: true},
		"first up ended before etcd": {before: settings{Kubernetes: layout.Newest()}, requested: "1.29", noData: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{Layout: layout.Layout{State: t.TempDir()}}
			if !test.noData {
				if err := os.Mkdir(c.Layout.Etcd(), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			err := c.checkVersion(test.before, UpOptions{Kubernetes: test.requested})
			if (err != nil) != test.refused {
				t.Fatalf("got %v, want an error: %v", err, test.refused)
			}
			if err != nil && (!strings.Contains(err.Error(), test.requested) || !strings.Contains(err.Error(), "cluster down")) {
				t.Errorf("the error does not name the version and the next step: %v", err)
			}
		})
	}
}

func TestPresentImages(t *testing.T) {
	images := parseImages(`REF                          TYPE       DIGEST     SIZE      PLATFORMS   LABELS
docker.io/odh/mpi:dev        application/vnd.docker.distribution.manifest.v2+json sha256:m1 350.0 MiB linux/amd64 -
sha256:c1                    application/vnd.docker.distribution.manifest.v2+json sha256:m1 350.0 MiB linux/amd64 -
docker.io/odh/old:dev        application/vnd.docker.distribution.manifest.v2+json sha256:m2 350.0 MiB linux/amd64 -
`)
	tests := map[string]struct {
		image imagetar.Image
		want  bool
	}{
		"same name, same content":  {imagetar.Image{References: []string{"odh/mpi:dev"}, ConfigDigest: "sha256:c1"}, true},
		"same name, other content": {imagetar.Image{References: []string{"odh/mpi:dev"}, ConfigDigest: "sha256:c2"}, false},
		"other name, same content": {imagetar.Image{References: []string{"odh/old:dev"}, ConfigDigest: "sha256:c1"}, false},
		"new name, same content":   {imagetar.Image{References: []string{"odh/mpi:dev", "odh/mpi:2"}, ConfigDigest: "sha256:c1"}, false},
		"no name":                  {imagetar.Image{ConfigDigest: "sha256:c1"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := images.has([]imagetar.Image{test.image}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestStatusText(t *testing.T) {
	since := time.Date(2026, 11, 21, 4, 14, 15, 0, time.UTC)
	running := []Component{
		{Name: "etcd", PID: 100, Since: since},
		{Name: "kube-apiserver", PID: 2000, Since: since.Add(time.Second)},
	}
	tests := map[string]struct {
		status Status
		up     bool
	}{
		"nothing":      {status: Status{}},
		"all-ended":    {status: Status{Exists: true, Components: []Component{{Name: "etcd", Problem: "does not run"}}}},
		"foreign":      {status: Status{Foreign: &ForeignError{Owner: "/other/.cluster"}}},
		"foreign-gone": {status: Status{Foreign: &ForeignError{Owner: "/other/.cluster", Gone: true}}},
		"up":           {status: Status{Exists: true, Components: running, Nodes: []NodeStatus{{Name: "node-1"}}}, up: true},
		"add-on": {status: Status{
			Exists: true, Components: running, Nodes: []NodeStatus{{Name: "node-1"}},
			AddOns: []AddOnStatus{{Name: "trainer", Version: "v2.3.0"}},
		}, up: true},
		"add-on-fails": {status: Status{
			Exists: true, Components: running, Nodes: []NodeStatus{{Name: "node-1"}},
			AddOns: []AddOnStatus{{Name: "trainer", Version: "v2.3.0", Problem: "jobset: no pod of it is available"}},
		}},
		"node-lost": {status: Status{
			Exists:     true,
			Components: append(running, Component{Name: "node-1-kubelet", Problem: "has ended; see /clone/.cluster/logs/node-1-kubelet.log"}),
			Nodes:      []NodeStatus{{Name: "node-1", Problem: "Kubelet stopped posting node status."}},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, "status-"+name, test.status.Text(layout.Layout{State: "/clone/.cluster"}))
			if got := test.status.Up(); got != test.up {
				t.Errorf("up is %v, want %v", got, test.up)
			}
		})
	}
}

func TestParallelReportsTheFirstFailureAlone(t *testing.T) {
	cause := errors.New("etcd ended")
	err := parallel(t.Context(),
		func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		func(context.Context) error { return cause },
	)
	if !errors.Is(err, cause) || strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v, want %v", err, cause)
	}
}

func TestUnescape(t *testing.T) {
	if got := unescape(`/a\040b/c\134d`); got != `/a b/c\d` {
		t.Errorf("got %q", got)
	}
}

func TestSameManifests(t *testing.T) {
	folder, other := t.TempDir(), filepath.Join(t.TempDir(), "record")
	write := func(dir, definitions, objects string) {
		t.Helper()
		err := writeFiles(dir, map[string]string{"definitions.yaml": definitions, "objects.yaml": objects})
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, want bool) {
		t.Helper()
		if got, err := sameManifests(folder, other); err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", what, got, err, want)
		}
	}
	write(folder, "a", "b")
	check("not installed", false)
	write(other, "a", "old")
	check("older ones installed", false)
	write(other, "a", "b")
	check("installed", true)
}

// TestRemoveAddOn removes add-ons whose installation ended at each step. As the real one, this kubectl fails for files that
// do not exist.
func TestRemoveAddOn(t *testing.T) {
	const kubectl = `#!/bin/sh
folder=$(dirname "$0")
shift 2
verb=$1
while [ $# -gt 0 ]; do
  if [ "$1" = -f ]; then
    [ -e "$2" ] || { echo "error: the path \"$2\" does not exist" >&2; exit 1; }
    echo "$verb $(basename "$2")" >>"$folder/calls"
  fi
  shift
done
`
	for name, test := range map[string]struct {
		files map[string]string
		calls string
	}{
		"nothing applied":         {nil, ""},
		"definitions not applied": {map[string]string{"definitions.yaml": "a"}, "get definitions.yaml\ndelete definitions.yaml\nwait definitions.yaml\n"},
		"installed": {
			map[string]string{"definitions.yaml": "a", "objects.yaml": "b"},
			"delete objects.yaml\nget definitions.yaml\ndelete definitions.yaml\nwait definitions.yaml\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			programs, record := t.TempDir(), filepath.Join(t.TempDir(), "trainer-v2.3.0")
			if err := errors.Join(os.MkdirAll(record, 0o755), writeFiles(record, test.files), os.WriteFile(filepath.Join(programs, "kubectl"), []byte(kubectl), 0o755)); err != nil {
				t.Fatal(err)
			}
			r := &run{Cluster: &Cluster{Layout: layout.Layout{State: t.TempDir()}}, set: binaries.Set{Dir: programs}}
			if err := r.removeAddOn(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			calls, err := os.ReadFile(filepath.Join(programs, "calls"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if string(calls) != test.calls {
				t.Errorf("kubectl is called with %q, want %q", calls, test.calls)
			}
			if exists(record) {
				t.Error("the record is still there")
			}
		})
	}
}
