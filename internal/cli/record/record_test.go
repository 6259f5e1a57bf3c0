package record

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestFlagErrors(t *testing.T) {
	existing := filepath.Join(t.TempDir(), "old.ndjson.gz")
	must.Succeed(t, os.WriteFile(existing, nil, 0o600))
	for args, want := range map[string]string{
		"":                                                 "--prometheus: required: the URL of a Prometheus server, such as http://localhost:9090, or --follow",
		"--prometheus http://x":                            "--output: required: the file to write, such as week.ndjson.gz",
		"--prometheus x -o OUT":                            `--prometheus "x": must be a URL like`,
		"--prometheus http://x -o OUT --from 7":            `--from: invalid value "7": must be now, a duration before now such as 7d or 12h, or a time`,
		"--prometheus http://x -o OUT --to soon":           `--to: invalid value "soon": must be now, a duration`,
		"--prometheus http://x -o OUT --from now":          "--to: invalid value",
		"--prometheus http://x -o OUT --step 1ms":          "--step: invalid value 1ms: must be whole seconds, at least 1s",
		"--prometheus http://x -o OUT --from 1h --step 2h": "--step: invalid value 2h0m0s: must be at most the time to record, ",
		"--prometheus http://x -o OUT --selector a=b":      `--selector: invalid value "a=b": must be matchers such as cluster="prod"`,
		"--prometheus http://x -o -":                       `--output: invalid value "-": must be the name of a file, not a format or -; ./- is a file`,
		"--prometheus http://x -o OUT --chunk 1ms":         "--chunk: invalid value",
		"--prometheus http://x -o EXISTING":                "--output: " + existing + " already exists; --force replaces it",
		"--prometheus http://x -o /nowhere/x":              "--output: folder /nowhere does not exist",

		"--prometheus http://x -o EXISTING --force --step 1ms": "--step: invalid value 1ms",
		"--prometheus http://x -o OUT --context a":             "--context: requires --follow",
		"--follow":                     "--output: required: a directory for recordings",
		"--follow -o OUT --timeout 1m": "--timeout: not allowed together with --follow",
	} {
		cmd := NewCommand()
		args = strings.NewReplacer("OUT", filepath.Join(t.TempDir(), "x"), "EXISTING", existing).Replace(args)
		cmd.SetArgs(strings.Fields(args))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) || base.ExitCode(err, 2) != 2 {
			t.Errorf("%s: error %v, want %s", args, err, want)
		}
	}
	if _, err := os.Stat(existing); err != nil {
		t.Errorf("an invalid flag removed the existing recording: %v", err)
	}
}

// TestLoadSource reads files with a server: their matchers hold unless a flag replaces them.
func TestLoadSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.yaml")
	for name, tc := range map[string]struct{ content, args, want string }{
		"file": {
			"address: http://x\nselector: a=\"b\"\nrateWindow: 3m\nqueries: {podCPU: q, podMemory: r}\nheadersFile: h", "",
			`Prometheus http://x a="b" 3m0s q r h`,
		},
		"flags": {
			"address: http://x\nselector: a=\"b\"\nrateWindow: 3m\nqueries: {podCPU: q}",
			"--selector c", "Prometheus http://x c 3m0s q  ",
		},
		"type": {"type: SignalFx\naddress: http://x", "", `--load-source: ` + file + `: type: invalid value "SignalFx": must be Prometheus`},
	} {
		t.Run(name, func(t *testing.T) {
			must.Succeed(t, os.WriteFile(file, []byte(tc.content), 0o600))
			var o options
			cmd := &cobra.Command{}
			o.addAllFlags(cmd)
			must.Succeed(t, cmd.ParseFlags(strings.Fields("--load-source "+file+" "+tc.args)))
			err := o.readServer()
			c := &o.config.Server
			got := fmt.Sprintln(c.Type, c.Address, c.Selector, c.RateWindow.Duration, c.Queries.PodCPU, c.Queries.PodMemory, c.HeadersFile)
			if err != nil {
				got = err.Error()
			}
			if strings.TrimSuffix(got, "\n") != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// TestNoPrometheus expects that following a cluster does not start with a server that is no Prometheus or always fails, but does with one that
// has no data yet or does not run.
func TestNoPrometheus(t *testing.T) {
	for name, tc := range map[string]struct {
		status     int
		body, want string
	}{
		"Grafana":     {http.StatusOK, "<!DOCTYPE html>", "found no Prometheus at "},
		"another":     {http.StatusOK, `{"status": "ok"}`, "usage of pods: Prometheus at "},
		"failing":     {http.StatusInternalServerError, "oops", "status 500 Internal Server Error: oops"},
		"no data":     {http.StatusOK, `{"status": "success", "data": {"resultType": "vector", "result": []}}`, ""},
		"not running": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			}))
			defer server.Close()
			if tc.status == 0 {
				server.Close()
			}
			var f Following
			f.config.Server.Address = server.URL
			_, err := f.usage(t.Context(), nil)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"now": "2026-03-08T12:00:00Z", "7d": "2026-03-01T12:00:00Z", "1h30m": "2026-03-08T10:30:00Z",
		"2026-01-31T00:00:00+01:00": "2026-01-30T23:00:00Z",
	} {
		got, err := parseTime("from", text, now)
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s: %v, error %v, want %s", text, got, err, want)
		}
	}
}
