//go:build foreign

package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// dashboard has the fields of a dashboard that are tested.
type dashboard struct {
	UID, Title, Description string
	SchemaVersion           int
	Templating              struct {
		List []struct {
			Name, Type, Definition string
		}
	}
	Panels []struct {
		ID                       int
		Title, Description, Type string
		GridPos                  struct{ X, Y, W, H int }
		Datasource               struct{ UID string }
		FieldConfig              struct{ Defaults struct{ Unit string } }
		Targets                  []struct {
			RefID, Expr string
			Datasource  struct{ UID string }
		}
	}
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob("../../charts/plimsoll/files/dashboards/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d dashboards: %v", len(files), err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must.Succeed(t, err)
		var d dashboard
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = d
	}
	return all
}

// Replacements of the variables of Grafana.
var chosen = strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$policy", ".*")

// TestQueriesOfDashboards checks that queries are valid and use only registered metrics.
func TestQueriesOfDashboards(t *testing.T) {
	names := known(t)
	var queries []string
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				query := chosen.Replace(target.Expr)
				if strings.Contains(query, "$") {
					t.Errorf("%s: %s: unknown variable in %s", file, p.Title, query)
				}
				queries = append(queries, query)
				found := metricsIn(target.Expr)
				if len(found) == 0 {
					t.Errorf("%s: %s: no metric in %s", file, p.Title, target.Expr)
				}
				for _, name := range found {
					if !names[name] {
						t.Errorf("%s: %s: %s is not registered", file, p.Title, name)
					}
				}
			}
		}
		for _, variable := range d.Templating.List {
			metric, _, _ := strings.Cut(strings.TrimPrefix(variable.Definition, "label_values("), ", ")
			if variable.Type != "query" {
				continue
			}
			queries = append(queries, metric)
			for _, name := range metricsIn(metric) {
				if !names[name] {
					t.Errorf("%s: $%s: %s is not registered", file, variable.Name, name)
				}
			}
		}
	}
	parse(t, queries)
}

// TestDashboardPanels checks that each panel has a title, a description and a unit, and that panels do not
// overlap.
func TestDashboardPanels(t *testing.T) {
	uids := map[string]string{}
	for file, d := range dashboards(t) {
		if d.UID == "" || d.Title == "" || d.Description == "" || d.SchemaVersion < 39 || uids[d.UID] != "" {
			t.Errorf("%s: uid %q, title %q, description %q, schema version %d", file, d.UID, d.Title, d.Description, d.SchemaVersion)
		}
		uids[d.UID] = file
		if len(d.Templating.List) == 0 || d.Templating.List[0].Type != "datasource" {
			t.Errorf("%s: no datasource to choose", file)
		}
		ids, titles, cells := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if p.ID == 0 || ids[p.ID] || p.Title == "" || titles[p.Title] || p.Description == "" || p.FieldConfig.Defaults.Unit == "" ||
				len(p.Targets) == 0 {
				t.Errorf("%s: panel %d %q: want its own id and title, a description, a unit and queries", file, p.ID, p.Title)
			}
			ids[p.ID], titles[p.Title] = true, true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other, taken := cells[[2]int{x, y}]; taken || x >= 24 {
						t.Fatalf("%s: %q stands on %q, or beside the page", file, p.Title, other)
					}
					cells[[2]int{x, y}] = p.Title
				}
			}
			refs := map[string]bool{}
			for _, target := range p.Targets {
				if target.Datasource.UID != "${datasource}" || p.Datasource.UID != "${datasource}" || refs[target.RefID] {
					t.Errorf("%s: %q: datasource %q, reference %q", file, p.Title, target.Datasource.UID, target.RefID)
				}
				refs[target.RefID] = true
			}
		}
	}
}
