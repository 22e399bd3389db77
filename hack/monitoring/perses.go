package main

import "fmt"

var persesUnits = map[unit]string{number: "decimal", seconds: "seconds", share: "percent-decimal", hours: "hours", bytesUnit: "bytes"}

// perses returns a dashboard for Perses, in the project of the operator's namespace. Queries use the project's default Prometheus.
func perses(d dashboard) object {
	variables := []any{}
	for _, v := range d.variables {
		spec := object{
			"name": v.name, "display": object{"name": v.title}, "allowMultiple": v.many, "allowAllValue": v.many,
			"plugin": object{"kind": "PrometheusLabelValuesVariable", "spec": object{"labelName": v.label, "matchers": []string{v.metric}}},
		}
		if v.many {
			spec["customAllValue"], spec["defaultValue"] = ".*", "$__all"
		}
		variables = append(variables, object{"kind": "ListVariable", "spec": spec})
	}
	panels, layouts := object{}, []any{}
	for i, r := range d.rows {
		places, _ := r.place(0)
		items := []any{}
		for j, p := range r.panels {
			name := fmt.Sprintf("%d_%d", i, j)
			panels[name] = persesPanel(p)
			at := places[j]
			items = append(items, object{"x": at.x, "y": at.y, "width": at.width, "height": at.height, "content": object{"$ref": "#/spec/panels/" + name}})
		}
		layouts = append(layouts, object{"kind": "Grid", "spec": object{"display": object{"title": r.title, "collapse": object{"open": true}}, "items": items}})
	}
	return object{
		"kind": "Dashboard", "metadata": object{"name": d.name, "project": "mpijob-system"},
		"spec": object{
			"display": object{"name": d.title, "description": d.description}, "duration": "6h", "refreshInterval": "1m",
			"variables": variables, "panels": panels, "layouts": layouts,
		},
	}
}

func persesPanel(p panel) object {
	queries := []any{}
	for _, q := range p.queries {
		queries = append(queries, object{"kind": "TimeSeriesQuery", "spec": object{"plugin": object{"kind": "PrometheusTimeSeriesQuery", "spec": object{"query": q.expr, "seriesNameFormat": q.legend}}}})
	}
	format := object{"unit": persesUnits[p.unit]}
	plugin := map[kind]object{
		lines:  {"kind": "TimeSeriesChart", "spec": object{"legend": object{"position": "bottom"}, "yAxis": object{"format": format}}},
		figure: {"kind": "StatChart", "spec": object{"calculation": "last-number", "format": format}},
		table:  {"kind": "TimeSeriesTable", "spec": object{}},
	}[p.kind]
	return object{"kind": "Panel", "spec": object{"display": object{"name": p.title, "description": p.description}, "plugin": plugin, "queries": queries}}
}
