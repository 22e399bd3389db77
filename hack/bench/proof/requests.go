package proof

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/bench/report"
)

// requestsCase is the case of the suite mpijob that counts the requests of one job.
const requestsCase = "requests/64"

// whatRequestsBuy says what an operator's requests are for, by verb and resource as the API server counts them.
var whatRequestsBuy = map[string]string{
	"create configmaps":      "The host file and the settings of MPI, which the launcher mounts.",
	"create events":          "What users see with `kubectl describe`.",
	"create jobreports":      "The job's report: phase, cause with remedies, timeline, use.",
	"create jobs":            "The launcher.",
	"create networkpolicies": "Isolation: only the job's own pods reach its pods.",
	"create pods":            "The workers.",
	"create secrets":         "The key that the job's pods trust.",
	"create services":        "The names of the workers.",
	"get ":                   "Of no resource: what the API server serves, once a minute and not per job.",
	"get pods/log":           "The end of each pod's log, with the use of its CPU and memory, kept in the report when the pods are gone. Read when a pod ends; of the launcher also while it runs.",
	"patch configmaps":       "The host file, once the workers are ready.",
	"patch events":           "Repeated events are counted.",
	"patch jobreports":       "What changed in the report, at most once a second.",
	"update configmaps":      "The host file, once the workers are ready.",
	"update mpijobs/status":  "The status of the MPIJob, as users of mpi-operator know it.",
}

// writeRequests writes what the requests of one job are for.
func writeRequests(page *strings.Builder, r report.Report) {
	at := slices.IndexFunc(r.Cases, func(c report.Case) bool { return c.Name == requestsCase && len(c.Requests[ours]) > 0 })
	if at < 0 {
		return
	}
	c := r.Cases[at]
	peers := slices.DeleteFunc(peersOf([]report.Case{c}), func(who string) bool { return len(c.Requests[who]) == 0 })
	fmt.Fprintf(page, "\n### What the requests of a job are for\n\nAll requests of one job of 64 workers from its creation until after its end (`%s`, the last run).\n\n| request | ours |", requestsCase)
	all := maps.Clone(c.Requests[ours])
	for _, peer := range peers {
		page.WriteString(" " + peer + " |")
		maps.Copy(all, c.Requests[peer])
	}
	page.WriteString(" what it is for |\n|---|---:|" + strings.Repeat("---:|", len(peers)) + "---|\n")
	for _, what := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(page, "| `%s` |", strings.TrimSpace(what))
		for _, who := range append([]string{ours}, peers...) {
			fmt.Fprintf(page, " %d |", c.Requests[who][what])
		}
		page.WriteString(" " + whatRequestsBuy[what] + " |\n")
	}
}
