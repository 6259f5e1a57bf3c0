package record

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answer writes an error as Prometheus does.
func answer(w http.ResponseWriter, status int, kind, message string) bool {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"status":"error","errorType":%q,"error":%q}`, kind, message)
	return true
}

// intercept answers a query, or returns false.
type intercept func(w http.ResponseWriter, query string, from, to, step float64) bool

// every returns an intercept that answers every nth query.
func (f *fakeServer) every(n int, answer func(w http.ResponseWriter)) intercept {
	return func(w http.ResponseWriter, _ string, _, _, _ float64) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.queries%n != 0 {
			return false
		}
		answer(w)
		return true
	}
}

// TestServerFaults records from servers that refuse, time out, fail or cut off responses: the recording is the same, and log lines
// explain the delay.
func TestServerFaults(t *testing.T) {
	pods, nodes := scenario()
	for name, tc := range map[string]struct {
		intercept func(f *fakeServer) intercept
		line      string
	}{
		"a limit of samples": {func(*fakeServer) intercept {
			return func(w http.ResponseWriter, _ string, from, to, _ float64) bool {
				return to-from > 600 && answer(w, http.StatusUnprocessableEntity, "execution",
					"query processing would load too many samples into memory in query execution")
			}
		}, "too many samples"},
		"a timeout of the server": {func(*fakeServer) intercept {
			return func(w http.ResponseWriter, _ string, from, to, _ float64) bool {
				return to-from > 400 && answer(w, http.StatusServiceUnavailable, "timeout", "query timed out in expression evaluation")
			}
		}, "timed out"},
		"a limit of the response in a proxy": {func(*fakeServer) intercept {
			return func(w http.ResponseWriter, query string, from, to, _ float64) bool {
				if to-from <= 120 || !strings.Contains(query, "container_") {
					return false
				}
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return true
			}
		}, "reading it in parts"},
		"errors every third time": {func(f *fakeServer) intercept {
			return f.every(3, func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) })
		}, "502"},
		"throttling": {func(f *fakeServer) intercept {
			return f.every(4, func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
			})
		}, "429"},
		"responses that are cut off": {func(f *fakeServer) intercept {
			return f.every(5, func(w http.ResponseWriter) {
				fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"namespace":"default"`)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
		}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			server := startFake(t, pods, nodes)
			server.intercept = tc.intercept(server)
			r, lines := record(t, server.config(120), Options{})
			checkScenario(t, r, pods, 120)
			if !strings.Contains(strings.Join(lines, "\n"), tc.line) {
				t.Errorf("no line about %q: %q", tc.line, lines)
			}
		})
	}
}

// TestFatal checks that errors that will not pass stop the recording at once, with the series and the reason.
func TestFatal(t *testing.T) {
	pods, nodes := scenario()
	for name, tc := range map[string]struct {
		intercept intercept
		want      string
	}{
		"another server": {func(w http.ResponseWriter, _ string, _, _, _ float64) bool {
			fmt.Fprint(w, "<html>")
			return true
		}, "kube_pod_info: found no Prometheus at http://127.0.0.1:"},
		"a path that is not found": {func(w http.ResponseWriter, _ string, _, _, _ float64) bool {
			http.NotFound(w, nil)
			return true
		}, ": is the address correct, such as http://localhost:9090? client_error: client error: 404: 404 page not found"},
		"another API": {func(w http.ResponseWriter, _ string, _, _, _ float64) bool {
			fmt.Fprint(w, `{"status":"ok"}`)
			return true
		}, "failed 3 times"},
		"a server that always fails": {func(w http.ResponseWriter, _ string, _, _, _ float64) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}, "failed 3 times: status 500 Internal Server Error"},
		"a query that is not understood": {func(w http.ResponseWriter, query string, _, _, _ float64) bool {
			return strings.Contains(query, "kube_node_info") && answer(w, http.StatusBadRequest, "bad_data", "parse error: unknown function")
		}, "kube_node_info: bad_data: parse error: unknown function"},
		"no access": {func(w http.ResponseWriter, _ string, _, _, _ float64) bool {
			return answer(w, http.StatusUnauthorized, "", "no token")
		}, "no token\"}: credentials are in tokenFile, certFile or headersFile of the load source"},
		"nothing": {func(w http.ResponseWriter, _ string, _, _, step float64) bool {
			newResult(w, step > 0).end()
			return true
		}, "check that kube-state-metrics is scraped"},
	} {
		t.Run(name, func(t *testing.T) {
			server := startFake(t, pods, nodes)
			server.intercept = tc.intercept
			_, err := Record(t.Context(), io.Discard, server.config(60), Options{retryDelay: 1, Progress: func(p Progress) {
				if p.Pods+p.Nodes == 0 {
					t.Errorf("progress without nodes and pods: %+v", p)
				}
			}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestRefusedConnection checks that a server that cannot be reached at the start is an error at once.
func TestRefusedConnection(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	config := (&fakeServer{}).emptyConfig()
	for address, want := range map[string]string{
		"http://127.0.0.1:1":                             "Prometheus at http://127.0.0.1:1: no connection: check the address: ",
		strings.Replace(plain.URL, "http:", "https:", 1): "http: server gave HTTP response to HTTPS client",
	} {
		config.Server.Address = address
		_, err := Record(t.Context(), io.Discard, config, Options{Log: func(line string) { t.Error(line) }})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
