package main

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// panelTitle matches the title of a panel in a picture.
var panelTitle = regexp.MustCompile(`class="title"[^>]*>([^<]*)<`)

// TestPublished checks that docs/metrics.md shows a picture of each dashboard, with panels that the dashboard has, and names
// the other panels below it.
func TestPublished(t *testing.T) {
	project := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(project, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	dashboards, err := readDashboards(filepath.Join(project, "charts", "plimsoll", "files", "dashboards"))
	if err != nil || len(dashboards) < 4 {
		t.Fatalf("%d dashboards: %v", len(dashboards), err)
	}
	for name, d := range dashboards {
		raw, err := os.ReadFile(filepath.Join(project, "docs", "dashboards", name+".svg"))
		if err != nil {
			t.Fatalf("%v: run make dashboard-pictures", err)
		}
		picture := string(raw)
		check(t, name, picture)
		var missing []string
		for _, p := range d.Panels {
			missing = append(missing, p.Title)
		}
		titles := panelTitle.FindAllStringSubmatch(picture, -1)
		if len(titles) < 8 {
			t.Errorf("%s: %d panels, want at least 8", name, len(titles))
		}
		for _, title := range titles {
			shown, isShortened := strings.CutSuffix(html.UnescapeString(title[1]), "…")
			i := slices.IndexFunc(missing, func(panel string) bool {
				return panel == shown || isShortened && strings.HasPrefix(panel, strings.TrimSpace(shown))
			})
			if i < 0 {
				t.Errorf("%s: the dashboard has no panel %q: run make dashboard-pictures", name, shown)
				continue
			}
			missing = slices.Delete(missing, i, i+1)
		}
		want := "(dashboards/" + name + ".svg)\n"
		if len(missing) > 0 {
			want += "\nThe run has no data for *" + strings.Join(missing, "*, *") + "*.\n"
		}
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/metrics.md lacks\n%s", want)
		}
	}
}

func TestReadDashboardsErrors(t *testing.T) {
	empty, invalid := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(invalid, "a.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		empty:   empty + ": found no dashboards",
		invalid: filepath.Join(invalid, "a.json") + ": unexpected end of JSON input",
	} {
		if _, err := readDashboards(folder); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
