package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	shipped "opendatahub.io/mpijob/config/runtimes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/version"
)

// ShippedPrefix begins the reference of a runtime that the project ships, such as shipped/mpi-openmpi.
const ShippedPrefix = "shipped/"

// ShippedRuntimes returns the MPI runtimes that the project ships, in the order of their names. A cluster need not have them: they are
// what CreateRuntime can start from. They name the images of this version.
func ShippedRuntimes() ([]Runtime, error) { return shippedRuntimes(version.Get().Version) }

func shippedRuntimes(release string) ([]Runtime, error) {
	var all []Runtime
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(withRelease(shipped.Shipped, release)), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the shipped runtimes: %w", err)
		}
		one := describeRuntime(object)
		one.Shipped = true
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Runtime) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

var (
	// isRelease matches the versions whose images are published.
	isRelease = regexp.MustCompile(`^v\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.?\d+)?$`)
	// ownImage matches the images of the project, as hack/release.sh does.
	ownImage = regexp.MustCompile(`(quay\.io/opendatahub/(?:mpijob-agent|mpi-sample-[a-z0-9]+)):latest`)
)

// withRelease returns manifests with the images of a release; those of other versions are not published.
func withRelease(manifests []byte, release string) []byte {
	if !isRelease.MatchString(release) {
		return manifests
	}
	return ownImage.ReplaceAll(manifests, []byte("${1}:"+release))
}

// ShippedFor returns the shipped runtime of an MPI implementation.
func ShippedFor(implementation mpi.Implementation) (Runtime, error) {
	return findShipped("mpi-" + strings.ToLower(string(implementation)))
}

// findShipped returns the shipped runtime of a name, or NotFoundError.
func findShipped(name string) (Runtime, error) {
	all, err := ShippedRuntimes()
	if err != nil {
		return Runtime{}, err
	}
	missing := &NotFoundError{What: "shipped runtime", Name: name}
	for _, one := range all {
		if one.Name == name {
			return one, nil
		}
		missing.Names = append(missing.Names, one.Name)
	}
	missing.Similar = phrase.Similar(name, missing.Names)
	return Runtime{}, missing
}

// lacksImage reports whether nobody publishes the image of a shipped runtime: that of Intel MPI must not be redistributed.
func (r Runtime) lacksImage() bool { return r.Shipped && r.Implementation == string(mpi.IntelMPI) }

// PublishedImage returns the image of the workers; empty if the runtime is shipped and nobody publishes its image.
func (r Runtime) PublishedImage() string {
	if r.lacksImage() {
		return ""
	}
	return r.Image
}

// openShiftUsers is a kind that only clusters have that pick a user for pods.
var openShiftUsers = schema.GroupKind{Group: "security.openshift.io", Kind: "SecurityContextConstraints"}

// defaultUser is the user of shipped runtimes on other clusters, as in config/runtimes/kubernetes.
const defaultUser = 1000

// RuntimeUser returns the user as which pods of a new runtime are to run; nil on OpenShift, which picks one.
func (c *Client) RuntimeUser() (*int64, error) {
	_, err := c.api.RESTMapper().RESTMapping(openShiftUsers)
	switch {
	case err == nil:
		return nil, nil
	case meta.IsNoMatchError(err):
		return new(int64(defaultUser)), nil
	}
	return nil, fmt.Errorf("find out whether the cluster picks users for pods: %w", err)
}
