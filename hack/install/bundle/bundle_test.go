package bundle

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	opmanifests "github.com/operator-framework/api/pkg/manifests"
	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/hack/install/manifests"
)

const root = "../../.."

var release = Release{
	Version: "v0.2.0", Created: time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC),
	Operator: "quay.io/opendatahub/mpijob-operator:v0.2.0@sha256:" + strings.Repeat("1", 64),
	Agent:    "quay.io/opendatahub/mpijob-agent:v0.2.0@sha256:" + strings.Repeat("2", 64),
	Others:   []string{"registry.example.com:5000/odh/mpijob-dashboard:v0.2.0@sha256:" + strings.Repeat("3", 64), "quay.io/opendatahub/mpi-sample-openmpi:v0.2.0@sha256:" + strings.Repeat("4", 64)},
}

func load(t *testing.T) *opmanifests.Bundle {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "bundle")
	if err := Write(root, folder, release); err != nil {
		t.Fatal(err)
	}
	bundle, err := opmanifests.GetBundleFromDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// TestValidators asks the validators of the operator framework, but the one that pulls the images. Only expected warnings are
// allowed.
func TestValidators(t *testing.T) {
	bundle := load(t)
	objects := []any{bundle, bundle.CSV}
	for _, object := range bundle.Objects {
		objects = append(objects, object)
	}
	for _, crd := range bundle.V1CRDs {
		objects = append(objects, crd)
	}
	var warnings []string
	validators := validator.Validators{
		validation.PackageManifestValidator, validation.ClusterServiceVersionValidator, validation.CustomResourceDefinitionValidator, validation.BundleValidator,
		validation.OperatorHubV2Validator, validation.StandardCategoriesValidator, validation.StandardCapabilitiesValidator, validation.ObjectValidator,
		validation.OperatorGroupValidator, validation.CommunityOperatorValidator, validation.AlphaDeprecatedAPIsValidator, validation.GoodPracticesValidator,
	}
	for _, check := range validators {
		for _, result := range check.Validate(objects...) {
			for _, err := range result.Errors {
				t.Errorf("%s: %v", result.Name, err)
			}
			for _, warning := range result.Warnings {
				warnings = append(warnings, warning.Detail)
			}
		}
	}
	slices.Sort(warnings)
	for _, warning := range slices.Compact(warnings) {
		if !slices.ContainsFunc(expectedWarnings, func(text string) bool { return strings.Contains(warning, text) }) {
			t.Errorf("unexpected warning: %s", warning)
		}
	}
	if bundle.Package != Package || !slices.Equal(bundle.Channels, []string{Channel}) || bundle.DefaultChannel != Channel {
		t.Errorf("the bundle is of package %q and channels %q, default %q", bundle.Package, bundle.Channels, bundle.DefaultChannel)
	}
}

var expectedWarnings = []string{
	"csv.Spec.Icon not specified",
	"provided API should have an example annotation", // of JobReport, which no user creates
}

// TestBundleEqualsManifests proves that bundle and admission file together have every object of config/default, unchanged, and besides only
// the policy for OLM.
func TestBundleEqualsManifests(t *testing.T) {
	files, err := Files(root, release)
	if err != nil {
		t.Fatal(err)
	}
	var csv operators.ClusterServiceVersion
	var got []*unstructured.Unstructured
	for path, text := range files {
		switch {
		case path == csvFile:
			if err := yaml.Unmarshal(text, &csv); err != nil {
				t.Fatal(err)
			}
		case path != "metadata/annotations.yaml" && path != AdmissionFileWithoutPolicies:
			objects, err := manifests.Parse(text)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			got = append(got, objects...)
		}
	}
	want, err := manifests.Build(root + "/config/default")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, readFile(t, reportsFile)...)
	// What OLM makes of the ClusterServiceVersion.
	strategy := csv.Spec.InstallStrategy.StrategySpec
	if len(strategy.Permissions) > 0 {
		t.Error("the ClusterServiceVersion has permissions in the operator's namespace, which OLM grants in all namespaces")
	}
	for _, o := range want {
		manifests.SetVersion(o, release.Version)
		var made map[string]any
		switch key := manifests.Key(o); key {
		case "Deployment.apps mpijob-system/mpijob-operator":
			spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&strategy.DeploymentSpecs[0].Spec)
			if err != nil {
				t.Fatal(err)
			}
			made = map[string]any{"spec": spec}
			text, _ := yaml.Marshal(o.Object["spec"])
			replaced := strings.NewReplacer("quay.io/opendatahub/mpijob-operator:latest", release.Operator, "quay.io/opendatahub/mpijob-agent:latest", release.Agent).Replace(string(text))
			var wanted map[string]any
			if err := yaml.Unmarshal([]byte(replaced), &wanted); err != nil {
				t.Fatal(err)
			}
			o.Object["spec"] = wanted
			made["metadata"] = map[string]any{"name": strategy.DeploymentSpecs[0].Name, "labels": anyMap(strategy.DeploymentSpecs[0].Label)}
		case "ClusterRole.rbac.authorization.k8s.io mpijob-operator":
			made = rules(t, strategy.ClusterPermissions)
		case "ServiceAccount mpijob-system/mpijob-operator", "Namespace mpijob-system", "ClusterRoleBinding.rbac.authorization.k8s.io mpijob-operator":
			made = o.DeepCopy().Object
		default:
			continue
		}
		object := &unstructured.Unstructured{Object: made}
		object.SetAPIVersion(o.GetAPIVersion())
		object.SetKind(o.GetKind())
		object.SetName(o.GetName())
		got = append(got, object)
	}
	lines, err := manifests.Differences(plain(t, got), plain(t, want))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		t.Error(line)
	}
}

// TestAdmissionWithoutPolicies proves that the file for Kubernetes 1.29 has the same objects as AdmissionFile except for the policies, which
// config/without-policies leaves out, too.
func TestAdmissionWithoutPolicies(t *testing.T) {
	files, err := Files(root, release)
	if err != nil {
		t.Fatal(err)
	}
	parse := func(file string) []*unstructured.Unstructured {
		objects, err := manifests.Parse(files[file])
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		return objects
	}
	want := slices.DeleteFunc(parse(AdmissionFile), manifests.IsPolicy)
	if lines, err := manifests.Differences(parse(AdmissionFileWithoutPolicies), want); err != nil || len(lines) > 0 || len(want) != 3 {
		t.Errorf("the file has %d objects, want 3, with the differences %q and the error %v", len(want), lines, err)
	}
	without, err := manifests.Build(root + "/config/without-policies")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range without {
		if manifests.IsPolicy(o) {
			t.Errorf("config/without-policies has %s", manifests.Key(o))
		}
	}
	if header := "kubectl apply --server-side -f " + AdmissionFileWithoutPolicies + "\n"; !strings.Contains(string(files[AdmissionFileWithoutPolicies]), header) {
		t.Errorf("the file does not begin with its command, %q", header)
	}
	folder := filepath.Join(t.TempDir(), "bundle")
	if err := Write(root, folder, release); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{AdmissionFile, AdmissionFileWithoutPolicies} {
		if text, err := os.ReadFile(filepath.Join(folder, "..", name)); err != nil || string(text) != string(files[name]) {
			t.Errorf("%s is not next to the bundle: %v", name, err)
		}
	}
}

// readFile returns the objects of a file of the repository.
func readFile(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return objects
}

// plain returns objects as they are in files, without namespaces and fields without a value.
func plain(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, o := range objects {
		o.SetNamespace("")
		prune(o.Object)
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := manifests.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parsed...)
	}
	return all
}

// prune removes fields without a value, which Go types add.
func prune(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, element := range value {
			prune(element)
			if m, is := element.(map[string]any); element == nil || is && len(m) == 0 {
				delete(value, key)
			}
		}
	case []any:
		for _, element := range value {
			prune(element)
		}
	}
}

func rules(t *testing.T, permissions []operators.StrategyDeploymentPermissions) map[string]any {
	t.Helper()
	if len(permissions) != 1 || permissions[0].ServiceAccountName != "mpijob-operator" {
		t.Fatalf("the permissions are %v, want those of the account mpijob-operator", permissions)
	}
	made, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&permissions[0])
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"rules": made["rules"]}
}

func anyMap(m map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range m {
		all[key] = value
	}
	return all
}

// supported are the kinds that every OLM installs from a bundle, those of OpenShift 4.16 included (operator-registry,
// pkg/lib/bundle/supported_resources.go before PodMonitors, ConsolePlugins and NetworkPolicies were added).
var supported = []string{
	"ClusterServiceVersion", "CustomResourceDefinition", "Secret", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "ServiceAccount", "Service", "Role", "RoleBinding",
	"PrometheusRule", "ServiceMonitor", "PodDisruptionBudget", "PriorityClass",
}

func TestBundleHasSupportedKindsOnly(t *testing.T) {
	for _, object := range load(t).Objects {
		if !slices.Contains(supported, object.GetKind()) {
			t.Errorf("OLM does not install the %s %s", object.GetKind(), object.GetName())
		}
		if object.GetNamespace() != "" {
			t.Errorf("%s has a namespace, which OLM decides", manifests.Key(object))
		}
	}
}

// TestRelatedImages: tools that mirror a catalog copy all images of a release.
func TestRelatedImages(t *testing.T) {
	images := map[string]string{}
	for _, image := range load(t).CSV.Spec.RelatedImages {
		images[image.Name] = image.Image
	}
	want := map[string]string{"operator": release.Operator, "agent": release.Agent, "dashboard": release.Others[0], "mpi-sample-openmpi": release.Others[1]}
	if !maps.Equal(images, want) {
		t.Errorf("the related images are %v, want %v", images, want)
	}
}

// TestUpgradePath: a version takes the place of all earlier ones, and a release that of its candidates.
func TestUpgradePath(t *testing.T) {
	replaces, err := semver.ParseRange(load(t).CSV.Annotations["olm.skipRange"])
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]bool{"0.1.0": true, "0.2.0-rc.1": true, "0.2.0": false, "0.2.1": false} {
		if got := replaces(semver.MustParse(version)); got != want {
			t.Errorf("%s takes the place of %s: %v, want %v", release.Version, version, got, want)
		}
	}
}

// TestOpenShiftAnnotations: OperatorHub of OpenShift filters by the features of operators, and catalogs by versions of OpenShift: 4.16 is
// the first with the bundle's lowest version of Kubernetes.
func TestOpenShiftAnnotations(t *testing.T) {
	files, err := Files(root, release)
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct{ Annotations map[string]string }
	if err := yaml.Unmarshal(files["metadata/annotations.yaml"], &metadata); err != nil {
		t.Fatal(err)
	}
	csv := load(t).CSV
	if got := metadata.Annotations["com.redhat.openshift.versions"]; got != "v4.16" || csv.Spec.MinKubeVersion != "1.29.0" {
		t.Errorf("the bundle is for OpenShift %q and Kubernetes %q", got, csv.Spec.MinKubeVersion)
	}
	for _, feature := range []string{"disconnected", "fips-compliant", "proxy-aware", "tls-profiles", "token-auth-aws", "token-auth-azure", "token-auth-gcp", "cnf", "cni", "csi"} {
		if value := csv.Annotations["features.operators.openshift.io/"+feature]; value != "true" && value != "false" {
			t.Errorf("the feature %s is %q, want true or false", feature, value)
		}
	}
}

func TestFilesRefusesVersions(t *testing.T) {
	for _, version := range []string{"", "v1", "latest"} {
		if _, err := Files(root, Release{Version: version}); err == nil {
			t.Errorf("Files with version %q returns no error", version)
		}
	}
}
