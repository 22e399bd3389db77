package cli

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// valueOutput is the flag -o of commands that print values of their own instead of objects of the cluster.
type valueOutput struct {
	form string
	// words are the formats besides json and yaml, such as wide.
	words []string
}

func (o *valueOutput) add(c *cobra.Command, words ...string) {
	o.words = words
	c.Flags().StringVarP(&o.form, "output", "o", "", "Output format: "+strings.Join(o.forms(), ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.forms(), cobra.ShellCompDirectiveNoFileComp))
}

func (o *valueOutput) forms() []string { return append(slices.Clone(o.words), "json", "yaml") }

// validate returns an error for an unknown format.
func (o *valueOutput) validate() error {
	if o.form == "" {
		return nil
	}
	return oneOf("-o", o.form, o.forms()...)
}

// structured reports whether the value is to be printed as JSON or YAML.
func (o *valueOutput) structured() bool { return o.form == "json" || o.form == "yaml" }

// print prints a value as JSON or YAML.
func (o *valueOutput) print(to io.Writer, value any) error {
	if o.form == "yaml" {
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = to.Write(text)
		return err
	}
	out := json.NewEncoder(to)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}
