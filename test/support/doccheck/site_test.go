//go:build foreign

package doccheck

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"golang.org/x/net/html"

	"github.com/plimsoll-k8s/plimsoll/test/support/browser"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// document is a page of the site: the identifiers of its elements, the addresses of its links and resources, and its paragraphs
// that begin with text.
type document struct {
	ids               map[string]bool
	links, paragraphs []string
}

// TestSite tests the site as mkdocs builds it.
func TestSite(t *testing.T) {
	folder := buildSite(t)
	documents := readSite(t, folder)
	t.Run("links", func(t *testing.T) { checkLinks(t, folder, documents) })
	t.Run("commands", func(t *testing.T) { checkCommands(t, documents) })
	t.Run("browser", func(t *testing.T) { checkInBrowser(t, folder) })
}

// buildSite builds the site and returns its folder.
func buildSite(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	cmd := exec.CommandContext(
		t.Context(), "mkdocs", "build", "--strict", "--quiet", "--config-file", project+"/mkdocs.yml", "--site-dir", folder,
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v (`make test-all` installs mkdocs):\n%s", err, out)
	}
	return folder
}

// readSite returns the documents of a site by their paths.
func readSite(t *testing.T, folder string) map[string]document {
	t.Helper()
	documents := map[string]document{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" || name == "404.html" {
			return err
		}
		file, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		defer file.Close()
		root, err := html.Parse(file)
		if err != nil {
			return err
		}
		d := document{ids: map[string]bool{}}
		for node := range root.Descendants() {
			if first := node.FirstChild; node.Data == "p" && first != nil && first.Type == html.TextNode {
				d.paragraphs = append(d.paragraphs, strings.TrimSpace(first.Data))
			}
			for _, attribute := range node.Attr {
				switch attribute.Key {
				case "id":
					d.ids[attribute.Val] = true
				case "href", "src":
					d.links = append(d.links, attribute.Val)
				}
			}
		}
		documents[name] = d
		return nil
	})
	must.Succeed(t, err)
	return documents
}

// checkLinks checks that each link within the site leads to a file and to a section of it, and that pages load nothing
// from other servers.
func checkLinks(t *testing.T, folder string, documents map[string]document) {
	if len(documents) < 40 {
		t.Errorf("%d pages, want those of docs", len(documents))
	}
	for name, d := range documents {
		for _, link := range d.links {
			target, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if target.Host != "" {
				continue
			}
			file := name
			if target.Path != "" {
				file = path.Clean(path.Join(path.Dir(name), target.Path))
			}
			if info, err := os.Stat(filepath.Join(folder, file)); err != nil {
				t.Errorf("%s: %s leads nowhere", name, link)
				continue
			} else if info.IsDir() {
				file = path.Join(file, "index.html")
			}
			if other, ok := documents[file]; ok && target.Fragment != "" && !other.ids[target.Fragment] {
				t.Errorf("%s: %s: %s has no section %q", name, link, file, target.Fragment)
			}
		}
	}
}

// checkCommands checks that no paragraph begins with a command: a block in a list that is indented too little becomes one.
func checkCommands(t *testing.T, documents map[string]document) {
	for name, d := range documents {
		for _, paragraph := range d.paragraphs {
			if program, rest, _ := strings.Cut(paragraph, " "); slices.Contains(Programs, program) && rest != "" {
				t.Errorf("%s: a paragraph begins with the command %s %s", name, program, rest)
			}
		}
	}
}

// checkInBrowser opens pages of each kind in windows of a desktop, a tablet and a phone, light and dark: nothing is wider
// than the window, axe-core finds no violation, nothing is requested from other servers, and the search finds a page.
func checkInBrowser(t *testing.T, folder string) {
	var foreign []string
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer server.Close()
	ctx := browser.Start(t)
	for _, w := range browser.Windows {
		t.Run(w.String(), func(t *testing.T) {
			tab, closeTab := chromedp.NewContext(ctx)
			defer closeTab()
			limited, cancel := context.WithTimeout(tab, browser.Timeout)
			defer cancel()
			for _, page := range []string{"index.html", "tutorial.html", "slack.html", "cli.html"} {
				w.Open(t, limited, server.URL+"/"+page)
				// The theme keeps the colors of the window before.
				browser.Evaluate[bool](t, limited, "localStorage.clear(), true")
				w.Open(t, limited, server.URL+"/"+page)
				browser.ExpectUsable(t, limited, w, "site-"+page)
				foreign = append(foreign, browser.Evaluate[[]string](t, limited,
					`performance.getEntriesByType("resource").map(r => r.name).filter(n => new URL(n).host !== location.host)`)...)
			}
		})
	}
	if len(foreign) > 0 {
		t.Errorf("requested %s", strings.Join(foreign, ", "))
	}
	limited, cancel := context.WithTimeout(ctx, browser.Timeout)
	defer cancel()
	browser.Windows[0].Open(t, limited, server.URL+"/index.html?q=placeholder")
	const search = `new Promise((resolve, reject) => {
		const end = Date.now() + 60000;
		const look = () => {
			const found = [...document.querySelectorAll(".md-search-result__link")].map(a => new URL(a.href).pathname);
			if (found.length > 0) resolve(found);
			else if (Date.now() > end) reject(new Error("no results"));
			else requestAnimationFrame(look);
		};
		look();
	})`
	if found := strings.Join(browser.Evaluate[[]string](t, limited, search), " "); !strings.Contains(found, "/slack.html") {
		t.Errorf("the search for placeholder finds %s", found)
	}
}
