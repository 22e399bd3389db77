package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/hack/install/manifests"
)

// valuesOf are the values of the images of a release, by the names of the images.
var valuesOf = map[string][]string{
	"mpijob-operator":      {"image"},
	"mpijob-agent":         {"agent", "image"},
	"mpijob-dashboard":     {"dashboard", "image"},
	"mpi-sample-openmpi":   {"runtimes", "images", "openmpi"},
	"mpi-sample-openmpi5":  {"runtimes", "images", "openmpi5"},
	"mpi-sample-mpich":     {"runtimes", "images", "mpich"},
	"mpi-sample-pytorch":   {"runtimes", "images", "horovod"},
	"mpi-sample-deepspeed": {"runtimes", "images", "deepspeed"},
}

var reference = regexp.MustCompile(`^(?:([^/]*[.:][^/]*)/)?([^:@]+):([^:@/]+)@(sha256:[0-9a-f]{64})$`)

// Package writes the chart as a package of a release into a folder, and returns its path. Version is that of the release, such
// as v0.2.0; references are all images of the release, NAME:TAG@DIGEST, which become the defaults of the values. The package
// depends on nothing else than these arguments and the chart. A partial release may lack images of runtimes: then the chart does not
// install these runtimes.
func Package(source, version string, references []string, partial bool, modified time.Time, folder string) (string, error) {
	chart, err := Load(source)
	if err != nil {
		return "", err
	}
	chart.Metadata.Version, chart.Metadata.AppVersion = strings.TrimPrefix(version, "v"), version
	if err := pinImages(chart, references, partial); err != nil {
		return "", err
	}
	chart.ModTime, chart.SchemaModTime = modified, modified
	for _, file := range slices.Concat(chart.Raw, chart.Templates, chart.Files) {
		file.ModTime = modified
	}
	path, err := util.Save(chart, folder)
	if err != nil {
		return "", fmt.Errorf("write the package: %w", err)
	}
	return path, nil
}

// pinImages makes references the default values of the images. It fails if the release has other images than the values, or, of a
// partial one, fewer than those that are not of runtimes.
func pinImages(chart *chartv2.Chart, references []string, partial bool) error {
	missing := maps.Clone(valuesOf)
	for _, text := range references {
		parts := reference.FindStringSubmatch(text)
		if parts == nil {
			return fmt.Errorf("the image %q is not NAME:TAG@sha256:DIGEST", text)
		}
		name := parts[2][strings.LastIndex(parts[2], "/")+1:]
		path := valuesOf[name]
		if path == nil {
			return fmt.Errorf("the chart has no value for the image %s; add it to valuesOf", text)
		}
		delete(missing, name)
		for i, field := range []string{"registry", "repository", "tag", "digest"} {
			if err := setValue(chart, append(slices.Clone(path), field), parts[i+1]); err != nil {
				return err
			}
		}
	}
	if partial {
		if err := dropRuntimes(chart, missing); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the release has no image %s", strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return nil
}

// dropRuntimes removes runtimes whose images are missing from the default ones, and these images from missing.
func dropRuntimes(chart *chartv2.Chart, missing map[string][]string) error {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(valuesOf)) {
		path := valuesOf[name]
		if path[0] != "runtimes" {
			continue
		}
		if _, is := missing[name]; !is {
			names = append(names, path[len(path)-1])
		}
		delete(missing, name)
	}
	return setValue(chart, []string{"runtimes", "names"}, names)
}

// setValue replaces a text or a list in values.yaml, which keeps its comments.
func setValue(chart *chartv2.Chart, path []string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write the value %v: %w", value, err)
	}
	for _, file := range chart.Raw {
		if file.Name != "values.yaml" {
			continue
		}
		lines := bytes.Split(file.Data, []byte("\n"))
		depth := 0
		for i, line := range lines {
			key := strings.Repeat("  ", depth) + path[depth] + ":"
			if !bytes.HasPrefix(line, []byte(key)) {
				continue
			}
			if depth++; depth == len(path) {
				lines[i] = fmt.Appendf(nil, "%s %s", key, text)
				file.Data = bytes.Join(lines, []byte("\n"))
				return yaml.Unmarshal(file.Data, &chart.Values)
			}
		}
	}
	return fmt.Errorf("values.yaml has no value %s", strings.Join(path, "."))
}

// CompareRelease compares the package of a release with the manifests in the same folder, and describes each difference.
func CompareRelease(folder, version string) ([]string, error) {
	chart, err := Load(filepath.Join(folder, "mpijob-operator-"+strings.TrimPrefix(version, "v")+".tgz"))
	if err != nil {
		return nil, err
	}
	read := func(name string) ([]*unstructured.Unstructured, error) {
		text, err := os.ReadFile(filepath.Join(folder, name)) //nolint:gosec // the release's own files
		if err != nil {
			return nil, err
		}
		return manifests.Parse(text)
	}
	install, err := read("install.yaml")
	if err != nil {
		return nil, err
	}
	var lines []string
	for name, values := range map[string]string{
		"":                                      "{}",
		"dashboard.yaml":                        "{platform: kubernetes, dashboard: {enabled: true}}",
		"dashboard-openshift.yaml":              "{platform: openshift, dashboard: {enabled: true}}",
		"dashboard-openshift-token.yaml":        "{platform: openshift, dashboard: {enabled: true, openshift: {auth: token}}}",
		"runtimes-kubernetes.yaml":              "{platform: kubernetes, runtimes: {enabled: true}}",
		"runtimes-openshift.yaml":               "{platform: openshift, runtimes: {enabled: true}}",
		"runtimes-kubernetes-image-volume.yaml": "{platform: kubernetes, runtimes: {enabled: true, agentDelivery: image-volume}}",
		"runtimes-openshift-image-volume.yaml":  "{platform: openshift, runtimes: {enabled: true, agentDelivery: image-volume}}",
	} {
		want := install
		if name != "" {
			more, err := read(name)
			if err != nil {
				return nil, err
			}
			want = slices.Concat(install, more)
		}
		var set map[string]any
		if err := yaml.Unmarshal([]byte(values), &set); err != nil {
			return nil, err
		}
		rendered, err := Render(chart, manifests.Namespace, set, Cluster{Version: "v1.37.0"})
		if err != nil {
			return nil, fmt.Errorf("render with %s: %w", values, err)
		}
		differences, err := Compare(rendered.Objects, want, version)
		if err != nil {
			return nil, err
		}
		for _, line := range differences {
			lines = append(lines, strings.TrimSpace("install.yaml "+name)+": "+line)
		}
	}
	slices.Sort(lines)
	return lines, nil
}
