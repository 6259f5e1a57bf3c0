package shadow

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// serve serves windows and returns the address.
func serve(t *testing.T, windows []*Window) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	go func() {
		_ = Serve(t.Context(), listener, func() *Report { return NewReport(windows, begin, begin.AddDate(0, 0, 7)) })
	}()
	return "http://" + listener.Addr().String()
}

// TestHosts refuses requests that a page of another site makes by a name of its own, and escapes names.
func TestHosts(t *testing.T) {
	windows := []*Window{window(0, run(1), run(1), run())}
	windows[0].Measured.Overloaded.Nodes[0].Name = "<script>alert(1)</script>"
	address := serve(t, windows)
	for host, status := range map[string]int{
		"": http.StatusOK, "localhost:99": http.StatusOK, "[::1]": http.StatusOK, "evil.example": http.StatusMisdirectedRequest,
		"10.0.0.1:80": http.StatusMisdirectedRequest,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/", nil)
		must.Succeed(t, err)
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		must.Succeed(t, err)
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != status || bytes.Contains(body, []byte("<script>")) {
			t.Errorf("host %q: %s, %v", host, response.Status, err)
		}
	}
}
