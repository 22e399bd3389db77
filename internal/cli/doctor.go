package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type doctorOptions struct {
	*Factory
	form string
}

func newDoctor(f *Factory) *cobra.Command {
	o := &doctorOptions{Factory: f}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this cluster and this namespace are ready to run jobs",
		Long: `Check whether this cluster is ready to run jobs, and whether you may run them in this namespace. Each line is ok, warn
(something runs worse than it could), fail (jobs do not run until this is mended), or "-" for what is not installed, or what
you have no right to look at. Nothing is changed. The exit code is 1 if anything fails.`,
		Example: `# Is everything there?
{{name}} doctor

# May I run jobs in that namespace?
{{name}} doctor -n team-a

# For a program
{{name}} doctor -o json`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	c.Flags().StringVarP(&o.form, "output", "o", "", "json: the checks for a program")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// verdict is how a check went.
type verdict string

// The verdicts.
const (
	verdictOK   verdict = "ok"
	verdictWarn verdict = "warn"
	verdictFail verdict = "fail"
	// verdictNone is that of what is not there, and need not be, or cannot be looked at.
	verdictNone verdict = "-"
)

// checked is what a check has found.
type checked struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Found   string  `json:"found"`
	Remedy  string  `json:"remedy,omitempty"`
}

func (o *doctorOptions) run(ctx context.Context) error {
	if o.form != "" && o.form != "json" {
		return usagef("-o %s: must be json", o.form)
	}
	e, err := o.examination()
	if err != nil {
		return err
	}
	// Nothing else can be said of a cluster that does not answer.
	version, err := e.clients.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the API server for its version: %w", err)
	}
	found := append([]checked{e.apiServer(version.GitVersion)}, e.all(ctx)...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := o.print(e.namespace, found); err != nil {
		return err
	}
	for _, c := range found {
		if c.Verdict == verdictFail {
			return silently(ExitError)
		}
	}
	return nil
}

func (o *doctorOptions) print(namespace string, found []checked) error {
	if o.form == "json" {
		out := json.NewEncoder(o.Out)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(map[string]any{"namespace": namespace, "checks": found})
	}
	s := &story{Factory: o.Factory, to: o.Out}
	counts := map[verdict]int{}
	colours := map[verdict]colour{verdictOK: green, verdictWarn: yellow, verdictFail: red, verdictNone: dim}
	for _, c := range found {
		counts[c.Verdict]++
		mark := string(c.Verdict) + strings.Repeat(" ", 5-len(c.Verdict))
		s.line("%s %-16s %s", o.paint(colours[c.Verdict], mark), c.Check, c.Found)
		if c.Remedy != "" {
			s.text(strings.Repeat(" ", 23)+"> ", c.Remedy)
		}
	}
	s.line("")
	switch {
	case counts[verdictFail] > 0:
		s.line("%s", o.paint(red, fmt.Sprintf("%d of %d checks fail: jobs do not run in the namespace %s as they should.", counts[verdictFail], len(found), namespace)))
	case counts[verdictWarn] > 0:
		s.line("%s", o.paint(yellow, fmt.Sprintf("Jobs can run in the namespace %s; %d of %d checks warn.", namespace, counts[verdictWarn], len(found))))
	default:
		s.line("%s", o.paint(green, fmt.Sprintf("Ready: jobs can run in the namespace %s.", namespace)))
	}
	return s.err
}

// examination is what checks ask with.
type examination struct {
	*Factory
	clients   kubernetes.Interface
	client    client.Client
	namespace string
}

func (o *doctorOptions) examination() (*examination, error) {
	namespace, err := o.Namespace()
	if err != nil {
		return nil, err
	}
	clients, err := o.Clientset()
	if err != nil {
		return nil, err
	}
	c, err := o.Client()
	if err != nil {
		return nil, err
	}
	return &examination{Factory: o.Factory, clients: clients, client: c, namespace: namespace}, nil
}

// all makes the checks, in parallel; each may have several lines.
func (e *examination) all(ctx context.Context) []checked {
	checks := []func(context.Context) []checked{
		e.kinds, e.operator, e.webhook, e.trainer, e.kueue, e.gangs, e.dns, e.namespaceItself, e.quotas, e.rights,
	}
	results := make([][]checked, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() { results[i] = check(ctx) })
	}
	all.Wait()
	var found []checked
	for _, lines := range results {
		found = append(found, lines...)
	}
	return found
}

// unknown is the line of what could not be looked at.
func (e *examination) unknown(check string, err error) checked {
	return checked{Check: check, Verdict: verdictNone, Found: "not known: " + oneLine(e.words(err))}
}
