package apiproxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// server is an API server that counts writes and keeps watches open.
type server struct {
	written atomic.Int64
	// next makes a watch send another event and end.
	next chan struct{}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet:
		s.written.Add(1)
		w.WriteHeader(http.StatusCreated)
	case r.URL.Query().Get("watch") != "":
		_, _ = io.WriteString(w, "event\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-s.next:
			_, _ = io.WriteString(w, "event\n")
		case <-r.Context().Done():
		}
	default:
		_, _ = io.WriteString(w, "list")
	}
}

func start(t *testing.T) (*Proxy, *server) {
	t.Helper()
	s := &server{next: make(chan struct{})}
	upstream := httptest.NewServer(s)
	t.Cleanup(upstream.Close)
	return Start(t, &rest.Config{Host: upstream.URL}), s
}

// request sends a request and returns the answer, or the error of the connection.
func request(ctx context.Context, method, url string) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		fault  Fault
		status int
		body   string
	}{
		{"", http.StatusOK, "list"},
		{Delay, http.StatusOK, "list"},
		{Expire, http.StatusOK, "list"},
		{Cut, http.StatusOK, "list"},
		{Reject429, http.StatusTooManyRequests, `"reason":"TooManyRequests"`},
		{Reject500, http.StatusInternalServerError, `"reason":"InternalError"`},
		{Reject401, http.StatusUnauthorized, `"reason":"Unauthorized"`},
		{Garbage, http.StatusOK, "{not an object"},
	} {
		t.Run(string(tc.fault), func(t *testing.T) {
			p, _ := start(t)
			end := p.Inject(tc.fault)
			if status, body, err := request(t.Context(), "GET", p.URL); err != nil || status != tc.status ||
				!strings.Contains(body, tc.body) {
				t.Errorf("%d %q, %v; want %d %q", status, body, err, tc.status, tc.body)
			}
			end()
			if status, body, err := request(t.Context(), "GET", p.URL); err != nil || status != http.StatusOK || body != "list" {
				t.Errorf("after the fault: %d %q, %v", status, body, err)
			}
		})
	}
}

// TestHang expects that a request without an answer is not forwarded, also not after the fault.
func TestHang(t *testing.T) {
	p, s := start(t)
	p.Inject(Hang)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := request(ctx, "POST", p.URL); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want a timeout", err)
	}
	p.Heal()
	if status, _, err := request(t.Context(), "POST", p.URL+"/a"); err != nil || status != http.StatusCreated || s.written.Load() != 1 {
		t.Errorf("%d writes, last %d, %v; want 1", s.written.Load(), status, err)
	}
}

// TestDrop expects that a write takes effect and is recorded, although the client gets no answer.
func TestDrop(t *testing.T) {
	p, s := start(t)
	p.Inject(Drop)
	if status, _, err := request(t.Context(), "PUT", p.URL+"/a"); err == nil {
		t.Errorf("answer %d, want none", status)
	}
	p.Heal()
	if _, _, err := request(t.Context(), "GET", p.URL); err != nil {
		t.Error(err)
	}
	writes := p.Writes()
	if s.written.Load() != 1 || len(writes) != 1 || writes[0].Path != "/a" || !writes[0].Succeeded() {
		t.Errorf("%d writes, recorded %v", s.written.Load(), writes)
	}
}

// watch opens a watch and reads its first event.
func watch(t *testing.T, p *Proxy) io.Reader {
	t.Helper()
	response, err := http.Get(p.URL + "?watch=true")
	must.Succeed(t, err)
	t.Cleanup(func() { response.Body.Close() })
	_, err = io.ReadFull(response.Body, make([]byte, len("event\n")))
	must.Succeed(t, err)
	return response.Body
}

// TestWatches expects that Expire and Cut close open watches, and that Expire refuses new watches.
func TestWatches(t *testing.T) {
	for _, fault := range []Fault{Expire, Cut} {
		t.Run(string(fault), func(t *testing.T) {
			p, _ := start(t)
			events := watch(t, p)
			p.Inject(fault)
			if rest, err := io.ReadAll(events); len(rest) > 0 {
				t.Errorf("the watch continues with %q, %v", rest, err)
			}
			if fault == Cut {
				return
			}
			status, _, err := request(t.Context(), "GET", p.URL+"?watch=true")
			if err != nil || status != http.StatusGone {
				t.Errorf("a new watch: %d, %v; want %d", status, err, http.StatusGone)
			}
		})
	}
}

// TestHangingWatch expects that an open watch gets an event only after the fault.
func TestHangingWatch(t *testing.T) {
	p, s := start(t)
	events := watch(t, p)
	p.Inject(Hang)
	read := make(chan string)
	go func() {
		rest, _ := io.ReadAll(events)
		read <- string(rest)
	}()
	s.next <- struct{}{}
	select {
	case rest := <-read:
		t.Errorf("read %q during the fault", rest)
	case <-time.After(100 * time.Millisecond):
		p.Heal()
		if rest := <-read; rest != "event\n" {
			t.Errorf("read %q after the fault", rest)
		}
	}
}
