//go:build foreign

package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/prometheus"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestDashboardOfLoad expects that each query of the dashboard Load has a result when Prometheus scrapes a
// load watcher.
func TestDashboardOfLoad(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "load.json")
	var message strings.Builder
	busy := load.Utilization{Mean: 0.5, StdDev: 0.1}
	must.Succeed(t, wire.Encode(&message, load.Reading{
		Time: time.Now(), Window: time.Minute,
		Nodes: map[string]load.Node{"a": {CPU: busy, HasCPU: true, Memory: busy, HasMemory: true}},
	}))
	must.Succeed(t, os.WriteFile(file, []byte(message.String()), 0o600))
	port, watcher := testcluster.StartLoadWatcher(t, "--provider=File", "--address="+file, "--poll-interval=1s")
	address := fmt.Sprintf("127.0.0.1:%d", port)
	server, err := prometheus.Start(t.Context(), []prometheus.Target{{
		Address: address, Path: "/metrics",
		Labels: map[string]string{"job": "load-watcher"},
	}}, 500*time.Millisecond)
	must.Succeed(t, err)
	t.Cleanup(server.Stop)
	raw, err := os.ReadFile("../../../charts/plimsoll/files/dashboards/load.json")
	must.Succeed(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	must.Succeed(t, json.Unmarshal(raw, &dashboard))
	asked := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			if strings.Contains(target.Expr, "plimsoll_pod_usage_") {
				continue // a scheduler with podUsage has these metrics, a load watcher does not
			}
			asked++
			query := strings.NewReplacer("$__rate_interval", "10s", "$job", "load-watcher").Replace(target.Expr)
			eventually.True(t, panel.Title+": no result for "+query, watcher, func(ctx context.Context) (bool, error) {
				// Requests keep the request metrics changing.
				if err := testcluster.Get(ctx, "http://"+address+"/watcher", nil); err != nil {
					return false, nil //nolint:nilerr // the load watcher may not have read load yet
				}
				var answer struct {
					Data struct{ Result []struct{ Value [2]any } }
				}
				err := testcluster.Get(ctx, server.Address+"/api/v1/query?query="+url.QueryEscape(query), &answer)
				if err != nil {
					return false, err
				}
				for _, series := range answer.Data.Result {
					if series.Value[1] != "NaN" {
						return true, nil
					}
				}
				return false, nil
			})
		}
	}
	if asked < 10 {
		t.Errorf("found only %d queries", asked)
	}
	watcher.Stop(t)
}
