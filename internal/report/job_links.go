package report

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// JobLinks makes the links to pages about jobs that an administrator configured. The zero value makes only those of the jobs.
type JobLinks struct{ links []mpi.Link }

// ParseJobLinks reads the links of all jobs: TITLE=URL, separated by blanks (see mpi.ParseLinks).
func ParseJobLinks(text string) (JobLinks, error) {
	links, err := mpi.ParseLinks(text)
	return JobLinks{links}, err
}

// minOwnLinks is how many links of a job itself are kept, however many the administrator has.
const minOwnLinks = 2

// Of returns the links of a job, with secrets masked: first those of the administrator, then those of its annotation, and the page in MLflow
// that its variables name. Of several with the same title, the first one counts, so that no user can replace one of the administrator's. If
// there are too many, the last of each are left out.
func (l JobLinks) Of(job mpi.Job, report *v1alpha1.JobReport, mask func(string) string) []v1alpha1.Link {
	var links []v1alpha1.Link
	add := func(title, address string) {
		same := func(other v1alpha1.Link) bool { return strings.EqualFold(other.Title, title) }
		if address = mask(address); !isWebAddress(address) || len(address) > mpi.MaxLinkURL || slices.ContainsFunc(links, same) {
			return
		}
		links = append(links, v1alpha1.Link{Title: title, URL: address})
	}
	values := linkValues(report)
	for _, link := range l.links {
		add(link.Title, mpi.ExpandLink(link.Template, values))
	}
	ofAll := len(links)
	for _, link := range job.Links {
		add(link.Title, mpi.ExpandLink(link.Template, values))
	}
	add("MLflow", mlflowPage(job))
	kept := min(ofAll, mpi.MaxLinks-min(len(links)-ofAll, minOwnLinks))
	links = slices.Delete(links, kept, ofAll)
	return links[:min(len(links), mpi.MaxLinks)]
}

// isWebAddress reports whether the API accepts an address. A pattern of the administrator may mask its start.
func isWebAddress(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}

// mlflowID is an identifier of MLflow's experiments and runs.
var mlflowID = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)

// mlflowPage returns the page of a job's run or experiment in MLflow, or of the server if its variables name neither. It is "" if they name
// no server, or one whose address leads nowhere outside of the cluster.
func mlflowPage(job mpi.Job) string {
	server, err := url.Parse(variable(job, "MLFLOW_TRACKING_URI"))
	if err != nil || server.Scheme != "https" && server.Scheme != "http" || isInCluster(server.Hostname()) {
		return ""
	}
	// Whatever could be a secret is left out.
	page := url.URL{Scheme: server.Scheme, Host: server.Host, Path: strings.TrimSuffix(server.Path, "/")}
	experiment, run := variable(job, "MLFLOW_EXPERIMENT_ID"), variable(job, "MLFLOW_RUN_ID")
	switch {
	case !mlflowID.MatchString(experiment):
	case mlflowID.MatchString(run):
		page.Fragment = "/experiments/" + experiment + "/runs/" + run
	default:
		page.Fragment = "/experiments/" + experiment
	}
	if page.Fragment != "" {
		page.Path += "/"
	}
	return page.String()
}

// variable returns the value of a variable of the main container of a job's launcher or workers; "" if neither has one, or it refers to
// something else.
func variable(job mpi.Job, name string) string {
	for _, template := range []corev1.PodTemplateSpec{job.Launcher.Template, job.Workers.Template} {
		for _, v := range slices.Backward(mainOf(template).Env) {
			if v.Name == name && v.Value != "" && !strings.Contains(v.Value, "$(") {
				return v.Value
			}
		}
	}
	return ""
}

// isInCluster reports whether a host is certainly known in a cluster or a pod only: a Service, or a private address of the machine itself.
func isInCluster(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.IsLoopback() || address.IsUnspecified()
	}
	host = strings.TrimSuffix(host, ".")
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".cluster.local") || strings.HasSuffix(host, ".localhost")
}
