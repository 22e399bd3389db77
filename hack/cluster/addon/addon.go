// Package addon knows what can be installed on the cluster as it runs
// elsewhere too: upstream's controllers, from their own modules, with their
// own manifests and webhooks. An add-on is a file with an AddOn; All lists
// them.
package addon

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/cluster/binaries"
	"opendatahub.io/mpijob/hack/cluster/kubeapi"
)

// AddOn is something that "up --with" installs.
type AddOn struct {
	Name string
	// Versions are those that can be had, the default one first.
	Versions []Version
}

// Version is one version of an add-on.
type Version struct {
	Version string
	// OldestMinor is the minor version of Kubernetes from which on upstream
	// supports it.
	OldestMinor int
	// Controllers are installed together. Those that others need come first.
	Controllers []Controller
}

// Controller is one program of an add-on: what is built, and which of its
// module's manifests install it.
type Controller struct {
	binaries.Controller
	// Manifests is the module's folder of manifests, Overlay the
	// kustomization in it that installs the controller.
	Manifests, Overlay string
	// Without are lines of Overlay that are left out.
	Without []string
	// Namespace, Deployment and Container are the names that the manifests
	// give to what runs the program.
	Namespace, Deployment, Container string
	// Probe is an object to be made in vain (a dry run), to see whether the
	// webhooks answer. It must concern all kinds of them: one that changes
	// objects, and one that judges them.
	Probe kubeapi.Object
}

// DeploymentPath is the API path of the controller's Deployment.
func (c Controller) DeploymentPath() string {
	return fmt.Sprintf("/apis/apps/v1/namespaces/%s/deployments/%s", c.Namespace, c.Deployment)
}

// All are the add-ons.
func All() []AddOn { return []AddOn{trainer(), kueue()} }

// Newest are the programs of all add-ons in their default versions.
func Newest() []binaries.Controller {
	var all []binaries.Controller
	for _, addOn := range All() {
		for _, controller := range addOn.Versions[0].Controllers {
			all = append(all, controller.Controller)
		}
	}
	return all
}

// None is the flag value for no add-on.
const None = "none"

// Parse reads "name,name=version" into the version of each add-on. Without a
// version it is the default one.
func Parse(text string) (map[string]string, error) {
	wanted := map[string]string{}
	if text == None {
		return wanted, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		name, version, _ := strings.Cut(strings.TrimSpace(item), "=")
		found, err := Find(name, version)
		if err != nil {
			return nil, err
		}
		wanted[name] = found.Version
	}
	return wanted, nil
}

// newestFor returns the newest version of an add-on that a minor version of Kubernetes 1 suffices for; "" if there is none.
func newestFor(name string, minor int) string {
	for _, addOn := range All() {
		for _, version := range addOn.Versions {
			if addOn.Name == name && minor >= version.OldestMinor {
				return version.Version
			}
		}
	}
	return ""
}

// CheckKubernetes refuses add-ons, versions by name, that need a later minor
// version of Kubernetes 1.
func CheckKubernetes(wanted map[string]string, minor int) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		version, err := Find(name, wanted[name])
		if err == nil && minor < version.OldestMinor {
			wayOut := fmt.Sprintf("leave it out (--with %s, make WITH=%s)", None, None)
			if older := newestFor(name, minor); older != "" {
				wayOut = fmt.Sprintf("use %[1]s (--with %[1]s, make WITH=%[1]s)", name+"="+older)
			}
			err = fmt.Errorf("the add-on %s %s needs Kubernetes 1.%d or later, and this cluster has 1.%d: "+
				"%s, or use a new cluster of a later version (--kubernetes)",
				name, version.Version, version.OldestMinor, minor, wayOut)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Usage lists the add-ons as Parse reads them: "trainer[=v2.3.0|=v2.1.0]".
func Usage() string {
	var all []string
	for _, a := range All() {
		var versions []string
		for _, v := range a.Versions {
			versions = append(versions, "="+v.Version)
		}
		all = append(all, a.Name+"["+strings.Join(versions, "|")+"]")
	}
	return strings.Join(all, ",")
}

// Find returns a version of an add-on; the default one if version is empty.
func Find(name, version string) (Version, error) {
	all := All()
	at := slices.IndexFunc(all, func(a AddOn) bool { return a.Name == name })
	if at < 0 {
		names := []string{None}
		for _, a := range all {
			names = append(names, a.Name)
		}
		return Version{}, fmt.Errorf("there is no add-on %q: write one of %s", name, strings.Join(names, ", "))
	}
	if version == "" {
		return all[at].Versions[0], nil
	}
	var versions []string
	for _, v := range all[at].Versions {
		if v.Version == version {
			return v, nil
		}
		versions = append(versions, v.Version)
	}
	return Version{}, fmt.Errorf("there is no version %q of add-on %s: write one of %s", version, name, strings.Join(versions, ", "))
}
