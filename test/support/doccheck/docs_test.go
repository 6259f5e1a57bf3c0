package doccheck

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const project = "../../.."

// TestLinks expects that the targets of all links and pictures in the pages exist.
func TestLinks(t *testing.T) {
	pages, err := Pages(project)
	must.Succeed(t, err)
	links := 0
	for _, page := range pages {
		for _, link := range page.Links() {
			links++
			if err := link.Broken(project, pages); err != nil {
				t.Error(err)
			}
		}
	}
	if links < 100 {
		t.Errorf("%d links in %d pages", links, len(pages))
	}
}

// TestEveryPageIsLinked expects that each page can be reached by links from docs/index.md.
func TestEveryPageIsLinked(t *testing.T) {
	pages, err := Pages(project)
	must.Succeed(t, err)
	links := map[string][]Link{}
	for _, page := range pages {
		links[page.File] = page.Links()
	}
	reached := map[string]bool{}
	var visit func(file string)
	visit = func(file string) {
		if reached[file] {
			return
		}
		reached[file] = true
		for _, link := range links[file] {
			visit(link.File)
		}
	}
	visit("docs/index.md")
	for _, page := range pages {
		if !reached[page.File] {
			t.Errorf("%s is not linked from docs/index.md", page.File)
		}
	}
}

// TestAdvisedProfilesAreInChart expects that the chart has each profile that a page for operators advises, except kube-scheduler's own.
func TestAdvisedProfilesAreInChart(t *testing.T) {
	builtIn, err := filepath.Glob(filepath.Join(project, "internal", "whatif", "engine", "ready", "*.yaml"))
	if err != nil || len(builtIn) < 5 {
		t.Fatalf("found %d built-in profiles: %v", len(builtIn), err)
	}
	for _, page := range []string{"tuning.md", "slack.md", "slack-reference.md", "install.md", "shadow.md", "rollout.md", "load.md", "first-hour.md"} {
		text, err := os.ReadFile(filepath.Join(project, "docs", page))
		must.Succeed(t, err)
		for _, file := range builtIn {
			name := strings.TrimSuffix(filepath.Base(file), ".yaml")
			if name == "default" || !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "--profile "+name) {
				continue
			}
			if _, err := os.Stat(filepath.Join(project, "charts", "plimsoll", "generated", "profiles", name+".yaml")); err != nil {
				t.Errorf("docs/%s advises the profile %s, which the chart does not have", page, name)
			}
		}
	}
}

var target = regexp.MustCompile(`(?m)^([a-z-]+):[^=]`)

// TestMakeTargets expects that the Makefile has all targets and variables in the pages.
func TestMakeTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(project, "Makefile"))
	must.Succeed(t, err)
	targets := map[string]bool{}
	for _, found := range target.FindAllStringSubmatch(string(makefile), -1) {
		targets[found[1]] = true
	}
	programs, err := filepath.Glob(filepath.Join(project, "cmd", "*"))
	must.Succeed(t, err)
	for _, program := range programs {
		targets["bin/"+filepath.Base(program)] = true
	}
	commands, err := CommandsOf(project, "make")
	must.Succeed(t, err)
	if len(commands) < 10 {
		t.Errorf("found %d commands, want at least 10", len(commands))
	}
	for _, command := range commands {
		for _, word := range command.Words[1:] {
			name, _, variable := strings.Cut(word, "=")
			if variable && !strings.Contains(string(makefile), "$("+name+")") || !variable && !targets[word] {
				t.Errorf("%s: the Makefile has no %s", command, word)
			}
		}
	}
}

// created are the files that earlier steps of the page create.
var created = map[string]bool{
	"-":             true, // from a pipe
	"plimsoll.yaml": true, // by helm template
}

// TestFilesForKubectl expects that the files of kubectl -f in the pages exist.
func TestFilesForKubectl(t *testing.T) {
	commands, err := CommandsOf(project, "kubectl")
	must.Succeed(t, err)
	files := 0
	for _, command := range commands {
		for i, word := range command.Words[1:] {
			if word != "-f" {
				continue
			}
			files++
			file := command.Words[i+2]
			if _, err := os.Stat(filepath.Join(project, file)); err != nil && !created[file] {
				t.Errorf("%s: %s does not exist", command, file)
			}
		}
	}
	if files < 4 {
		t.Errorf("found %d files, want at least 4", files)
	}
}

func TestBrokenLinks(t *testing.T) {
	pages := []Page{
		{
			"docs/a.md",
			"[there](b.md) [here](#first) ![](none.png)\n# First\n[out](../../x) [no](b.md#no) [it](b.md#see-it) [second](b.md#twice-1) [flag](b.md#reschedule-all-pods---reschedule) `[code](gone)` [web](https://example.com/x)\n\n    [block](gone)\n",
		},
		{"docs/b.md", "# B\n## Twice\n## Twice\n## Reschedule all pods: `--reschedule`\n### See [it](x.md)\n```\n# no\n```\n"},
	}
	folder := t.TempDir()
	must.Succeed(t, os.Mkdir(filepath.Join(folder, "docs"), 0o700))
	for _, page := range pages {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, page.File), []byte(page.Text), 0o600))
	}
	var got []string
	for _, link := range pages[0].Links() {
		if err := link.Broken(folder, pages); err != nil {
			got = append(got, err.Error())
		}
	}
	want := []string{
		"docs/a.md:1: link target docs/none.png does not exist",
		"docs/a.md:3: link target ../x is outside the project",
		"docs/a.md:3: link target docs/b.md#no: no such heading",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestCommands(t *testing.T) {
	page := Page{File: "docs/p.md", Text: strings.Join([]string{
		"See `plimsoll slack status`, `kubectl get pods -o yaml | kubectl plimsoll score -f -`; `plimsoll` alone is none.", // 1
		"", //
		"    plimsoll compare --fail-on 'a[\"b\"] > 0' \\",          // 3
		"      --seeds 5 | jq .x > out",                             //
		"    A=b make demo ARGS='--once -o json'      # a comment",  // 5
		"    source <(plimsoll completion bash)",                    // 6
		"    until plimsoll slack status x; do sleep 5; done",       // 7
		"    helm install --set image.tag=$(git describe --always)", // 8
		"    plimsolls are none",                                    // 9
		"",
		"```console", // 11
		"$ plimsoll version",
		"plimsoll v1",
		"```",
		"```yaml", // 15
		"plimsoll score: none",
		"```",
		"- plimsoll in a list is none",
		"    load-watcher", // no empty line before: it belongs to the list
		"",
		"    load-watcher", // 21
	}, "\n")}
	commands, err := page.Commands()
	must.Succeed(t, err)
	var got []string
	for _, c := range commands {
		got = append(got, fmt.Sprintf("%d %q inline=%t shown=%t", c.Line, c.Words, c.Inline, c.Shown))
	}
	want := []string{
		`1 ["plimsoll" "slack" "status"] inline=true shown=false`,
		`1 ["kubectl" "get" "pods" "-o" "yaml"] inline=true shown=false`,
		`1 ["plimsoll" "score" "-f" "-"] inline=true shown=false`,
		`3 ["plimsoll" "compare" "--fail-on" "a[\"b\"] > 0" "--seeds" "5"] inline=false shown=false`,
		`5 ["make" "demo" "ARGS=--once -o json"] inline=false shown=false`,
		`6 ["plimsoll" "completion" "bash"] inline=false shown=false`,
		`7 ["plimsoll" "slack" "status" "x"] inline=false shown=false`,
		`8 ["helm" "install" "--set" "image.tag=printed"] inline=false shown=false`,
		`12 ["plimsoll" "version"] inline=false shown=true`,
		`21 ["load-watcher"] inline=false shown=false`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, err := (Page{File: "p.md", Text: "\n    plimsoll score 'open\n"}).Commands(); err == nil ||
		!strings.HasPrefix(err.Error(), `p.md:2: syntax error in "plimsoll score 'open"`) {
		t.Errorf("an open quote: %v", err)
	}
}

// TestVersionsOfServers expects that the page about compatibility has the versions of the servers and clients that the tests run.
func TestVersionsOfServers(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(project, "docs/compatibility.md"))
	must.Succeed(t, err)
	for module, tc := range map[string]struct{ path, text string }{
		"karpenter":        {"sigs.k8s.io/karpenter", "Karpenter %s"},
		"kubestatemetrics": {"k8s.io/kube-state-metrics/v2", "| kube-state-metrics | %s"},
		"loadwatcher":      {"github.com/paypal/load-watcher", "paypal/load-watcher %s"},
		"metricsserver":    {"sigs.k8s.io/metrics-server", "| metrics-server | %s"},
	} {
		file, err := os.ReadFile(filepath.Join(project, "test", module, "go.mod"))
		must.Succeed(t, err)
		version := regexp.MustCompile(regexp.QuoteMeta(tc.path) + ` v(\S+)`).FindSubmatch(file)
		if version == nil {
			t.Fatalf("test/%s/go.mod lacks %s", module, tc.path)
		}
		if want := fmt.Sprintf(tc.text, version[1]); !strings.Contains(string(page), want) {
			t.Errorf("docs/compatibility.md lacks %q, the version in test/%s/go.mod", want, module)
		}
	}
}
