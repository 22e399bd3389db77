// Package bundle generates the bundle of the operator for the Operator Lifecycle Manager (OLM), in the format registry+v1, from
// the manifests in the folder config.
package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	operatorversion "github.com/operator-framework/api/pkg/lib/version"
	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/hack/install/manifests"
)

const (
	// Package is the name of the package in catalogs.
	Package = "mpijob-operator"
	// Channel is the only channel.
	Channel = "candidate"
	// AdmissionFile is what Files returns besides the bundle: webhooks and policies, which OLM cannot install, and the NetworkPolicy of the
	// operator's pods, with which OLM of OpenShift before 4.16.48, 4.17.39, 4.18.23 and 4.19.10 refuses a bundle.
	AdmissionFile = "olm-admission.yaml"
	// AdmissionFileWithoutPolicies is AdmissionFile for Kubernetes 1.29 (OpenShift 4.16), which refuses a file with policies.
	AdmissionFileWithoutPolicies = "olm-admission-without-policies.yaml"

	csvFile = "manifests/mpijob-operator.clusterserviceversion.yaml"
	// reportsFile has a policy that only installations by OLM need.
	reportsFile = "config/olm/reports.yaml"
)

// Release is what a bundle is made for.
type Release struct {
	// Version is that of the release, such as v0.2.0.
	Version string
	// Created is when it was made.
	Created time.Time
	// Operator and Agent are the references of the images, and Others those that an administrator can use besides: of the dashboard and of
	// the runtimes.
	Operator, Agent string
	Others          []string
}

const description = `The operator runs MPI jobs on OpenShift and Kubernetes: a launcher that calls mpirun, and workers that run the ranks. It serves the
API MPIJob of kubeflow.org/v2beta1, and adds MPI runtimes, reports and validation to the TrainJobs of Kubeflow Trainer.

OLM cannot install the operator's webhooks and policies. Apply the file olm-admission.yaml of the same release after the
installation and after each upgrade, on OpenShift 4.16 olm-admission-without-policies.yaml: without it, jobs are validated only
after their creation, the limits of namespaces are not enforced, RuntimeTests do not run, TrainJobs with MPI runtimes do not get the
operator's changes, and users with the role edit can write JobReports.

Install the operator in the namespace mpijob-system: its rights, webhooks and policies are for this namespace.`

// Files returns the files of the bundle, AdmissionFile and AdmissionFileWithoutPolicies, by their paths.
func Files(root string, release Release) (map[string][]byte, error) {
	objects, err := manifests.Build(filepath.Join(root, "config", "default"))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, reportsFile)) //nolint:gosec // part of the source tree
	if err != nil {
		return nil, err
	}
	reports, err := manifests.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", reportsFile, err)
	}
	parts := &parts{files: map[string][]byte{}, version: release.Version}
	for _, object := range append(objects, reports...) {
		if err := parts.add(object); err != nil {
			return nil, fmt.Errorf("%s: %w", manifests.Key(object), err)
		}
	}
	csv, err := parts.csv(root, release)
	if err != nil {
		return nil, err
	}
	if parts.files[csvFile], err = yaml.Marshal(csv); err != nil {
		return nil, err
	}
	parts.files["metadata/annotations.yaml"] = []byte(annotations)
	parts.files[AdmissionFile] = []byte(fmt.Sprintf(admissionHeader, "webhooks and policies", AdmissionFile) + parts.admission.String() + parts.policies.String())
	parts.files[AdmissionFileWithoutPolicies] = []byte(fmt.Sprintf(admissionHeader, "webhooks", AdmissionFileWithoutPolicies) + parts.admission.String())
	return parts.files, nil
}

const annotations = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: ` + Package + `
  operators.operatorframework.io.bundle.channels.v1: ` + Channel + `
  operators.operatorframework.io.bundle.channel.default.v1: ` + Channel + `
  com.redhat.openshift.versions: v4.16
`

// features are what OperatorHub of OpenShift shows of the operator. Proxies and mirrors have not been tested on OpenShift.
var features = map[string]string{
	"disconnected": "true", "proxy-aware": "true",
	// The programs have Go's FIPS 140-3 module, which is not that of RHEL.
	"fips-compliant": "false",
	// The versions of TLS are flags of the operator, and not the cluster's profile.
	"tls-profiles":   "false",
	"token-auth-aws": "false", "token-auth-azure": "false", "token-auth-gcp": "false", "cnf": "false", "cni": "false", "csi": "false",
}

// admissionHeader is for what the file contains and its name.
const admissionHeader = `# The %s of the operator, which OLM cannot install, and the NetworkPolicy of its pods, which not every OLM can:
# kubectl apply --server-side -f %s
`

// parts are the objects of config/default, sorted by how OLM installs them.
type parts struct {
	files   map[string][]byte
	version string
	// admission and policies are documents of YAML.
	admission, policies strings.Builder
	crds                []*unstructured.Unstructured
	deployment          appsv1.Deployment
	// cluster are the rules of the operator's account in all namespaces. Those in its own namespace are in a Role of the bundle: OLM would grant
	// them in all namespaces, too, if the ClusterServiceVersion had them, since the operator is installed for all namespaces.
	cluster []rbacv1.PolicyRule
}

func (p *parts) add(object *unstructured.Unstructured) error {
	ofOperator := object.GetName() == Package
	switch kind := object.GetKind(); {
	case kind == "Namespace", kind == "ServiceAccount", kind == "ClusterRoleBinding" && ofOperator:
		return nil // OLM creates these from the ClusterServiceVersion
	case strings.HasSuffix(kind, "WebhookConfiguration"), manifests.IsPolicy(object), kind == "NetworkPolicy":
		manifests.SetVersion(object, p.version)
		text, err := yaml.Marshal(object.Object)
		file := &p.admission
		if manifests.IsPolicy(object) {
			file = &p.policies
		}
		file.WriteString("---\n" + string(text))
		return err
	case kind == "Deployment":
		return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &p.deployment)
	case kind == "ClusterRole" && ofOperator:
		var role rbacv1.ClusterRole
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role)
		p.cluster = role.Rules
		return err
	case kind == "CustomResourceDefinition":
		p.crds = append(p.crds, object)
	}
	inBundle := object.DeepCopy()
	inBundle.SetNamespace("") // OLM sets it
	text, err := yaml.Marshal(inBundle.Object)
	p.files[fmt.Sprintf("manifests/%s_%s.yaml", object.GetName(), strings.ToLower(object.GetKind()))] = text
	return err
}

func (p *parts) csv(root string, release Release) (*unstructured.Unstructured, error) {
	number, err := semver.Parse(strings.TrimPrefix(release.Version, "v"))
	if err != nil {
		return nil, fmt.Errorf("the version %q: %w", release.Version, err)
	}
	examples, err := examples(root)
	if err != nil {
		return nil, err
	}
	container := &p.deployment.Spec.Template.Spec.Containers[0]
	container.Image = release.Operator
	for i := range container.Env {
		if container.Env[i].Name == "AGENT_IMAGE" {
			container.Env[i].Value = release.Agent
		}
	}
	p.deployment.Labels[manifests.LabelVersion] = release.Version
	csv := &operators.ClusterServiceVersion{Spec: operators.ClusterServiceVersionSpec{
		DisplayName: "MPIJobs for OpenShift AI", Description: description, Version: operatorversion.OperatorVersion{Version: number},
		Maturity: "alpha", MinKubeVersion: "1.29.0", Keywords: []string{"mpi", "mpijob", "kubeflow", "training", "hpc"},
		Provider:    operators.AppLink{Name: "Open Data Hub", URL: "https://opendatahub.io"},
		Maintainers: []operators.Maintainer{{Name: "Open Data Hub", Email: "opendatahub-community@googlegroups.com"}},
		Links:       []operators.AppLink{{Name: "Documentation", URL: "https://github.com/opendatahub-io/mpijob"}},
		InstallModes: []operators.InstallMode{
			{Type: operators.InstallModeTypeOwnNamespace},
			{Type: operators.InstallModeTypeSingleNamespace},
			{Type: operators.InstallModeTypeMultiNamespace},
			{Type: operators.InstallModeTypeAllNamespaces, Supported: true},
		},
		RelatedImages: release.related(),
		InstallStrategy: operators.NamedInstallStrategy{StrategyName: operators.InstallStrategyNameDeployment, StrategySpec: operators.StrategyDetailsDeployment{
			DeploymentSpecs:    []operators.StrategyDeploymentSpec{{Name: p.deployment.Name, Label: p.deployment.Labels, Spec: p.deployment.Spec}},
			ClusterPermissions: []operators.StrategyDeploymentPermissions{{ServiceAccountName: Package, Rules: p.cluster}},
		}},
	}}
	csv.APIVersion, csv.Kind, csv.Name = operators.SchemeGroupVersion.String(), operators.ClusterServiceVersionKind, Package+"."+release.Version
	csv.Labels = map[string]string{
		"operatorframework.io/os.linux": "supported", "operatorframework.io/arch.amd64": "supported", "operatorframework.io/arch.arm64": "supported",
	}
	csv.Annotations = map[string]string{
		"alm-examples": examples, "capabilities": "Basic Install", "categories": "AI/Machine Learning", "containerImage": release.Operator,
		"createdAt": release.Created.UTC().Format(time.RFC3339), "description": "Runs MPI jobs on OpenShift and Kubernetes",
		"repository": "https://github.com/opendatahub-io/mpijob", "support": "Open Data Hub",
		"olm.skipRange": "<" + number.String(), "operatorframework.io/suggested-namespace": manifests.Namespace,
		"operators.operatorframework.io/internal-objects": `["jobreports.mpi.opendatahub.io"]`,
		"operators.operatorframework.io/project_layout":   "unknown",
	}
	for name, is := range features {
		csv.Annotations["features.operators.openshift.io/"+name] = is
	}
	for _, crd := range p.crds {
		owned, err := describe(crd)
		if err != nil {
			return nil, err
		}
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, owned)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	return &unstructured.Unstructured{Object: fields}, nil
}

// related returns all images of the release, which tools that mirror catalogs copy.
func (r Release) related() []operators.RelatedImage {
	images := []operators.RelatedImage{{Name: "operator", Image: r.Operator}, {Name: "agent", Image: r.Agent}}
	for _, image := range r.Others {
		repository, _, _ := strings.Cut(image, "@")
		name, _, _ := strings.Cut(repository[strings.LastIndex(repository, "/")+1:], ":")
		images = append(images, operators.RelatedImage{Name: strings.TrimPrefix(name, "mpijob-"), Image: image})
	}
	return images
}

// texts describe the kinds in consoles.
var texts = map[string]string{
	"MPIJob":      "A job of a launcher and workers, whose ranks communicate with MPI.",
	"JobReport":   "What the operator found out about a job: its phase, problems with their causes, remedies, and usage.",
	"RuntimeTest": "A test of an MPI runtime of Kubeflow Trainer.",
}

func describe(crd *unstructured.Unstructured) (operators.CRDDescription, error) {
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if len(versions) != 1 || texts[kind] == "" {
		return operators.CRDDescription{}, fmt.Errorf("the CRD %s has %d versions, want 1, and the text %q, want one; describe the kind in texts", crd.GetName(), len(versions), texts[kind])
	}
	return operators.CRDDescription{Name: crd.GetName(), Version: versions[0].(map[string]any)["name"].(string), Kind: kind, DisplayName: kind, Description: texts[kind]}, nil
}

// examples returns sample objects as JSON, for consoles.
func examples(root string) (string, error) {
	var samples []any
	for _, file := range []string{"pi.yaml", "runtimetest.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "config", "samples", file)) //nolint:gosec // part of the source tree
		if err != nil {
			return "", err
		}
		objects, err := manifests.Parse(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		for _, object := range objects {
			samples = append(samples, object.Object)
		}
	}
	text, err := json.MarshalIndent(samples, "", "  ")
	return string(text), err
}

// Write writes the bundle into a folder, which must not exist, and the other files next to it.
func Write(root, folder string, release Release) error {
	files, err := Files(root, release)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, name)
		if name == AdmissionFile || name == AdmissionFileWithoutPolicies {
			path = filepath.Join(filepath.Dir(folder), name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil { //nolint:gosec // published
			return err
		}
	}
	return nil
}
