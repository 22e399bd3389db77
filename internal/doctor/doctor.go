// Package doctor checks whether a cluster and a namespace can run jobs, with the rights of its caller, and finds the installed
// operator. Nothing is changed.
//
// Each check reads, and passes what it found to a function that judges it.
package doctor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	OK Verdict = "ok"
	// Warn means that jobs run, with restrictions.
	Warn Verdict = "warn"
	// Fail means that jobs do not run until this is fixed.
	Fail Verdict = "fail"
	// None is the verdict on an optional component that is not installed, or on what the user may not read.
	None Verdict = "-"
)

// Result is what a check found.
type Result struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	// Found is a fact, without a period; empty if Err is set.
	Found string `json:"found"`
	// Remedy is what to do; may be empty.
	Remedy string `json:"remedy,omitempty"`
	// Err is why nothing was found. The verdict is then None.
	Err error `json:"-"`
}

// Cluster is what is checked.
type Cluster struct {
	API       client.Client
	Discovery discovery.DiscoveryInterface
	// Address is the address of the API server; may be empty.
	Address string
	// Namespace is where jobs are to run.
	Namespace string
	Now       time.Time
}

// Check makes all checks, and returns their results in a fixed order; a check may have several. It fails if the API server does
// not respond.
func (c Cluster) Check(ctx context.Context) ([]Result, error) {
	// Without an API server, all other checks fail.
	version, err := c.Discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its version: %w", err)
	}
	found := Result{Check: "API server", Verdict: OK, Found: "Kubernetes " + version.GitVersion}
	if c.Address != "" {
		found.Found += " at " + c.Address
	}
	checks := []func(context.Context) []Result{
		c.kinds, c.operator, c.admission, c.webhooks, c.policies, c.certificate, c.trainer, c.kueue, c.gangs, c.encryption, c.dns, c.namespace, c.quotas, c.rights,
	}
	results := make([][]Result, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() { results[i] = check(ctx) })
	}
	all.Wait()
	together := []Result{found}
	for _, some := range results {
		together = append(together, some...)
	}
	return together, ctx.Err()
}

// unknown returns the result of a check that could not read what it judges.
func unknown(check string, err error) []Result {
	return []Result{{Check: check, Verdict: None, Err: err}}
}
