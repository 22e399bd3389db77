package main

import "fmt"

type object = map[string]any

// Both Grafana's and Perses' grids have 24 columns.
const columns = 24

// place is where a panel is in the grid.
type place struct{ x, y, width, height int }

// place returns where the panels of a row are, from a line on, and the line after them: figures in quarters, others in halves, and
// tables over the whole width.
func (r row) place(y int) ([]place, int) {
	var places []place
	x, height := 0, 0
	for _, p := range r.panels {
		width, tall := columns/2, 8
		switch p.kind {
		case figure:
			width, tall = columns/4, 4
		case table:
			width = columns
		}
		if x+width > columns || height != 0 && tall != height {
			x, y = 0, y+height
		}
		height = tall
		places = append(places, place{x, y, width, tall})
		if x += width; x == columns {
			x, y, height = 0, y+height, 0
		}
	}
	return places, y + height
}

var grafanaUnits = map[unit]string{number: "short", seconds: "s", share: "percentunit", hours: "h", bytesUnit: "bytes"}

var datasource = object{"type": "prometheus", "uid": "${datasource}"}

// grafana returns a dashboard for Grafana 10 and later.
func grafana(d dashboard) object {
	variables := []any{object{"name": "datasource", "type": "datasource", "label": "Data source", "query": "prometheus", "current": object{"text": "", "value": ""}}}
	for _, v := range d.variables {
		variable := object{
			"name": v.name, "type": "query", "label": v.title, "datasource": datasource, "refresh": 2, "sort": 1,
			"query": object{"query": fmt.Sprintf("label_values(%s, %s)", v.metric, v.label), "refId": v.name}, "current": object{"text": "", "value": ""},
			"multi": v.many, "includeAll": v.many,
		}
		if v.many {
			variable["allValue"], variable["current"] = ".*", object{"text": "All", "value": "$__all"}
		}
		variables = append(variables, variable)
	}
	var panels []any
	id, y := 1, 0
	for _, r := range d.rows {
		panels = append(panels, object{"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []any{}, "gridPos": object{"x": 0, "y": y, "w": columns, "h": 1}})
		id++
		var places []place
		places, y = r.place(y + 1)
		for i, p := range r.panels {
			panels = append(panels, grafanaPanel(id, p, places[i]))
			id++
		}
	}
	return object{
		"uid": d.name, "title": d.title, "description": d.description, "tags": []string{"mpijob"}, "editable": true, "schemaVersion": 39,
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "1m", "timezone": "browser",
		"templating": object{"list": variables}, "annotations": object{"list": []any{}}, "panels": panels,
	}
}

func grafanaPanel(id int, p panel, at place) object {
	var targets []any
	for i, q := range p.queries {
		target := object{"refId": string(rune('A' + i)), "datasource": datasource, "expr": q.expr, "legendFormat": q.legend}
		if p.kind == table {
			target["format"], target["instant"] = "table", true
		}
		targets = append(targets, target)
	}
	options := map[kind]object{
		lines: {"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}}, "tooltip": object{"mode": "multi", "sort": "desc"}},
		figure: {
			"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}, "colorMode": "value", "graphMode": "area",
			"justifyMode": "auto", "textMode": "auto", "orientation": "auto", "wideLayout": true, "showPercentChange": false, "percentChangeColorMode": "standard",
		},
		table: {"showHeader": true, "frameIndex": 0},
	}[p.kind]
	return object{
		"id": id, "type": map[kind]string{lines: "timeseries", figure: "stat", table: "table"}[p.kind], "title": p.title, "description": p.description,
		"datasource": datasource, "targets": targets, "options": options,
		"fieldConfig": object{"defaults": object{"unit": grafanaUnits[p.unit]}, "overrides": []any{}},
		"gridPos":     object{"x": at.x, "y": at.y, "w": at.width, "h": at.height},
	}
}
