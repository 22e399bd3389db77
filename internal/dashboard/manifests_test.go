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

// TestOpenShiftManifests builds config/dashboard/openshift and follows a request from the console's menu to the dashboard.
func TestOpenShiftManifests(t *testing.T) {
	needsServer(t)
	data, err := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "kustomize", "../../config/dashboard/openshift").Output()
	must(t, err)
	objects := map[string]unstructured.Unstructured{}
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		objects[object.GetKind()+"/"+object.GetName()] = object
	}
	want := []string{
		"ClusterRole/mpijob-dashboard", "ClusterRoleBinding/mpijob-dashboard", "ClusterRoleBinding/mpijob-dashboard-auth-delegator", "ConsoleLink/mpijob-dashboard",
		"Deployment/mpijob-dashboard", "Route/mpijob-dashboard", "Service/mpijob-dashboard", "ServiceAccount/mpijob-dashboard",
	}
	got := slices.Sorted(maps.Keys(objects))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("objects (-want +got):\n%s", diff)
	}

	link := objects["ConsoleLink/mpijob-dashboard"]
	if version, namespace := link.GetAPIVersion(), link.GetNamespace(); version != "console.openshift.io/v1" || namespace != "" {
		t.Errorf("the ConsoleLink has the API version %q and the namespace %q", version, namespace)
	}
	menu := strict[consoleLink](t, map[string]any{"spec": link.Object["spec"]}).Spec
	if menu.Text == "" || !strings.HasPrefix(menu.Href, "https://mpijob-dashboard-mpijob-system.") || menu.Location != "ApplicationMenu" || menu.ApplicationMenu.Section == "" {
		t.Errorf("the ConsoleLink needs a text, an https address, a location and the section of its menu: %+v", menu)
	}

	for _, name := range []string{"Deployment/mpijob-dashboard", "Route/mpijob-dashboard", "Service/mpijob-dashboard", "ServiceAccount/mpijob-dashboard"} {
		object := objects[name]
		if namespace := object.GetNamespace(); namespace != "mpijob-system" {
			t.Errorf("%s is in the namespace %q", name, namespace)
		}
	}
	way := strict[route](t, map[string]any{"spec": objects["Route/mpijob-dashboard"].Object["spec"]}).Spec
	service := typed[corev1.Service](t, objects["Service/mpijob-dashboard"])
	pod := typed[appsv1.Deployment](t, objects["Deployment/mpijob-dashboard"]).Spec.Template
	if way.To.Kind != "Service" || way.To.Name != service.Name || way.TLS.Termination != "reencrypt" || way.TLS.InsecureEdgeTerminationPolicy != "Redirect" {
		t.Errorf("the Route must lead to the Service by TLS: %+v", way)
	}
	// The proxy is all that can be reached from outside of the pod.
	if len(service.Spec.Ports) != 1 || way.Port.TargetPort != service.Spec.Ports[0].Name {
		t.Fatalf("the Route leads to the port %q, the Service has %+v", way.Port.TargetPort, service.Spec.Ports)
	}
	for name, value := range service.Spec.Selector {
		if pod.Labels[name] != value {
			t.Errorf("the Service selects %s=%s, the pod has %q", name, value, pod.Labels[name])
		}
	}
	containers := map[string]corev1.Container{}
	for _, container := range pod.Spec.Containers {
		containers[container.Name] = container
	}
	dashboard, proxy := containers["dashboard"], containers["proxy"]
	if len(dashboard.Ports) != 0 || !slices.Contains(dashboard.Args, "--listen=127.0.0.1:8080") || !slices.Contains(dashboard.Args, "--trust-proxy") {
		t.Errorf("the dashboard must only listen for the proxy: %v, %v", dashboard.Args, dashboard.Ports)
	}
	if len(proxy.Ports) != 1 || proxy.Ports[0].Name != service.Spec.Ports[0].TargetPort.StrVal {
		t.Errorf("the Service leads to %v, the proxy has %v", service.Spec.Ports[0].TargetPort, proxy.Ports)
	}
	for _, argument := range []string{"--upstream=http://127.0.0.1:8080", "--pass-access-token", "--openshift-service-account=" + pod.Spec.ServiceAccountName} {
		if !slices.Contains(proxy.Args, argument) {
			t.Errorf("the proxy has no %s: %v", argument, proxy.Args)
		}
	}
	volumes := map[string]string{}
	for _, volume := range pod.Spec.Volumes {
		volumes[volume.Name] = volume.Secret.SecretName
	}
	if secret := service.Annotations["service.beta.openshift.io/serving-cert-secret-name"]; secret == "" || volumes["tls"] != secret {
		t.Errorf("the certificate is in the Secret %q, the proxy reads %q", secret, volumes["tls"])
	}
	account := objects["ServiceAccount/"+pod.Spec.ServiceAccountName]
	var redirect struct {
		Reference struct{ Kind, Name string }
	}
	must(t, json.Unmarshal([]byte(account.GetAnnotations()["serviceaccounts.openshift.io/oauth-redirectreference.primary"]), &redirect))
	if _, found := objects[redirect.Reference.Kind+"/"+redirect.Reference.Name]; !found {
		t.Errorf("the login returns to %+v, which is not installed", redirect.Reference)
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
