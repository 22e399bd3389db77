package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The names of the operator's webhooks (config/webhook).
const (
	webhookConfiguration = "mpijob-validating"
	webhook              = "mpijob.mpi.opendatahub.io"
)

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

// policies checks whether the API server enforces the operator's policies (config/webhook). It returns nothing if it does.
func (c Cluster) policies(context.Context) []Result {
	const check = "Policies"
	is, err := c.serves(admissionv1.SchemeGroupVersion, "validatingadmissionpolicies")
	if err != nil {
		return unknown(check, err)
	}
	if is {
		return nil
	}
	return []Result{{
		Check: check, Verdict: Warn,
		Found:  "the API server does not serve ValidatingAdmissionPolicies: limits of namespaces are not enforced, and RuntimeTests do not run",
		Remedy: "Update the cluster to Kubernetes 1.30 or later (OpenShift 4.17), and install the operator again.",
	}}
}

// certificate checks how long the webhook's certificate is valid. Users may not be allowed to read it, and do not need to.
func (c Cluster) certificate(ctx context.Context) []Result {
	var configuration admissionv1.ValidatingWebhookConfiguration
	if err := c.API.Get(ctx, client.ObjectKey{Name: webhookConfiguration}, &configuration); err != nil || len(configuration.Webhooks) == 0 {
		return nil
	}
	return []Result{judgeCertificate(configuration.Webhooks[0].ClientConfig.CABundle, c.Now)}
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
