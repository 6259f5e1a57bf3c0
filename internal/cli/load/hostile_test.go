package load

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestPartialAnswers checks that what a server says about partial answers is a warning: Thanos in warnings, VictoriaMetrics in a field.
func TestPartialAnswers(t *testing.T) {
	for head, want := range map[string]string{
		`{"status":"success","warnings":["no store: zone b"],`: "the server warned: no store: zone b",
		`{"status":"success","isPartial":true,`:                "the server warned: the answer is partial (isPartial)",
		`{"status":"success","isPartial":false,`:               "",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			const data = `%s"data":{"resultType":"vector","result":[{"metric":{"node":"a"},"value":[%d,"0.5"]}]}}`
			fmt.Fprintf(w, data, head, time.Now().Unix())
		}))
		defer server.Close()
		var stderr bytes.Buffer
		cmd := NewCommand()
		cmd.SetOut(io.Discard)
		cmd.SetErr(&stderr)
		cmd.SetArgs([]string{"top", "--provider=Prometheus", "--address=" + server.URL})
		err := cmd.ExecuteContext(t.Context())
		if got := stderr.String(); err != nil || strings.Count(got, "server warned") != min(len(want), 1) || !strings.Contains(got, want) {
			t.Errorf("%s: %v, %q, want %q", head, err, got, want)
		}
	}
}

// TestHostileFeed checks that names and errors of a load source cannot control the terminal, in any output
// format, and that a name cannot add a line.
func TestHostileFeed(t *testing.T) {
	const name = `node\u001b[2J\u009b31m\nfake\u202e\u0007`
	feed := filepath.Join(t.TempDir(), "load.json")
	for what, tc := range map[string]struct{ content, want string }{
		"names": {
			fmt.Sprintf(`{"timestamp":%d,"source":"%s","data":{"NodeMetricsMap":{"%s":{"metrics":[{"type":"CPU","value":50}]}}}}`,
				time.Now().Unix(), name, name),
			`fake`,
		},
		"error": {`{"timestamp":1,"data":{"NodeMetricsMap":{"` + name + `":1}}}`, `data.NodeMetricsMap["node\x1b`},
	} {
		must.Succeed(t, os.WriteFile(feed, []byte(tc.content), 0o600))
		for _, format := range []string{base.FormatTable, base.FormatJSON, base.FormatYAML} {
			var out bytes.Buffer
			cmd := NewCommand()
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetOut(&out)
			cmd.SetErr(io.Discard)
			cmd.SetArgs([]string{"top", "--provider=File", "--address=" + feed, "--output=" + format})
			err := cmd.ExecuteContext(t.Context())
			text := out.String()
			if err != nil {
				text = base.Escape(err.Error())
			}
			if !strings.Contains(text, tc.want) {
				t.Errorf("%s, %s: %q lacks %q", what, format, text, tc.want)
			}
			if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%s, %s: %q at %d is not printable", what, format, text, i)
			}
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "fake") {
					t.Errorf("%s, %s: a name adds a line: %q", what, format, text)
				}
			}
		}
	}
}
