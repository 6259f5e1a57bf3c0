package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dashboard has the fields of a dashboard for Grafana that are drawn, and the data of its panels.
type dashboard struct {
	Title, Description string
	Panels             []*panel
	// Start and End are the range of the data.
	Start, End time.Time `json:"-"`
}

// panel is one panel.
type panel struct {
	Title, Type string
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Max        float64
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
	}
	Targets []struct{ Expr, LegendFormat string }
	// Series are the results of the queries.
	Series []series `json:"-"`
}

// series is a time series with its legend. Values that are no number are left out.
type series struct {
	Legend string
	Points []point
}

// point is a value at a number of seconds after the start.
type point struct{ Seconds, Value float64 }

// variables are the values of Grafana's variables: everything.
var variables = strings.NewReplacer("$__rate_interval", rateInterval, "$job", ".*", "$policy", ".*")

// read reads the data of all panels from a Prometheus server.
func (d *dashboard) read(ctx context.Context, address string, start, end time.Time) error {
	d.Start, d.End = start, end
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			found, err := query(ctx, address, variables.Replace(target.Expr), target.LegendFormat, start, end)
			if err != nil {
				return fmt.Errorf("panel %s: %w", p.Title, err)
			}
			p.Series = append(p.Series, found...)
		}
		if p.FieldConfig.Defaults.Unit == "bytes" {
			p.scale(1.0 / (1 << 30)) // to GiB, so that the ticks are round numbers
		}
	}
	return nil
}

// scale multiplies all values.
func (p *panel) scale(by float64) {
	for i := range p.Series {
		for j := range p.Series[i].Points {
			p.Series[i].Points[j].Value *= by
		}
	}
}

// answer is the response of Prometheus to a query over a range.
type answer struct {
	Error string
	Data  struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
}

// query returns the result of a query over a range.
func query(ctx context.Context, address, expr, legend string, start, end time.Time) ([]series, error) {
	values := url.Values{
		"query": {expr}, "start": {fmt.Sprint(start.Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {"1"},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/v1/query_range?"+values.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var a answer
	err = json.NewDecoder(io.LimitReader(response.Body, 16<<20)).Decode(&a)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	return a.series(legend, float64(start.Unix())), nil
}

// series returns the time series with values, sorted by their legends.
func (a *answer) series(legend string, start float64) []series {
	var out []series
	for _, result := range a.Data.Result {
		s := series{Legend: legendOf(legend, result.Metric)}
		for _, v := range result.Values {
			at, isNumber := v[0].(float64)
			text, isText := v[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if isNumber && isText && err == nil && !math.IsNaN(value) && !math.IsInf(value, 0) {
				s.Points = append(s.Points, point{at - start, value})
			}
		}
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b series) int { return strings.Compare(a.Legend, b.Legend) })
	return out
}

var label = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// legendOf replaces {{label}} by the value of the label.
func legendOf(format string, metric map[string]string) string {
	return label.ReplaceAllStringFunc(format, func(s string) string { return metric[label.FindStringSubmatch(s)[1]] })
}
