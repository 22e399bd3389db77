package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestAuditPolicy has the API server's own code read config/audit and judge requests by it.
func TestAuditPolicy(t *testing.T) {
	loaded, err := policy.LoadPolicyFromFile(filepath.Join("..", "..", "config", "audit", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.NewPolicyRuleEvaluator(loaded)
	const (
		operator = "system:serviceaccount:mpijob-system:mpijob-operator"
		kueue    = "system:serviceaccount:kueue-system:kueue-controller-manager"
	)
	none, metadata, request := auditinternal.LevelNone, auditinternal.LevelMetadata, auditinternal.LevelRequest
	tests := map[string]struct {
		who, verb, group, resource, subresource string
		want                                    auditinternal.Level
	}{
		"a job is created":              {"ada", "create", "kubeflow.org", "mpijobs", "", metadata},
		"a job is suspended":            {"ada", "patch", "kubeflow.org", "mpijobs", "", metadata},
		"a job is deleted":              {"ada", "delete", "kubeflow.org", "mpijobs", "", metadata},
		"all jobs are deleted":          {"ada", "deletecollection", "trainer.kubeflow.org", "trainjobs", "", metadata},
		"a job is read":                 {"ada", "get", "trainer.kubeflow.org", "trainjobs", "", metadata},
		"the queue starts a job":        {kueue, "update", "kubeflow.org", "mpijobs", "", metadata},
		"the operator's TTL":            {operator, "delete", "kubeflow.org", "mpijobs", "", metadata},
		"a runtime is changed":          {"ada", "update", "trainer.kubeflow.org", "clustertrainingruntimes", "", metadata},
		"a job's status":                {operator, "update", "kubeflow.org", "mpijobs", "status", none},
		"the operator watches":          {operator, "watch", "kubeflow.org", "mpijobs", "", none},
		"the operator lists pods":       {operator, "list", "", "pods", "", none},
		"the operator reads a log":      {operator, "get", "", "pods", "log", none},
		"the operator makes a pod":      {operator, "create", "", "pods", "", metadata},
		"the operator changes a pod":    {operator, "patch", "", "pods", "", metadata},
		"the operator deletes a pod":    {operator, "delete", "", "pods", "", metadata},
		"the operator makes a launcher": {operator, "create", "batch", "jobs", "", metadata},
		"the operator makes keys":       {operator, "create", "", "secrets", "", metadata},
		"the operator reads a key":      {operator, "get", "", "secrets", "", metadata},
		"the operator lists keys":       {operator, "list", "", "secrets", "", metadata},
		"the operator opens a job":      {operator, "delete", "networking.k8s.io", "networkpolicies", "", request},
		"the operator opens a gate":     {operator, "patch", "jobset.x-k8s.io", "jobsets", "", metadata},
		"the operator's webhooks":       {operator, "patch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", request},
		"the operator's exec":           {operator, "create", "", "pods", "exec", metadata},
		"the operator leads":            {operator, "update", "coordination.k8s.io", "leases", "", none},
		"the operator's event":          {operator, "create", "", "events", "", none},
		"the operator asks for rights":  {operator, "create", "authorization.k8s.io", "subjectaccessreviews", "", none},
		"the operator writes a report":  {operator, "update", "mpi.opendatahub.io", "jobreports", "", none},
		"the operator deletes a report": {operator, "delete", "mpi.opendatahub.io", "jobreports", "", metadata},
		"somebody writes a report":      {"eve", "update", "mpi.opendatahub.io", "jobreports", "", metadata},
		"a report is read":              {"ada", "get", "mpi.opendatahub.io", "jobreports", "", none},
		"a key is read":                 {"eve", "get", "", "secrets", "", metadata},
		"a key is changed":              {"eve", "patch", "", "secrets", "", metadata},
		"a token is made":               {"eve", "create", "", "serviceaccounts", "token", metadata},
		"a shell in a rank":             {"eve", "create", "", "pods", "exec", metadata},
		"a shell in a rank, by sockets": {"eve", "get", "", "pods", "exec", metadata},
		"a log is read":                 {"eve", "get", "", "pods", "log", metadata},
		"the guards are turned off":     {"eve", "delete", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", request},
		"a right is given":              {"eve", "create", "rbac.authorization.k8s.io", "rolebindings", "", request},
		"an event":                      {"kubelet", "create", "", "events", "", none},
		"something else is changed":     {"ada", "create", "apps", "deployments", "", metadata},
		"something else is read":        {"ada", "list", "apps", "deployments", "", none},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := rules.EvaluatePolicyRule(authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: test.who, Groups: []string{user.AllAuthenticated}}, Verb: test.verb, Namespace: "ns", Name: "pi",
				APIGroup: test.group, APIVersion: "v1", Resource: test.resource, Subresource: test.subresource, ResourceRequest: true,
			})
			if got.Level != test.want {
				t.Errorf("level %s, want %s", got.Level, test.want)
			}
			if !got.OmitManagedFields {
				t.Error("managed fields are written down")
			}
		})
	}
}

// TestAuditLogIsKept: the flags in docs/audit.md keep the log for 90 days, and no number of files ends it sooner.
func TestAuditLogIsKept(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "audit.md"))
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]int{}
	for _, flag := range regexp.MustCompile(`--audit-log-(max\w+)=(\d+)`).FindAllStringSubmatch(string(text), -1) {
		if flags[flag[1]], err = strconv.Atoi(flag[2]); err != nil {
			t.Fatal(err)
		}
	}
	if backups, found := flags["maxbackup"]; flags["maxage"] < 90 || !found || backups != 0 {
		t.Errorf("the flags are %v, want a maxage of 90 or more and no limit of files", flags)
	}
}
