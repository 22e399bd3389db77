package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/util/jsonpath"
)

// output is the flag -o with the forms that kubectl has, for commands that print objects of the cluster.
type output struct {
	flags *genericclioptions.PrintFlags
	form  string
	// words are the forms that the command has besides, such as wide.
	words []string
}

// addOutput gives a command the flag.
func addOutput(c *cobra.Command, words ...string) *output {
	o := &output{flags: genericclioptions.NewPrintFlags(""), words: words}
	o.flags.OutputFormat = &o.form
	o.flags.AddFlags(c)
	o.flags.OutputFlagSpecified = func() bool { return c.Flags().Changed("output") }
	for _, rare := range []string{"template", "allow-missing-template-keys", "show-managed-fields"} {
		_ = c.Flags().MarkHidden(rare)
	}
	flag := c.Flags().Lookup("output")
	flag.Usage = "Output format: " + strings.Join(o.forms(), ", ")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.forms(), cobra.ShellCompDirectiveNoFileComp))
	return o
}

func (o *output) forms() []string {
	return append(append([]string{}, o.words...), "json", "yaml", "name", "jsonpath=", "jsonpath-file=", "go-template=", "go-template-file=", "custom-columns=")
}

// objects reports whether objects are to be printed as they are, rather than in a form of the command's own.
func (o *output) objects() bool {
	for _, word := range append(o.words, "") {
		if o.form == word && (o.flags.TemplatePrinterFlags.TemplateArgument == nil || *o.flags.TemplatePrinterFlags.TemplateArgument == "") {
			return false
		}
	}
	return true
}

// print prints an object, or a list of them, in the form that the user wants.
func (o *output) print(to io.Writer, object runtime.Object) error {
	if columns, wanted := strings.CutPrefix(o.form, "custom-columns="); wanted {
		return printColumns(to, columns, object)
	}
	printer, err := o.flags.ToPrinter()
	if err != nil {
		return usagef("-o %s: must be one of %s", o.form, strings.Join(o.forms(), ", "))
	}
	return printer.PrintObj(object, to)
}

// listOf puts objects into a list of the kind that kubectl prints.
func listOf(objects []unstructured.Unstructured) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": ""}}, Items: objects}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	return list
}

var bracketed = regexp.MustCompile(`^\{?\.?([^{}]+)\}?$`)

// printColumns prints objects in columns that are given as HEADING:PATH, separated by commas.
func printColumns(to io.Writer, spec string, object runtime.Object) error {
	var t table
	var paths []*jsonpath.JSONPath
	for column := range strings.SplitSeq(spec, ",") {
		title, path, found := strings.Cut(column, ":")
		inner := bracketed.FindStringSubmatch(path)
		if !found || title == "" || inner == nil {
			return usagef("-o custom-columns: %q must be HEADING:PATH, such as NAME:.metadata.name", column)
		}
		parsed := jsonpath.New(title).AllowMissingKeys(true)
		if err := parsed.Parse("{." + inner[1] + "}"); err != nil {
			return usagef("-o custom-columns: %s: %v", column, err)
		}
		t.header = append(t.header, title)
		paths = append(paths, parsed)
	}
	for _, item := range itemsOf(object) {
		row := make([]cell, len(paths))
		for i, path := range paths {
			row[i].text = valueAt(path, item)
		}
		t.rows = append(t.rows, row)
	}
	return t.write(to, "", true)
}

func itemsOf(object runtime.Object) []map[string]any {
	switch object := object.(type) {
	case *unstructured.UnstructuredList:
		var items []map[string]any
		for i := range object.Items {
			items = append(items, object.Items[i].Object)
		}
		return items
	case *unstructured.Unstructured:
		return []map[string]any{object.Object}
	}
	return nil
}

// valueAt is what a path leads to, as kubectl shows it.
func valueAt(path *jsonpath.JSONPath, item map[string]any) string {
	results, err := path.FindResults(item)
	if err != nil {
		return "<none>"
	}
	var texts []string
	for _, result := range results {
		for _, value := range result {
			if value.CanInterface() && value.Interface() != nil {
				texts = append(texts, fmt.Sprint(value.Interface()))
			}
		}
	}
	if len(texts) == 0 {
		return "<none>"
	}
	return strings.Join(texts, ",")
}

// asUnstructured turns a typed object into one that printers print with its kind.
func asUnstructured(object any) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var u unstructured.Unstructured
	return &u, json.Unmarshal(data, &u.Object)
}

// say prints a line.
func say(to io.Writer, format string, args ...any) { fmt.Fprintf(to, format+"\n", args...) }
