package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func statusError(code int32, message string) error {
	reason := metav1.StatusReasonUnknown
	if code == 404 {
		reason = metav1.StatusReasonNotFound
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}}
}

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"workers: 0 is not allowed; use 1 or more":                             FieldError{"workers", "0", "is not allowed; use 1 or more"},
		"name: is required":                                                    FieldError{"name", "", "is required"},
		"x must be NAME=VALUE":                                                 FieldError{"", "x", "must be NAME=VALUE"},
		"name: is required; image: is required":                                Invalid(FieldError{"name", "", "is required"}, FieldError{"image", "", "is required"}),
		`job "a" not found in namespace ns; did you mean b or c?`:              &NotFoundError{What: "job", Namespace: "ns", Name: "a", Similar: []string{"b", "c"}},
		`runtime "a" not found`:                                                &NotFoundError{What: "runtime", Name: "a"},
		`several jobs are named "pi"; use mpijob/pi or trainjob/pi`:            &AmbiguousError{"jobs", "pi", []string{"mpijob/pi", "trainjob/pi"}},
		"trainjob/pi is deleted; its report does not contain the job's fields": &DeletedError{Job: Job{Kind: "TrainJob", Name: "pi"}},
		"mpijob/pi has ended":                                                  &EndedError{Job{Kind: "MPIJob", Name: "pi"}},
		"template x already exists":                                            &ExistsError{"template x"},
		"mpijob/pi is not valid: spec.a: is required; spec.b: is required":     &RejectedError{"mpijob/pi", []string{"spec.a: is required", "spec.b: is required"}},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func TestErrorClasses(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "mpijobs"}
	for name, test := range map[string]struct {
		err                                  error
		notInstalled, unreachable, transient bool
	}{
		"no match":            {err: missing("MPIJob"), notInstalled: true},
		"unknown path":        {err: statusError(404, "the server could not find the requested resource"), notInstalled: true},
		"missing object":      {err: apierrors.NewNotFound(resource, "pi")},
		"connection refused":  {err: fmt.Errorf("get: %w", &url.Error{Op: "Get", URL: "https://x", Err: errors.New("refused")}), unreachable: true, transient: true},
		"internal error":      {err: apierrors.NewInternalError(errors.New("x")), transient: true},
		"unavailable":         {err: apierrors.NewServiceUnavailable("x"), transient: true},
		"too many requests":   {err: apierrors.NewTooManyRequests("x", 1), transient: true},
		"timeout":             {err: apierrors.NewTimeoutError("x", 1), transient: true},
		"expired":             {err: apierrors.NewResourceExpired("x"), transient: true},
		"forbidden":           {err: forbidden("mpijobs")},
		"ended by the caller": {err: context.Canceled},
	} {
		if got := IsNotInstalled(test.err); got != test.notInstalled {
			t.Errorf("%s: not installed is %t", name, got)
		}
		if got := IsUnreachable(test.err); got != test.unreachable {
			t.Errorf("%s: unreachable is %t", name, got)
		}
		if got := IsTransient(test.err); got != test.transient {
			t.Errorf("%s: transient is %t", name, got)
		}
	}
}

// An API server that ends within a response is one that does not answer, over each version of HTTP.
func TestResponseThatIsCut(t *testing.T) {
	t.Parallel()
	for _, isHTTP2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		server.EnableHTTP2 = isHTTP2
		server.StartTLS()
		t.Cleanup(server.Close)
		config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
		if !isHTTP2 {
			config.NextProtos = []string{"http/1.1"}
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CoreV1().Pods("ns").Get(t.Context(), "pi", metav1.GetOptions{})
		if !IsUnreachable(err) || !IsTransient(err) {
			t.Errorf("HTTP/2 %t: unreachable is %t, transient is %t: %v", isHTTP2, IsUnreachable(err), IsTransient(err), err)
		}
	}
}
