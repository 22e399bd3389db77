package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The names of the operator's webhooks (config/webhook).
const (
	webhookConfiguration  = "mpijob-validating"
	mutatingConfiguration = "mpijob-mutating"
	webhook               = "mpijob.mpi.opendatahub.io"
)

// policyNames are the names of the operator's policies of the API server, and of their bindings (config/webhook).
var policyNames = []string{
	"mpijob-authors", "mpijob-limits", "mpijob-namespaces", "mpijob-operator", "mpijob-operator-jobs", "mpijob-operator-webhooks", "mpijob-runtimetest", "mpijob-sizes", "mpijob-snapshots",
}

// reportsPolicy is one more if OLM installed the operator (config/olm).
const reportsPolicy = "mpijob-reports"

const checkAdmission = "Admission"

// admission checks that jobs that cannot run are rejected: a dry run creates a job with too long a name.
func (c Cluster) admission(ctx context.Context) []Result {
	job := sampleJob(c.Namespace, "doctor-"+strings.Repeat("x", 80))
	return judgeAdmission(c.API.Create(ctx, job, client.DryRunAll))
}

// judgeAdmission judges by the response to an invalid job.
func judgeAdmission(err error) []Result {
	switch {
	case err == nil:
		return []Result{{
			Check: checkAdmission, Verdict: Warn, Found: "the operator's webhook does not respond: jobs are not validated, and fail later",
			Remedy: "Check that the operator is running, and that the API server can reach port 9443 of its pods.",
		}}
	case strings.Contains(err.Error(), webhook):
		return []Result{{Check: checkAdmission, Verdict: OK, Found: "invalid jobs are rejected"}}
	}
	return unknown(checkAdmission, err)
}

// policies checks whether the API server enforces the operator's policies (config/webhook). It returns nothing if it does, or if there is
// no operator.
func (c Cluster) policies(ctx context.Context) []Result {
	const check = "Policies"
	is, err := c.servesPolicies()
	if err != nil {
		return unknown(check, err)
	}
	if !is {
		return []Result{{
			Check: check, Verdict: Warn,
			Found:  "the API server does not serve ValidatingAdmissionPolicies: limits of namespaces are not enforced, and RuntimeTests do not run",
			Remedy: "Update the cluster to Kubernetes 1.30 or later (OpenShift 4.17), and then upgrade the operator, which installs them, or with OLM apply olm-admission.yaml (docs/install.md).",
		}}
	}
	found, err := FindOperator(ctx, c.API)
	if _, none := errors.AsType[*NotInstalledError](err); none {
		return nil
	}
	var policies admissionv1.ValidatingAdmissionPolicyList
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	if err := errors.Join(c.API.List(ctx, &policies), c.API.List(ctx, &bindings)); err != nil {
		return unknown(check, err)
	}
	results := found.judgeReportsBinding(check, bindings.Items)
	names := policyNames
	if found.byOLM() {
		names = append(slices.Clone(policyNames), reportsPolicy)
	}
	var missing []string
	var installed []client.Object
	for _, name := range names {
		policy := slices.IndexFunc(policies.Items, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == name })
		binding := slices.IndexFunc(bindings.Items, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Name == name })
		if policy < 0 || binding < 0 {
			missing = append(missing, name)
			continue
		}
		installed = append(installed, &policies.Items[policy], &bindings.Items[binding])
	}
	if len(missing) == 0 {
		return append(results, found.otherVersion(check, "ValidatingAdmissionPolicies", true, installed)...)
	}
	which := strings.Join(missing, ", ")
	if len(missing) == len(names) {
		which = "all of the operator's"
	}
	without := "limits of namespaces and of the operator's account may not be enforced, and RuntimeTests may not run"
	const writable = "users with the role edit can write JobReports"
	if slices.Equal(missing, []string{reportsPolicy}) {
		without = writable
	} else if slices.Contains(missing, reportsPolicy) {
		without = writable + ", " + without
	}
	return append(results, Result{
		Check: check, Verdict: Warn,
		Found:  "ValidatingAdmissionPolicies or their bindings are not installed: " + which + "; " + without,
		Remedy: "Ask a cluster administrator to install them: " + found.admissionCommand(true),
	})
}

// judgeReportsBinding judges reportsPolicy, which stays when OLM's operator is removed: it lets only an operator in the default namespace write reports.
func (o Operator) judgeReportsBinding(check string, bindings []admissionv1.ValidatingAdmissionPolicyBinding) []Result {
	isBound := slices.ContainsFunc(bindings, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Name == reportsPolicy })
	if !isBound || o.Namespace == operatorNamespace {
		return nil
	}
	return []Result{{
		Check: check, Verdict: Fail,
		Found:  fmt.Sprintf("%s, which OLM needs, refuses the JobReports of an operator in namespace %s", reportsPolicy, o.Namespace),
		Remedy: "Ask a cluster administrator to delete it: kubectl delete validatingadmissionpolicy,validatingadmissionpolicybinding " + reportsPolicy + " (docs/install.md)",
	}}
}

// otherVersion judges webhooks or policies by their labels: OLM upgrades the operator without them. It returns nothing if they have the
// operator's version, or if that is unknown.
func (o Operator) otherVersion(check, which string, withPolicies bool, installed []client.Object) []Result {
	version := o.deployment.Labels[labelVersion]
	var others []string
	for _, object := range installed {
		if other := cmp.Or(object.GetLabels()[labelVersion], "an unknown version"); version != "" && other != version {
			others = append(others, other)
		}
	}
	if len(others) == 0 {
		return nil
	}
	slices.Sort(others)
	return []Result{{
		Check: check, Verdict: Warn,
		Found:  fmt.Sprintf("%s of %s are installed, and the operator is %s: jobs may be refused, or changed, by rules that are not this operator's", which, strings.Join(slices.Compact(others), ", "), version),
		Remedy: "Ask a cluster administrator to install those of the operator's version: " + o.admissionCommand(withPolicies),
	}}
}

// webhooks checks whether the configurations of the operator's webhooks are there, and of its version. It returns nothing if they are, if
// users may not read them, or if there is no operator.
func (c Cluster) webhooks(ctx context.Context) []Result {
	const check = "Webhooks"
	found, err := FindOperator(ctx, c.API)
	if _, none := errors.AsType[*NotInstalledError](err); none {
		return nil
	}
	var lost []string
	var installed []client.Object
	for _, configuration := range []struct {
		object          client.Object
		name, withoutIt string
	}{
		{&admissionv1.ValidatingWebhookConfiguration{}, webhookConfiguration, "jobs are not validated before their creation"},
		{&admissionv1.MutatingWebhookConfiguration{}, mutatingConfiguration, "TrainJobs with MPI runtimes do not run correctly, and the users who create jobs are not recorded"},
	} {
		if err := c.API.Get(ctx, client.ObjectKey{Name: configuration.name}, configuration.object); apierrors.IsNotFound(err) {
			lost = append(lost, configuration.name+" is not installed: "+configuration.withoutIt)
		} else if err == nil {
			installed = append(installed, configuration.object)
		}
	}
	withPolicies, err := c.servesPolicies()
	withPolicies = withPolicies || err != nil
	if len(lost) == 0 {
		return found.otherVersion(check, "Webhooks", withPolicies, installed)
	}
	return []Result{{Check: check, Verdict: Warn, Found: strings.Join(lost, "; "), Remedy: "Ask a cluster administrator to install them: " + found.admissionCommand(withPolicies)}}
}

// servesPolicies reports whether the API server has ValidatingAdmissionPolicies, as from Kubernetes 1.30 on.
func (c Cluster) servesPolicies() (bool, error) {
	return c.serves(admissionv1.SchemeGroupVersion, "validatingadmissionpolicies")
}

// certificate checks how long the webhooks' certificate is valid. Users may not be allowed to read it, and do not need to. Both
// configurations have the same one; the API server refuses JobSets of MPI runtimes if that of the mutating webhooks is wrong.
func (c Cluster) certificate(ctx context.Context) []Result {
	var results []Result
	var validating admissionv1.ValidatingWebhookConfiguration
	if err := c.API.Get(ctx, client.ObjectKey{Name: webhookConfiguration}, &validating); err == nil && len(validating.Webhooks) > 0 {
		results = append(results, judgeCertificate(validating.Webhooks[0].ClientConfig.CABundle, c.Now))
	}
	var mutating admissionv1.MutatingWebhookConfiguration
	if err := c.API.Get(ctx, client.ObjectKey{Name: mutatingConfiguration}, &mutating); err == nil && len(mutating.Webhooks) > 0 {
		if result := judgeCertificate(mutating.Webhooks[0].ClientConfig.CABundle, c.Now); !slices.Contains(results, result) {
			result.Found = mutatingConfiguration + ": " + result.Found
			results = append(results, result)
		}
	}
	return results
}

// judgeCertificate judges the CA certificate of the webhook.
func judgeCertificate(bundle []byte, now time.Time) Result {
	const check, soon = "Certificate", 30 * 24 * time.Hour
	block, _ := pem.Decode(bundle)
	if block == nil {
		return Result{
			Check: check, Verdict: Fail, Found: "the operator's webhook has no CA certificate",
			Remedy: "The operator writes it within a minute if it is running and allowed to: kubectl -n " + operatorNamespace + " logs deployment/" + operatorApp,
		}
	}
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Result{
			Check: check, Verdict: Fail, Found: "the CA certificate of the operator's webhook is not valid: " + err.Error(),
			Remedy: "Delete the Secret mpijob-webhook-certificate in " + operatorNamespace + "; the operator creates a new one.",
		}
	}
	end := authority.NotAfter.UTC().Format(time.DateOnly)
	result := Result{Check: check, Verdict: OK, Found: "the webhook's certificate is valid until " + end}
	if authority.NotAfter.Sub(now) < soon {
		result.Verdict, result.Remedy = Warn, "The operator should have renewed it 60 days before it expires; see the operator's log."
	}
	if !authority.NotAfter.After(now) {
		result.Verdict, result.Found = Fail, "the webhook's certificate expired on "+end
	}
	return result
}
