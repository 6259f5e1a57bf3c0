package main

import "fmt"

// schemaVersion is the version of the dashboard schema of Grafana 12. Newer releases upgrade it.
const schemaVersion = 41

// dashboard defines a dashboard.
type dashboard struct {
	// name is the name of the file.
	name, title, description string
	// jobs is the metric whose jobs can be selected.
	jobs string
	// choices are further variables.
	choices []choice
	panels  []panel
}

// choice is a variable with the values of a label of a metric.
type choice struct{ name, metric string }

// panel defines a panel. A row has two panels, or four of kind stat.
type panel struct {
	title, description string
	// kind is the visualization, by default timeseries.
	kind kind
	// unit is the identifier of the unit in Grafana.
	unit    string
	queries []query
	// limits color values at or above them, and are drawn as lines.
	limits []limit
	// max is the end of the axis, 0 for automatic.
	max float64
	// negative allows an axis below 0.
	negative bool
}

// kind is a type of visualization.
type kind string

const (
	timeseries kind = "timeseries"
	stat       kind = "stat"
	heatmap    kind = "heatmap"
)

// query is a PromQL query with the legend of its series.
type query struct{ expr, legend string }

// limit is a value from which on a color applies.
type limit struct {
	from  float64
	color string
}

// source is the data source that the user selects.
var source = map[string]any{"type": "prometheus", "uid": "${datasource}"}

// Dimensions of panels on the grid of 24 columns.
const (
	columns     = 24
	statWidth   = 6
	statHeight  = 4
	panelWidth  = 12
	panelHeight = 8
)

// model returns the dashboard in the format of Grafana.
func (d *dashboard) model() map[string]any {
	panels := make([]any, 0, len(d.panels))
	x, y, row := 0, 0, 0
	for i, p := range d.panels {
		width, height := panelWidth, panelHeight
		if p.kind == stat {
			width, height = statWidth, statHeight
		}
		if x+width > columns || row != 0 && row != height {
			x, y = 0, y+row
		}
		row = height
		m := p.model()
		m["id"], m["gridPos"] = i+1, map[string]int{"x": x, "y": y, "w": width, "h": height}
		panels = append(panels, m)
		x += width
	}
	return map[string]any{
		"uid": "plimsoll-" + d.name, "title": d.title, "description": d.description,
		"tags": []string{"kubernetes", "plimsoll"}, "schemaVersion": schemaVersion, "version": 1,
		"editable": true, "graphTooltip": 1, "refresh": "1m", "timezone": "",
		"time":        map[string]string{"from": "now-6h", "to": "now"},
		"annotations": map[string]any{"list": []any{}},
		"links": []any{
			map[string]any{
				"type":        "dashboards",
				"title":       "Plimsoll",
				"tags":        []string{"plimsoll"},
				"asDropdown":  true,
				"includeVars": false,
				"keepTime":    true,
			},
		},
		"templating": map[string]any{"list": d.variables()},
		"panels":     panels,
	}
}

// variables returns the variables: the data source, the jobs and the choices.
func (d *dashboard) variables() []any {
	list := []any{map[string]any{
		"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
		"hide": 0, "refresh": 1, "current": map[string]any{},
	}}
	for _, c := range append([]choice{{"job", d.jobs}}, d.choices...) {
		values := fmt.Sprintf("label_values(%s, %s)", c.metric, c.name)
		list = append(list, map[string]any{
			"name": c.name, "label": c.name, "type": "query", "datasource": source, "hide": 0,
			"definition": values, "query": map[string]string{"query": values, "refId": "variable-" + c.name},
			"includeAll": true, "allValue": ".*", "multi": true, "refresh": 2, "sort": 1,
			"current": map[string]any{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}},
		})
	}
	return list
}

// model returns the panel in the format of Grafana.
func (p *panel) model() map[string]any {
	steps := []any{map[string]any{"color": "green", "value": nil}}
	for _, l := range p.limits {
		steps = append(steps, map[string]any{"color": l.color, "value": l.from})
	}
	defaults := map[string]any{"unit": p.unit, "thresholds": map[string]any{"mode": "absolute", "steps": steps}}
	if !p.negative {
		defaults["min"] = 0
	}
	if p.max > 0 {
		defaults["max"] = p.max
	}
	drawn, options, format := timeseries, map[string]any{}, "time_series"
	switch p.kind {
	case stat:
		drawn = stat
		defaults["color"] = map[string]any{"mode": "thresholds"}
		options = map[string]any{
			"colorMode": "value", "graphMode": "area", "textMode": "auto", "justifyMode": "auto", "orientation": "auto",
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		}
	case heatmap:
		drawn, format = heatmap, "heatmap"
		options = map[string]any{
			"calculate": false,
			"cellGap":   1,
			"color":     map[string]any{"mode": "scheme", "scheme": "Oranges", "steps": 64},
			"yAxis": map[string]any{
				"unit":          p.unit,
				"axisPlacement": "left",
			},
			"tooltip":   map[string]any{"mode": "single", "yHistogram": true},
			"legend":    map[string]any{"show": true},
			"rowsFrame": map[string]any{"layout": "auto"},
		}
	case timeseries, "":
		defaults["color"] = map[string]any{"mode": "palette-classic"}
		style := "off"
		if len(p.limits) > 0 {
			style = "dashed"
		}
		defaults["custom"] = map[string]any{
			"drawStyle": "line", "lineWidth": 1, "fillOpacity": 8, "showPoints": "never", "spanNulls": false,
			"thresholdsStyle": map[string]any{"mode": style},
		}
		options = map[string]any{
			"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		}
	}
	targets := make([]any, 0, len(p.queries))
	for i, q := range p.queries {
		targets = append(targets, map[string]any{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend,
			"editorMode": "code", "format": format, "instant": false, "range": true,
		})
	}
	return map[string]any{
		"title": p.title, "description": p.description, "type": drawn, "datasource": source,
		"fieldConfig": map[string]any{"defaults": defaults, "overrides": []any{}}, "options": options, "targets": targets,
	}
}
