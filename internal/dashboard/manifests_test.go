package dashboard_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// consoleLink is console.openshift.io/v1 ConsoleLink, as far as an application menu needs it.
type consoleLink struct {
	Spec struct {
		Text            string `json:"text"`
		Href            string `json:"href"`
		Location        string `json:"location"`
		ApplicationMenu struct {
			Section  string `json:"section"`
			ImageURL string `json:"imageURL"`
		} `json:"applicationMenu"`
	} `json:"spec"`
}

// route is route.openshift.io/v1 Route, as far as the dashboard sets it.
type route struct {
	Spec struct {
		To struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"to"`
		Port struct {
			TargetPort string `json:"targetPort"`
		} `json:"port"`
		TLS struct {
			Termination                   string `json:"termination"`
			InsecureEdgeTerminationPolicy string `json:"insecureEdgeTerminationPolicy"`
		} `json:"tls"`
	} `json:"spec"`
}

// build returns the objects of a folder of config/dashboard.
func build(t *testing.T, folder string) map[string]unstructured.Unstructured {
	t.Helper()
	needsServer(t)
	data, err := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "kustomize", "../../config/dashboard/"+folder).Output()
	must(t, err)
	return parse(t, data)
}

// parse returns the objects of YAML documents by their kinds and names.
func parse(t *testing.T, data []byte) map[string]unstructured.Unstructured {
	t.Helper()
	objects := map[string]unstructured.Unstructured{}
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects[object.GetKind()+"/"+object.GetName()] = object
	}
}

// served follows a Service to the container of a Deployment, which must serve with TLS, and returns the pod and the container.
func served(t *testing.T, objects map[string]unstructured.Unstructured, name string) (corev1.PodSpec, corev1.Container) {
	t.Helper()
	service := typed[corev1.Service](t, objects["Service/"+name])
	pod := typed[appsv1.Deployment](t, objects["Deployment/"+name]).Spec.Template
	policy := typed[networkingv1.NetworkPolicy](t, objects["NetworkPolicy/"+name]).Spec
	for what, selector := range map[string]map[string]string{"Service": service.Spec.Selector, "NetworkPolicy": policy.PodSelector.MatchLabels} {
		for label, value := range selector {
			if pod.Labels[label] != value {
				t.Errorf("the %s selects %s=%s, the pod has %q", what, label, value, pod.Labels[label])
			}
		}
	}
	if len(service.Spec.Ports) != 1 || len(pod.Spec.Containers) != 1 || len(pod.Spec.Containers[0].Ports) != 1 {
		t.Fatalf("%s has the ports %+v, and its pod %+v", name, service.Spec.Ports, pod.Spec.Containers)
	}
	container := pod.Spec.Containers[0]
	if port := container.Ports[0].Name; port != "https" || service.Spec.Ports[0].TargetPort.StrVal != port || container.ReadinessProbe.HTTPGet.Scheme != corev1.URISchemeHTTPS || container.ReadinessProbe.HTTPGet.Port.StrVal != port {
		t.Errorf("%s does not serve with TLS alone: %+v", name, container)
	}
	if len(policy.Ingress) != 1 || len(policy.Ingress[0].From) == 0 || len(policy.Ingress[0].Ports) != 1 || policy.Ingress[0].Ports[0].Port.StrVal != "https" {
		t.Errorf("everyone reaches %s: %+v", name, policy)
	}
	for _, argument := range []string{"--tls-cert=/etc/tls/private/tls.crt", "--tls-key=/etc/tls/private/tls.key"} {
		if !slices.Contains(container.Args, argument) {
			t.Errorf("%s has no %s: %v", name, argument, container.Args)
		}
	}
	return pod.Spec, container
}

// secretOf returns the Secret that a pod mounts as tls.
func secretOf(pod corev1.PodSpec) corev1.SecretVolumeSource {
	for _, volume := range pod.Volumes {
		if volume.Name == "tls" && volume.Secret != nil {
			return *volume.Secret
		}
	}
	return corev1.SecretVolumeSource{}
}

// TestBaseManifests builds config/dashboard/base: it serves with TLS without any preparation.
func TestBaseManifests(t *testing.T) {
	pod, dashboard := served(t, build(t, "base"), "mpijob-dashboard")
	if secret := secretOf(pod); secret.Optional == nil || !*secret.Optional || !slices.Contains(dashboard.Args, "--tls-self-signed") {
		t.Errorf("without the Secret %+v, the dashboard must make a certificate: %v", secret, dashboard.Args)
	}
	if slices.Contains(dashboard.Args, "--trust-proxy") {
		t.Error("there is no proxy to trust")
	}
	if len(dashboard.Env) != 1 || dashboard.Env[0].Name != "GOMEMLIMIT" {
		t.Errorf("the garbage collector has no limit: %+v", dashboard.Env)
	}
}

// TestOpenShiftManifests builds config/dashboard/openshift and follows a request from the console's menu to the dashboard.
func TestOpenShiftManifests(t *testing.T) {
	objects := build(t, "openshift")
	want := []string{
		"ClusterRole/mpijob-dashboard", "ClusterRoleBinding/mpijob-dashboard", "Deployment/mpijob-dashboard", "Deployment/mpijob-dashboard-proxy",
		"NetworkPolicy/mpijob-dashboard", "NetworkPolicy/mpijob-dashboard-proxy", "Route/mpijob-dashboard", "Service/mpijob-dashboard", "Service/mpijob-dashboard-proxy",
		"ServiceAccount/mpijob-dashboard", "ServiceAccount/mpijob-dashboard-proxy",
	}
	got := slices.Sorted(maps.Keys(objects))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("objects (-want +got):\n%s", diff)
	}

	for name, object := range objects {
		if cluster := strings.HasPrefix(name, "Cluster"); !cluster && object.GetNamespace() != "mpijob-system" {
			t.Errorf("%s is in the namespace %q", name, object.GetNamespace())
		}
	}

	// From the Route to the proxy, and from there to the dashboard.
	way := strict[route](t, map[string]any{"spec": objects["Route/mpijob-dashboard"].Object["spec"]}).Spec
	if way.To.Kind != "Service" || way.To.Name != "mpijob-dashboard-proxy" || way.Port.TargetPort != "https" || way.TLS.Termination != "reencrypt" || way.TLS.InsecureEdgeTerminationPolicy != "Redirect" {
		t.Errorf("the Route must lead to the proxy by TLS: %+v", way)
	}
	pod, dashboard := served(t, objects, "mpijob-dashboard")
	proxyPod, proxy := served(t, objects, "mpijob-dashboard-proxy")
	for name, secret := range map[string]corev1.SecretVolumeSource{"mpijob-dashboard": secretOf(pod), "mpijob-dashboard-proxy": secretOf(proxyPod)} {
		service := objects["Service/"+name]
		if made := service.GetAnnotations()["service.beta.openshift.io/serving-cert-secret-name"]; made == "" || made != secret.SecretName || secret.Optional != nil && *secret.Optional {
			t.Errorf("the certificate of %s is in the Secret %q, the pod mounts %+v", name, made, secret)
		}
	}
	from := typed[networkingv1.NetworkPolicy](t, objects["NetworkPolicy/mpijob-dashboard"]).Spec.Ingress[0].From
	labels := typed[appsv1.Deployment](t, objects["Deployment/mpijob-dashboard-proxy"]).Spec.Template.Labels
	if len(from) != 1 || from[0].NamespaceSelector != nil || from[0].PodSelector == nil || from[0].PodSelector.MatchLabels["app.kubernetes.io/name"] != labels["app.kubernetes.io/name"] {
		t.Errorf("more than the proxy reaches the dashboard: %+v", from)
	}
	if !slices.Contains(dashboard.Args, "--trust-proxy") || slices.Contains(dashboard.Args, "--tls-self-signed") {
		t.Errorf("the dashboard must trust the proxy, and use the certificate that the proxy verifies: %v", dashboard.Args)
	}
	for _, argument := range []string{"--upstream=https://mpijob-dashboard.mpijob-system.svc:8443", "--pass-access-token", "--client-id=mpijob-dashboard", "--scope=user:full"} {
		if !slices.Contains(proxy.Args, argument) {
			t.Errorf("the proxy has no %s: %v", argument, proxy.Args)
		}
	}
	if pod.ServiceAccountName == proxyPod.ServiceAccountName {
		t.Errorf("dashboard and proxy share the account %s", pod.ServiceAccountName)
	}
}

// TestOpenShiftHost: config/dashboard/openshift/host.yaml, as docs/dashboard.md completes it, has no placeholder, and leads back to the proxy.
func TestOpenShiftHost(t *testing.T) {
	const host = "mpijob-dashboard-mpijob-system.apps.example.com"
	data, err := os.ReadFile("../../config/dashboard/openshift/host.yaml")
	must(t, err)
	objects := parse(t, []byte(strings.NewReplacer("HOST", host, "SECRET", "0123").Replace(string(data))))
	if got := slices.Sorted(maps.Keys(objects)); !slices.Equal(got, []string{"ConsoleLink/mpijob-dashboard", "OAuthClient/mpijob-dashboard"}) {
		t.Fatalf("the objects are %v", got)
	}
	link := objects["ConsoleLink/mpijob-dashboard"]
	menu := strict[consoleLink](t, map[string]any{"spec": link.Object["spec"]}).Spec
	if version := link.GetAPIVersion(); version != "console.openshift.io/v1" || menu.Text == "" || menu.Href != "https://"+host || menu.Location != "ApplicationMenu" || menu.ApplicationMenu.Section == "" {
		t.Errorf("the ConsoleLink %s needs a text, an https address, a location and the section of its menu: %+v", version, menu)
	}
	client := objects["OAuthClient/mpijob-dashboard"].Object
	if maxAge, _ := client["accessTokenMaxAgeSeconds"].(float64); client["secret"] != "0123" || client["grantMethod"] != "prompt" || maxAge == 0 || maxAge > 4*3600 {
		t.Errorf("the OAuthClient is %+v", client)
	}
	if uris, _ := client["redirectURIs"].([]any); len(uris) != 1 || uris[0] != "https://"+host+"/oauth/callback" {
		t.Errorf("the OAuthClient leads to %v", uris)
	}
}

// TestOpenShiftTokenManifests builds config/dashboard/openshift-token and follows a request from the Route to the dashboard, which has no
// proxy before it.
func TestOpenShiftTokenManifests(t *testing.T) {
	objects := build(t, "openshift-token")
	want := []string{
		"ClusterRole/mpijob-dashboard", "ClusterRoleBinding/mpijob-dashboard", "Deployment/mpijob-dashboard", "NetworkPolicy/mpijob-dashboard", "Route/mpijob-dashboard",
		"Service/mpijob-dashboard", "ServiceAccount/mpijob-dashboard",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(objects))); diff != "" {
		t.Fatalf("objects (-want +got):\n%s", diff)
	}
	way := strict[route](t, map[string]any{"spec": objects["Route/mpijob-dashboard"].Object["spec"]}).Spec
	if way.To.Name != "mpijob-dashboard" || way.Port.TargetPort != "https" || way.TLS.Termination != "reencrypt" {
		t.Errorf("the Route must lead to the dashboard by TLS: %+v", way)
	}
	pod, dashboard := served(t, objects, "mpijob-dashboard")
	service := objects["Service/mpijob-dashboard"]
	if made, secret := service.GetAnnotations()["service.beta.openshift.io/serving-cert-secret-name"], secretOf(pod); made == "" || made != secret.SecretName || secret.Optional != nil && *secret.Optional {
		t.Errorf("the certificate that the router verifies is in the Secret %q, the pod mounts %+v", made, secret)
	}
	if slices.Contains(dashboard.Args, "--trust-proxy") || slices.Contains(dashboard.Args, "--tls-self-signed") {
		t.Errorf("there is no proxy to trust, and the router verifies the certificate: %v", dashboard.Args)
	}
	from := typed[networkingv1.NetworkPolicy](t, objects["NetworkPolicy/mpijob-dashboard"]).Spec.Ingress[0].From
	for _, peer := range from {
		if peer.PodSelector != nil || peer.NamespaceSelector == nil || !strings.HasPrefix(slices.Collect(maps.Keys(peer.NamespaceSelector.MatchLabels))[0], "policy-group.network.openshift.io/") {
			t.Errorf("more than the router reaches the dashboard: %+v", peer)
		}
	}
}

// strict returns an object as a type that must have all its fields.
func strict[T any](t *testing.T, object map[string]any) T {
	t.Helper()
	data, err := json.Marshal(object)
	must(t, err)
	var value T
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&value))
	return value
}

// typed returns an object as its type of Kubernetes, which must have all its fields.
func typed[T any](t *testing.T, object unstructured.Unstructured) T {
	t.Helper()
	var value T
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &value, true))
	return value
}
