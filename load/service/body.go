package service

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// body is the response for all nodes of one reading. All responses share its bytes.
type body struct {
	// zipped is the gzipped message, size the number of bytes of the message itself. For clients that do not
	// accept gzip, the message is unpacked while it is sent, so that only the small form is in memory.
	zipped []byte
	size   int64
	// etag identifies the content, in both forms.
	etag string
}

// newBody encodes a reading.
func newBody(reading load.Reading) (*body, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	counted := &countingWriter{Writer: zip}
	if err := wire.Encode(counted, reading); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	zipped := bytes.Clone(out.Bytes()) // without the unused capacity of the buffer
	return &body{zipped, counted.written, fmt.Sprintf(`W/"%x"`, sha256.Sum256(zipped))}, nil
}

// countingWriter counts the bytes that it passes on.
type countingWriter struct {
	io.Writer
	written int64
}

// Write implements io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.written += int64(n)
	return n, err
}

// writeTo writes the gzipped message, or the message itself.
func (b *body) writeTo(w io.Writer, zipped bool) error {
	if zipped {
		_, err := w.Write(b.zipped)
		return err
	}
	unzip, err := gzip.NewReader(bytes.NewReader(b.zipped))
	if err != nil {
		return err
	}
	_, err = io.CopyN(w, unzip, b.size)
	return err
}

// bodies keeps the body of the newest reading, and counts the bodies that are being sent.
type bodies struct {
	store *load.Store

	mu      sync.Mutex
	current *currentBody

	// sending has the bodies of the open responses, the oldest first, with bytes in total. If bytes exceeds
	// limit, the responses with the oldest bodies are aborted: their clients are the slowest.
	sending   []*sentBody
	bytes     int64
	limit     int64
	responses int
}

// currentBody is the body of a snapshot, encoded by the first request for it while other requests wait.
type currentBody struct {
	snapshot *load.Snapshot
	once     sync.Once
	body     *body
	err      error
}

// sentBody is a body that is being sent.
type sentBody struct {
	*body
	// abort ends the open responses, by their number.
	abort map[int]func()
}

// get returns the body of the fresh load, nil if there is none.
func (b *bodies) get() (*body, error) {
	b.mu.Lock()
	snapshot := b.store.Fresh()
	if snapshot == nil {
		b.current = nil
		b.mu.Unlock()
		return nil, nil
	}
	if b.current == nil || b.current.snapshot != snapshot {
		b.current = &currentBody{snapshot: snapshot}
	}
	current := b.current
	b.mu.Unlock()
	current.once.Do(func() { current.body, current.err = newBody(snapshot.Reading()) })
	return current.body, current.err
}

// send registers a response with a body and returns the function that ends it. abort is called if the
// response takes too much memory, until the returned function is called.
func (b *bodies) send(one *body, abort func()) (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.responses++
	id := b.responses
	var sent *sentBody
	for _, s := range b.sending {
		if s.body == one {
			sent = s
		}
	}
	if sent == nil {
		sent = &sentBody{one, map[int]func(){}}
		b.sending = append(b.sending, sent)
		b.bytes += int64(len(one.zipped))
	}
	sent.abort[id] = abort
	for b.bytes > b.limit && b.sending[0] != sent {
		for _, abort := range b.sending[0].abort {
			abort()
		}
		b.remove(0)
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(sent.abort, id)
		for i, s := range b.sending {
			if s == sent && len(sent.abort) == 0 {
				b.remove(i)
				return
			}
		}
	}
}

// remove removes a body from the bodies that are being sent. Callers hold the lock.
func (b *bodies) remove(i int) {
	b.bytes -= int64(len(b.sending[i].zipped))
	b.sending = append(b.sending[:i], b.sending[i+1:]...)
}
