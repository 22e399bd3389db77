package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// serviceErrors are the kinds of errors of programs that a server or its clients cause: the phrases are those of botocore, s3fs, google-auth,
// OpenSSL, curl, Go and FlexNet.
var serviceErrors = []OwnError{
	{
		Name: "expired certificate", Matches: regexp.MustCompile(`certificate has expired`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The server's certificate has expired. Ask who runs the server to renew it."},
			{Text: "If it is valid, the image's list of authorities may be too old: update its package ca-certificates.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "Or the clock of the node is ahead. Compare it with the time in UTC.", Action: "kubectl -n {namespace} exec {worker} -- date -u"},
		},
	},
	{
		Name: "certificate name", Matches: regexp.MustCompile(`[Hh]ostname mismatch|IP address mismatch|hostname '[^']*' doesn't match|no alternative certificate subject name matches|x509: certificate is valid for|x509: cannot validate certificate for`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use a name of the server that its certificate contains. Certificates rarely contain addresses; those of Services contain NAME.NAMESPACE.svc."},
			{Text: "Or ask who runs the server to add this name to the certificate."},
		},
	},
	{
		Name: "region", Matches: regexp.MustCompile(`NoRegionError|You must specify a region`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Set the region of the bucket. Servers that are not those of AWS accept us-east-1.", Action: "env: AWS_DEFAULT_REGION=us-east-1"},
		},
	},
	{
		Name: "endpoint", Matches: regexp.MustCompile(`Invalid endpoint: `),
		Remedies: []v1alpha1.Remedy{
			{Text: "Write http:// or https:// before the server's name in the variable or the data connection from which the program takes the address.", Action: "env: AWS_S3_ENDPOINT, AWS_ENDPOINT_URL"},
		},
	},
	{
		Name: "Google's credentials", Matches: regexp.MustCompile(`DefaultCredentialsError|[Dd]efault credentials were not found`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Mount a Secret with the key of a service account in all pods in which ranks run, and name its file.", Action: "env: GOOGLE_APPLICATION_CREDENTIALS"},
		},
	},
	{
		Name: "license", Matches: regexp.MustCompile(`(?i)licen[cs]e (?:server|checkout|manager)|flex(?:net|lm) licensing|(?:check ?out|obtain) (?:\S+ ){0,3}licen[cs]e|licensed number of users`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Name the license server in the pod templates of the launcher and the workers.", Action: licenseVariables},
			{Text: "Check that the pods reach it. If jobs are isolated, they reach the job's own pods, DNS and port 443, and license servers use others, such as 27000. Who administers the namespace allows them.", Action: listPolicies},
			fewerLicenses,
		},
	},
}

// licenseVariables are those by which programs find a license server.
const licenseVariables = "env: LM_LICENSE_FILE=27000@SERVER (ANSYSLMD_LICENSE_FILE=1055@SERVER of Ansys)"

// fewerLicenses is the remedy for licenses that others use.
var fewerLicenses = v1alpha1.Remedy{Text: "If the server answers that all licenses are in use, start the job later, or with fewer ranks: each may take a license.", Action: "{slotsField}"}

// IsolatedLicense are the remedies for a license server in a job that the operator isolates. They may use policy.
var IsolatedLicense = []v1alpha1.Remedy{
	{Text: "Who administers the namespace or the runtime must allow the ports of the license server and of its vendor daemon. NetworkPolicy {policy} isolates the job: its pods reach the job's own pods, DNS, port 443 and what an administrator allows.", Action: "metadata.annotations[mpi.opendatahub.io/allow-egress]"},
	{Text: "Name the license server in the pod templates of the launcher and the workers.", Action: licenseVariables},
	fewerLicenses,
}
