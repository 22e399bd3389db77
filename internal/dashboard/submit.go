package dashboard

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobs"
)

// Draft is a job that is not created yet, or was created.
type Draft struct {
	Namespace string `json:"namespace,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Name      string `json:"name,omitempty"`
	YAML      string `json:"yaml,omitempty"`
	// Diff is the unified diff to the original of a clone.
	Diff string `json:"diff,omitempty"`
	// Words describe the job in sentences.
	Words    []string  `json:"words,omitempty"`
	Commands []Snippet `json:"commands,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
	// Cost is the cost of an hour, with the currency; empty without prices.
	Cost string `json:"cost,omitempty"`
	// Advice is what the user's earlier jobs of the same program suggest, a sentence each.
	Advice []string `json:"advice,omitempty"`
	// Requests are the sums over all pods.
	Requests []Quantity `json:"requests,omitempty"`
	// Problem is why the job cannot be created as it is; null if it can.
	Problem *Problem `json:"problem,omitempty"`
	Created bool     `json:"created,omitempty"`
}

// historyTTL is for how long a history is used again while a job is written, which is checked after each change.
const historyTTL = time.Minute

// advise returns what the user's earlier jobs suggest; nothing if they cannot be read.
func (c *call) advise(object *unstructured.Unstructured) []string {
	namespace := object.GetNamespace()
	c.mu.Lock()
	known, isKnown := c.histories[namespace]
	c.mu.Unlock()
	if !isKnown || c.now().Sub(known.at) > historyTTL {
		past, err := c.jobs.Past(c.ctx, namespace)
		if err != nil {
			return nil
		}
		known = history{History: past.History(), at: c.now()}
		c.mu.Lock()
		// One namespace is enough: a user writes one job at a time.
		c.histories = map[string]history{namespace: known}
		c.mu.Unlock()
	}
	return known.Advise(object, c.name)
}

// submit creates a job, or checks it. What the API server or a check refuses is the draft's problem.
func (s *Server) submit(c *call, object *unstructured.Unstructured, dryRun bool) (Draft, error) {
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return Draft{}, err
	}
	draft := Draft{Namespace: object.GetNamespace(), Kind: object.GetKind(), Name: object.GetName(), YAML: string(text), Requests: requestsOf(object)}
	if cost, err := c.jobs.HourlyCost(c.ctx, object); err == nil && cost != nil {
		draft.Cost = cost.Amount
	}
	warnings, err := jobs.Check(object)
	if err != nil {
		draft.Problem = invalid(err)
		return draft, nil
	}
	mode := jobs.DryRunNone
	if dryRun {
		mode = jobs.DryRunServer
		draft.Advice = c.advise(object)
	}
	collector := &warningCollector{}
	err = c.jobs.Create(withWarnings(c.ctx, collector), object, mode)
	draft.Warnings = unique(append(warnings, collector.texts()...))
	if err == nil {
		draft.Created = !dryRun
		return draft, nil
	}
	status, problem := problemOf(err)
	if status == 401 || status >= 500 {
		return draft, err
	}
	draft.Problem = &problem
	return draft, nil
}
