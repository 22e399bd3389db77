package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/doctor"
	"opendatahub.io/mpijob/internal/version"
)

var versionForms = []string{"json", "yaml"}

// versions is what the command version prints.
type versions struct {
	Client   version.Info `json:"client"`
	Operator *component   `json:"operator,omitempty"`
	Agent    *component   `json:"agent,omitempty"`
}

// component is a part of the product that is installed in the cluster.
type component struct {
	// Version is empty if it is unknown.
	Version string `json:"version,omitempty"`
	Image   string `json:"image,omitempty"`
	// Namespace is that of the Deployment; empty for the agent.
	Namespace string `json:"namespace,omitempty"`
	// Error is why the component could not be read.
	Error string `json:"error,omitempty"`
}

func newVersion(f *Factory) *cobra.Command {
	var form string
	var clientOnly bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the client, the operator and the agent",
		Long: `Print the versions of the client, the operator and the agent.

The versions of the operator and the agent are read from the operator's Deployment, which requires the right to list Deployments in its
namespace. A warning is printed if the client, the operator and the agent have different versions.`,
		Example: `# The versions of all components
{{name}}

# Only the client's version, without a cluster
{{name}} --client

# For a script
{{name}} -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if form != "" && form != "json" && form != "yaml" {
				return usagef("-o: %s is not allowed; use %s", form, strings.Join(versionForms, ", "))
			}
			found := versions{Client: version.Get()}
			if !clientOnly {
				found.Operator, found.Agent = installedVersions(c.Context(), f)
			}
			if warning := found.mismatch(); warning != "" {
				_, _ = fmt.Fprintln(f.ErrOut, "warning: "+warning)
			}
			return found.print(f.Out, form)
		},
	}
	c.Flags().BoolVar(&clientOnly, "client", false, "Only print the client's version, without connecting to a cluster")
	c.Flags().StringVarP(&form, "output", "o", "", "Output format, one of: ("+strings.Join(versionForms, ", ")+")")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(versionForms, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// installedVersions reads the operator's Deployment. The agent is nil if the Deployment cannot be read or names no agent.
func installedVersions(ctx context.Context, f *Factory) (operator, agent *component) {
	c, err := f.Client()
	if err != nil {
		return &component{Error: err.Error()}, nil
	}
	found, err := doctor.FindOperator(ctx, c)
	if err != nil {
		return &component{Error: err.Error()}, nil
	}
	if found.AgentImage != "" {
		agent = &component{Version: found.AgentVersion, Image: found.AgentImage}
	}
	return &component{Version: found.Version, Image: found.Image, Namespace: found.Namespace}, agent
}

// release matches the versions of releases.
var release = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// mismatch returns a warning if the client and the operator have different versions, or the operator and the agent, as far as
// they are known. The agent's is the tag of its image, which is only a version in a release.
func (v versions) mismatch() string {
	if v.Operator == nil || v.Operator.Version == "" {
		return ""
	}
	if v.Client.Version != version.Unknown && v.Client.Version != v.Operator.Version {
		return fmt.Sprintf("the client has version %s and the operator %s; install the same version of both", v.Client.Version, v.Operator.Version)
	}
	if v.Agent != nil && v.Agent.Version != v.Operator.Version && release.MatchString(v.Agent.Version) && release.MatchString(v.Operator.Version) {
		return fmt.Sprintf("the operator has version %s and the agent %s; ask a cluster administrator to install the same version of both", v.Operator.Version, v.Agent.Version)
	}
	return ""
}

// print writes the versions as lines of text, or in the format json or yaml.
func (v versions) print(to io.Writer, form string) error {
	var data []byte
	var err error
	switch form {
	case "json":
		data, err = json.MarshalIndent(v, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(v)
	default:
		p := &linePrinter{to: to}
		p.wrapped("Client:    ", v.Client.String())
		if v.Operator != nil {
			p.wrapped("Operator:  ", v.Operator.String())
		}
		if v.Agent != nil {
			p.wrapped("Agent:     ", v.Agent.String())
		}
		return p.err
	}
	if err != nil {
		return fmt.Errorf("encode the versions: %w", err)
	}
	_, err = to.Write(data)
	return err
}

// String returns the version with its details, such as "v0.1.0 (quay.io/opendatahub/mpijob-agent:v0.1.0)".
func (c component) String() string {
	text := cmp.Or(c.Version, "unknown")
	var details []string
	for _, detail := range []string{c.Image, c.Error} {
		if detail != "" {
			details = append(details, detail)
		}
	}
	if c.Namespace != "" {
		details = append(details, "namespace "+c.Namespace)
	}
	if len(details) == 0 {
		return text
	}
	return text + " (" + strings.Join(details, ", ") + ")"
}
