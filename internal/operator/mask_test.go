package operator_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"opendatahub.io/mpijob/internal/operator"
)

// TestMaskPatternsReachReports: what an administrator has hidden is in no part of a report.
func TestMaskPatternsReachReports(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	operate(t, rest.CopyConfig(restConfig), operator.Options{WatchNamespaces: []string{namespace}, MaskPatterns: []string{`such (\w+)`}})
	launcher, pod := runs(t, namespace)
	fails(t, launcher, pod)
	status := fmt.Sprintf("%+v", reported(t, namespace, "Failed").Status)
	if !strings.Contains(status, "no such **** set") || strings.Contains(status, "such data") || strings.Contains(status, "hunter2") {
		t.Errorf("a report that is to hide what is not there says %s", status)
	}
}

func TestBadMaskPatternsAreRefused(t *testing.T) {
	t.Parallel()
	err := operator.Run(t.Context(), rest.CopyConfig(restConfig), operator.Options{MaskPatterns: []string{"(", "fine", "[z-a]"}})
	if err == nil || !strings.Contains(err.Error(), `"("`) || !strings.Contains(err.Error(), `"[z-a]"`) || strings.Contains(err.Error(), "fine") {
		t.Errorf("an operator with two patterns that are none says %v", err)
	}
}
