// Package prometheus runs a Prometheus server on 127.0.0.1 for tests, and simulates node-exporters.
package prometheus

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/subprocess"
)

// programVariable is the environment variable with the path of the server. Without it the server is found with
// PATH.
const programVariable = "PLIMSOLL_PROMETHEUS"

// Target is a scrape target.
type Target struct {
	// Address is the host and port, Path the path of the metrics.
	Address, Path string
	// Labels are added to all series.
	Labels map[string]string
}

// Server is a running Prometheus server.
type Server struct {
	// Address is the URL of the server.
	Address string
	dir     string
	process *subprocess.Process
}

// startTimeout bounds the time until the server is ready, which takes about one second.
const startTimeout = 2 * time.Minute

// Find returns the path of the server, or an error that says how to install it.
func Find() (string, error) {
	name := os.Getenv(programVariable)
	if name == "" {
		name = "prometheus"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: install Prometheus (on Debian and Ubuntu: apt-get install prometheus) or name the program in %s",
			err, programVariable)
	}
	return path, nil
}

// Start starts a server that scrapes the targets, and waits until it is ready. It runs until Stop is
// called or ctx ends.
func Start(ctx context.Context, targets []Target, interval time.Duration) (_ *Server, err error) {
	program, err := Find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "plimsoll-prometheus-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	config := filepath.Join(dir, "prometheus.yaml")
	if err := writeConfig(config, targets, interval); err != nil {
		return nil, err
	}
	port, err := subprocess.FreePort()
	if err != nil {
		return nil, err
	}
	s.Address = fmt.Sprintf("http://127.0.0.1:%d", port)
	if err := s.start(program, config, port); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, s.Stop)
	return s, s.await(ctx)
}

// start starts the process.
func (s *Server) start(program, config string, port int) error {
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(program,
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(s.dir, "data"),
		fmt.Sprintf("--web.listen-address=127.0.0.1:%d", port), "--query.lookback-delta=1m")
	command.Stdout, command.Stderr = log, log
	s.process, err = subprocess.Start(command)
	return err
}

// await waits until the server is ready.
func (s *Server) await(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.process.Exited():
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return false, fmt.Errorf("prometheus exited; its log:\n%s", log)
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Address+"/-/ready", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // the server does not listen yet
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for Prometheus: %w", err)
	}
	return nil
}

// Stop stops the server and removes its files. It may be called more than once.
func (s *Server) Stop() {
	if s.process != nil {
		s.process.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

// writeConfig writes the server's configuration.
func writeConfig(path string, targets []Target, interval time.Duration) error {
	machines := []any{}
	for _, target := range targets {
		labels := map[string]string{"__metrics_path__": target.Path}
		maps.Copy(labels, target.Labels)
		machines = append(machines, map[string]any{"targets": []string{target.Address}, "labels": labels})
	}
	text := fmt.Sprintf("%dms", interval.Milliseconds())
	raw, err := yaml.Marshal(map[string]any{
		"global":         map[string]string{"scrape_interval": text, "scrape_timeout": text},
		"scrape_configs": []any{map[string]any{"job_name": "node-exporter", "static_configs": machines}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}
