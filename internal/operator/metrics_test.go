package operator_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/operator"
)

// TestMetricsAreServed follows a job on /metrics, read as Prometheus reads it.
func TestMetricsAreServed(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	token := reader(t, namespace)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	operate(t, rest.CopyConfig(restConfig), operator.Options{WatchNamespaces: []string{namespace}, MetricsAddress: address})
	serves := func(series ...string) {
		t.Helper()
		eventually(t, "/metrics says "+strings.Join(series, ", "), func() error {
			text, err := scrape(t, address, token)
			if err != nil {
				return err
			}
			for _, line := range series {
				if !strings.Contains(text, "\n"+fmt.Sprintf(line, namespace)+"\n") {
					return fmt.Errorf("there is no %s", fmt.Sprintf(line, namespace))
				}
			}
			return nil
		})
	}
	launcher, _ := runs(t, namespace)
	serves(`training_operator_mpijob_created_total{namespace="%s"} 1`, `training_operator_mpijob_running_total{namespace="%s"} 1`,
		`mpijob_info{implementation="OpenMPI",kind="MPIJob",name="pi",namespace="%s",phase="Running"} 1`)
	if text, err := scrape(t, address, token); err != nil || !strings.Contains(text, "\nmpijob_certificate_expiry_timestamp_seconds{certificate=\"metrics\"} ") {
		t.Errorf("there is no expiry of the certificate: %v", err)
	}
	finish(t, get(t, namespace, "pi-launcher", launcher))
	serves(`training_operator_mpijob_succeeded_total{namespace="%s"} 1`, `mpijob_jobs_succeeded_total{kind="MPIJob",namespace="%s"} 1`, `training_operator_mpijob_running_total{namespace="%s"} 0`)
	if _, err := scrape(t, address, "nobody's"); err == nil {
		t.Error("/metrics is served to anybody")
	}
}

// reader makes an account that may read metrics, and gives its token.
func reader(t *testing.T, namespace string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prometheus"}}
	create(t, account)
	create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}})
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account.Name}},
	})
	request := &authenticationv1.TokenRequest{}
	if err := api.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

func scrape(t *testing.T, address, token string) (string, error) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	// As config/prometheus/monitor.yaml has it.
	var secret corev1.Secret
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "mpijob-system", Name: "mpijob-webhook-certificate"}, &secret); err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["metrics-ca.crt"]) {
		return "", fmt.Errorf("there is no authority in %q", slices.Sorted(maps.Keys(secret.Data)))
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "mpijob-operator-metrics.mpijob-system.svc"},
	}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %s: %s", response.Status, text)
	}
	return string(text), err
}
