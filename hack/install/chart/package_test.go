package chart

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/hack/install/manifests"
)

const version = "v0.2.0-rc.1"

// references are the images of a release.
func references(registry string) []string {
	var all []string
	for i, name := range slices.Sorted(maps.Keys(valuesOf)) {
		all = append(all, fmt.Sprintf("%s/%s:%s@sha256:%064d", registry, name, version, i))
	}
	return all
}

func pack(t *testing.T, references []string) string {
	t.Helper()
	path, err := Package(folder, version, references, false, time.Unix(1_700_000_000, 0), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPackageIsReproducible(t *testing.T) {
	var packages [2][]byte
	for i := range packages {
		path := pack(t, references("registry.example.com:5000/mpi"))
		if got, want := filepath.Base(path), "mpijob-operator-0.2.0-rc.1.tgz"; got != want {
			t.Errorf("the package is %s, want %s", got, want)
		}
		var err error
		if packages[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(packages[0], packages[1]) {
		t.Error("two packages of the same chart differ")
	}
}

// TestReleaseAgrees packages a chart, and compares it with manifests whose images are replaced as hack/release.sh does.
func TestReleaseAgrees(t *testing.T) {
	images := references("registry.example.com:5000/mpi")
	t.Run("whole", func(t *testing.T) { wantAgreement(t, images, "mpi-intel") })
	few := slices.DeleteFunc(images, func(image string) bool {
		return strings.Contains(image, "/mpi-sample-") && !strings.Contains(image, "/mpi-sample-mpich:")
	})
	t.Run("partial", func(t *testing.T) {
		wantAgreement(t, few, "mpi-intel", "mpi-openmpi", "mpi-openmpi5", "mpi-horovod", "mpi-deepspeed")
	})
}

// wantAgreement packages a release without some runtimes, and compares it with the manifests.
func wantAgreement(t *testing.T, images []string, without ...string) {
	t.Helper()
	release := t.TempDir()
	path, err := Package(folder, version, images, len(without) > 1, time.Unix(1_700_000_000, 0), release)
	if err != nil {
		t.Fatal(err)
	}
	chart, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if chart.Metadata.AppVersion != version {
		t.Errorf("the version of the application is %s, want %s", chart.Metadata.AppVersion, version)
	}
	for file, source := range map[string]string{
		"install.yaml": "default", "dashboard.yaml": "dashboard/base", "dashboard-openshift.yaml": "dashboard/openshift", "dashboard-openshift-token.yaml": "dashboard/openshift-token",
		"runtimes-kubernetes.yaml": "runtimes/kubernetes", "runtimes-openshift.yaml": "runtimes/openshift",
		"runtimes-kubernetes-image-volume.yaml": "runtimes/kubernetes-image-volume", "runtimes-openshift-image-volume.yaml": "runtimes/openshift-image-volume",
	} {
		var text strings.Builder
		for _, object := range build(t, source) {
			if slices.Contains(without, object.GetName()) {
				continue
			}
			document, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "---\n%s", document)
		}
		released := text.String()
		for _, image := range images {
			name, _, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
			released = regexp.MustCompile(`quay\.io/opendatahub/`+name+`(:latest)?(\n)`).ReplaceAllString(released, image+"$2")
		}
		if err := os.WriteFile(filepath.Join(release, file), []byte(released), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := CompareRelease(release, version)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		t.Error(line)
	}
}

func TestPackageRefusesOtherImages(t *testing.T) {
	complete := references("quay.io/opendatahub")
	for name, c := range map[string]struct {
		references []string
		partial    bool
		want       string
	}{
		"no digest":        {[]string{"quay.io/opendatahub/mpijob-operator:v1"}, false, "is not NAME:TAG@sha256:DIGEST"},
		"an unknown image": {append(slices.Clone(complete), strings.Replace(complete[0], "/mpi", "/other", 1)), false, "has no value for the image"},
		"a missing image":  {complete[1:], false, "the release has no image mpi-sample-"},
		"no operator":      {complete[:1], true, "the release has no image mpijob-agent, mpijob-dashboard, mpijob-operator"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Package(folder, version, c.references, c.partial, time.Unix(0, 0), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Package = %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestPackageKeepsComments(t *testing.T) {
	chart, err := Load(pack(t, references("quay.io/opendatahub")))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range chart.Raw {
		if file.Name == "values.yaml" && !bytes.Contains(file.Data, []byte("# Empty: the version of the chart.\n  tag: \"v0.2.0-rc.1\"\n")) {
			t.Errorf("values.yaml lost its comments:\n%.900s", file.Data)
		}
	}
	if _, err := Render(chart, manifests.Namespace, nil, current); err != nil {
		t.Error(err)
	}
}
