package chart

import (
	"fmt"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/hack/install/manifests"
)

// Cluster is what a chart is rendered for.
type Cluster struct {
	// Version is that of Kubernetes, such as v1.37.0.
	Version string
	// APIs are the groups, versions and kinds that the API server reports, such as "v1/Pod"; empty without an API server.
	APIs []string
}

// Rendered is what Helm renders a chart to.
type Rendered struct {
	Objects, Hooks []*unstructured.Unstructured
	Notes          string
}

// Load reads a chart from a folder or a package.
func Load(source string) (*chartv2.Chart, error) {
	loaded, err := loader.Load(source)
	if err != nil {
		return nil, fmt.Errorf("read the chart %s: %w", source, err)
	}
	v2, is := loaded.(*chartv2.Chart)
	if !is {
		return nil, fmt.Errorf("the chart %s does not have the API version v2", source)
	}
	return v2, nil
}

// Render renders a chart as `helm install` does, after it has checked the values by their schema.
func Render(source *chartv2.Chart, namespace string, values map[string]any, cluster Cluster) (Rendered, error) {
	version, err := common.ParseKubeVersion(cluster.Version)
	if err != nil {
		return Rendered{}, fmt.Errorf("the version of Kubernetes %q: %w", cluster.Version, err)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	capabilities.APIVersions = append(append(common.VersionSet{}, capabilities.APIVersions...), cluster.APIs...)
	options := common.ReleaseOptions{Name: source.Name(), Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(source, values, options, capabilities)
	if err != nil {
		return Rendered{}, err
	}
	files, err := engine.Engine{}.Render(source, all) //nolint:staticcheck // without an API server, there is nothing to cancel
	if err != nil {
		return Rendered{}, err
	}
	var rendered Rendered
	for name, text := range files {
		if path.Base(name) == "NOTES.txt" {
			rendered.Notes = text
			delete(files, name)
		}
	}
	hooks, sorted, err := releaseutil.SortManifests(files, capabilities.APIVersions, releaseutil.InstallOrder)
	if err != nil {
		return Rendered{}, err
	}
	var objects, ofHooks []string
	for _, manifest := range sorted {
		objects = append(objects, manifest.Content)
	}
	for _, hook := range hooks {
		ofHooks = append(ofHooks, hook.Manifest)
	}
	if rendered.Objects, err = manifests.Parse([]byte(strings.Join(objects, "\n---\n"))); err != nil {
		return Rendered{}, err
	}
	rendered.Hooks, err = manifests.Parse([]byte(strings.Join(ofHooks, "\n---\n")))
	return rendered, err
}
