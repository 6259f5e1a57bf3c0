package node

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestProtect expects that requests under a foreign host name or from a foreign origin are refused, and
// that no answer may be framed or read by another site.
func TestProtect(t *testing.T) {
	h := protect(8080, handler(func(context.Context) (Live, error) { return Live{Running: "secret"}, nil }))
	for name, tc := range map[string]struct {
		host, origin, method, path string
		want                       int
	}{
		"address":            {"127.0.0.1:8080", "", "GET", "/", http.StatusOK},
		"name":               {"localhost:8080", "", "GET", "/", http.StatusOK},
		"upper case":         {"LocalHost:8080", "", "GET", "/", http.StatusOK},
		"own origin":         {"127.0.0.1:8080", "http://127.0.0.1:8080", "GET", "/", http.StatusOK},
		"rebound name":       {"evil.example:8080", "", "GET", "/", http.StatusMisdirectedRequest},
		"prefix":             {"localhost:8080.evil.example", "", "GET", "/", http.StatusMisdirectedRequest},
		"other port":         {"127.0.0.1:80", "", "GET", "/", http.StatusMisdirectedRequest},
		"no port":            {"localhost", "", "GET", "/", http.StatusMisdirectedRequest},
		"no host":            {"", "", "GET", "/", http.StatusMisdirectedRequest},
		"other address":      {"0.0.0.0:8080", "", "GET", "/", http.StatusMisdirectedRequest},
		"foreign origin":     {"127.0.0.1:8080", "http://evil.example", "GET", "/", http.StatusForbidden},
		"origin of a file":   {"127.0.0.1:8080", "null", "GET", "/", http.StatusForbidden},
		"origin other port":  {"127.0.0.1:8080", "http://127.0.0.1:9090", "GET", "/", http.StatusForbidden},
		"no such page":       {"127.0.0.1:8080", "", "GET", "/other", http.StatusNotFound},
		"template":           {"127.0.0.1:8080", "", "GET", "/page.html", http.StatusNotFound},
		"method not allowed": {"127.0.0.1:8080", "", "POST", "/", http.StatusMethodNotAllowed},
	} {
		request := httptest.NewRequest(tc.method, tc.path, nil)
		request.Host = tc.host
		if tc.origin != "" {
			request.Header.Set("Origin", tc.origin)
		}
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, request)
		if answer.Code != tc.want || strings.Contains(answer.Body.String(), "secret") != (tc.want == http.StatusOK) {
			t.Errorf("%s: %d %s, want %d", name, answer.Code, answer.Body, tc.want)
		}
		policy := answer.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			answer.Header().Get("X-Frame-Options") != "DENY" || answer.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", name, answer.Header())
		}
	}
}

// TestServe expects that the page is served under the address of the listener until the context ends.
func TestServe(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	ctx, stop := context.WithCancel(t.Context())
	Serve(ctx, listener, func(context.Context) (Live, error) { return Live{}, nil })
	url := "http://" + listener.Addr().String()
	response, err := http.Get(url)
	must.Succeed(t, err)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("status %s", response.Status)
	}
	stop()
	if response, err := http.Get(url); err == nil {
		_ = response.Body.Close()
		t.Error("the page is served after the end")
	}
}
