package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	foundation "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	model "github.com/perses/perses/pkg/model/api/v1"
	"github.com/perses/perses/pkg/model/api/v1/utils"
)

// TestGrafanaSchema: Grafana's own types accept the dashboards, with the panels, queries and options in them, and know all fields.
func TestGrafanaSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for _, d := range dashboards() {
		t.Run(d.name, func(t *testing.T) {
			text, err := json.Marshal(grafana(d))
			if err != nil {
				t.Fatal(err)
			}
			var parsed foundation.Dashboard //nolint:staticcheck // Grafana 10 and 11 import no newer format
			// A list of errors may be empty.
			if err := parsed.UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
				t.Fatal(err)
			}
			if err := parsed.Validate(); err != nil {
				t.Error(err)
			}
			if *parsed.Uid != d.name || len(parsed.Panels) < len(d.rows) {
				t.Errorf("it was read as %s with %d panels", *parsed.Uid, len(parsed.Panels))
			}
			wrong := strings.Replace(string(text), `"showLegend"`, `"showsLegend"`, 1)
			if err := parsed.UnmarshalJSONStrict([]byte(wrong)); err == nil || !strings.Contains(err.Error(), "showsLegend") {
				t.Errorf("a wrong field is accepted, so that this test finds nothing: %v", err)
			}
		})
	}
}

// TestPersesSchema: Perses' own types accept the dashboards, their references and their variables, and lose no field.
func TestPersesSchema(t *testing.T) {
	for _, d := range dashboards() {
		t.Run(d.name, func(t *testing.T) {
			text, err := json.Marshal(perses(d))
			if err != nil {
				t.Fatal(err)
			}
			var parsed model.Dashboard
			if err := json.Unmarshal(text, &parsed); err != nil {
				t.Fatal(err)
			}
			if _, err := utils.BuildVariableOrder(parsed.Spec.Variables, nil, nil); err != nil {
				t.Error(err)
			}
			back, err := json.Marshal(parsed)
			if err != nil {
				t.Fatal(err)
			}
			var want, got any
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(back, &got); err != nil {
				t.Fatal(err)
			}
			lost(t, "", want, got)
			wrong := strings.Replace(string(text), "#/spec/panels/0_0", "#/spec/panels/9_9", 1)
			if err := json.Unmarshal([]byte(wrong), new(model.Dashboard)); err == nil {
				t.Error("a reference to no panel is accepted, so that this test finds nothing")
			}
		})
	}
}

// lost reports what of a value is not in another one. Perses leaves out what is empty.
func lost(t *testing.T, path string, want, got any) {
	t.Helper()
	switch value := want.(type) {
	case map[string]any:
		fields, _ := got.(map[string]any)
		for name, one := range value {
			lost(t, path+"."+name, one, fields[name])
		}
	case []any:
		items, _ := got.([]any)
		for i, one := range value {
			if i >= len(items) {
				t.Errorf("%s: Perses has only %d of %d", path, len(items), len(value))
				return
			}
			lost(t, path, one, items[i])
		}
	default:
		if !reflect.DeepEqual(want, got) && want != "" && want != false && want != float64(0) {
			t.Errorf("%s is %v, and Perses reads %v", path, want, got)
		}
	}
}
