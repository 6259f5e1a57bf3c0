package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// BoundQuantities makes the clients of a configuration remove absurd quantities from the responses
// that the API server does not decode itself: those of custom resources and of metrics-server.
// Decoding 1e-2147483647 takes hours, in which a client receives no other object.
func BoundQuantities(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedTransport{next} })
}

// boundedTransport filters the responses of another transport.
type boundedTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil || !undecodedPaths.MatchString(request.URL.Path) {
		return response, err
	}
	response.Body = &boundedBody{body: response.Body}
	response.ContentLength = -1
	response.Header.Del("Content-Length")
	return response, nil
}

// WrappedRoundTripper returns the transport whose responses are filtered. client-go uses
// it to find the TLS configuration.
func (t boundedTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

const (
	// readSize is the number of bytes that are read at once.
	readSize = 32 << 10
	// maxResources is the maximum size of the resources of a cluster in bytes.
	maxResources = 256 << 10
)

// undecodedPaths matches the paths of responses with quantities that the API server does not decode. The CRDs of
// these resources do not match: fields of their schemas have the same names.
var undecodedPaths = regexp.MustCompile(
	`/apis/(cluster\.open-cluster-management\.io/[^/]+/managedclusters|plimsoll\.dev/[^/]+/resourceslacks|metrics\.k8s\.io/)`)

// resourceKeys are the keys of lists of resources in these responses, as the API server writes
// them.
var resourceKeys = [][]byte{
	[]byte(`"allocatable":`), []byte(`"capacity":`), []byte(`"usage":`), []byte(`"requests":`),
	[]byte(`"base":`), []byte(`"target":`), []byte(`"total":`), []byte(`"available":`),
}

// boundedBody filters a body. It passes on bytes as soon as they cannot be part of a list
// of resources, so that events of a watch are not delayed.
type boundedBody struct {
	body io.ReadCloser
	// in has bytes that are not filtered yet, and out those that are.
	in, out []byte
	err     error
	chunk   []byte
}

// Close closes the body.
func (b *boundedBody) Close() error { return b.body.Close() }

// Read returns filtered bytes.
func (b *boundedBody) Read(p []byte) (int, error) {
	for len(b.out) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		if b.chunk == nil {
			b.chunk = make([]byte, readSize)
		}
		n, err := b.body.Read(b.chunk)
		b.in, b.err = append(b.in, b.chunk[:n]...), err
		if filterErr := b.filter(err != nil); filterErr != nil {
			b.err = filterErr
		}
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// filter moves bytes from in to out. last is set if no more bytes follow.
func (b *boundedBody) filter(last bool) error {
	b.out = b.out[:0]
	for {
		start := firstKey(b.in)
		if start < 0 {
			keep := partialKey(b.in)
			if last {
				keep = 0
			}
			b.move(len(b.in) - keep)
			return nil
		}
		b.move(start)
		end, complete := endOfList(b.in)
		if !complete {
			if last {
				b.move(len(b.in)) // truncated: the client returns an error
				return nil
			}
			if len(b.in) > maxResources {
				return fmt.Errorf("a list of resources exceeds %d bytes", maxResources)
			}
			return nil
		}
		b.out = append(b.out, boundedList(b.in[:end])...)
		b.in = b.in[end:]
	}
}

// move moves n bytes to out unchanged.
func (b *boundedBody) move(n int) {
	b.out = append(b.out, b.in[:n]...)
	b.in = append(b.in[:0], b.in[n:]...)
}

// firstKey returns the index of the first key of a list of resources, -1 if there is none.
func firstKey(text []byte) int {
	first := -1
	for _, key := range resourceKeys {
		if i := bytes.Index(text, key); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

// partialKey returns the number of bytes at the end of a text with which a key can begin.
func partialKey(text []byte) (n int) {
	for _, key := range resourceKeys {
		for length := min(len(key)-1, len(text)); length > n; length-- {
			if bytes.HasSuffix(text, key[:length]) {
				n = length
			}
		}
	}
	return n
}

// endOfList returns the index after the list of resources that begins with its key. It is that
// after the key if no object follows. complete is false if the list continues after the text.
func endOfList(text []byte) (end int, complete bool) {
	i := bytes.IndexByte(text, ':') + 1
	for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 {
		i++
	}
	if i == len(text) {
		return 0, false
	}
	if text[i] != '{' {
		return i, true
	}
	quoted := false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == '}':
			return i + 1, true
		}
	}
	return 0, false
}

// boundedList returns a list of resources, key included, without absurd quantities. It returns the text
// itself if there are none, or it is no list of resources.
func boundedList(text []byte) []byte {
	start := bytes.IndexByte(text, '{')
	if start < 0 {
		return text
	}
	var list map[string]json.RawMessage
	if json.Unmarshal(text[start:], &list) != nil {
		return text
	}
	removed := false
	for name, raw := range list {
		value := string(raw)
		var unquoted string
		if json.Unmarshal(raw, &unquoted) == nil {
			value = strings.TrimSpace(unquoted)
		}
		if resources.CheckQuantity(value) != nil {
			delete(list, name)
			removed = true
		}
	}
	if !removed {
		return text
	}
	filtered, err := json.Marshal(list)
	if err != nil {
		return text
	}
	return append(bytes.Clone(text[:start]), filtered...)
}
