package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// kubernetesVersions are the versions of Kubernetes that a cluster can have,
// the newest first. Each but the newest is pinned in build/kubernetes-vMINOR.
var kubernetesVersions = []string{KubernetesVersion, "v1.33.13", "v1.31.14", "v1.29.15"}

// Newest is the name of the newest version.
func Newest() string { return KubernetesName(KubernetesVersion) }

// KubernetesNames are the names of all versions, the newest first.
func KubernetesNames() []string {
	names := make([]string, 0, len(kubernetesVersions))
	for _, version := range kubernetesVersions {
		names = append(names, KubernetesName(version))
	}
	return names
}

// KubernetesName is the name of a version such as v1.29.15: 1.29.
func KubernetesName(version string) string {
	return strings.TrimPrefix(version[:strings.LastIndex(version, ".")], "v")
}

// Kubernetes returns the version with a name such as 1.29.
func Kubernetes(name string) (string, error) {
	for _, version := range kubernetesVersions {
		if KubernetesName(version) == name {
			return version, nil
		}
	}
	return "", fmt.Errorf("%q is not a version that is built here; use one of %s", name, strings.Join(KubernetesNames(), ", "))
}

// Minor returns the 29 of v1.29.15, or 0 if version has another form.
func Minor(version string) int {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return 0
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return minor
}
