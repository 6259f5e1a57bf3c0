package service

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// body is the response for all nodes of one reading. All responses share its bytes.
type body struct {
	// zipped is the gzipped message, size the number of bytes of the message itself, which gzip writes at the end. For clients that do not
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
	if err := cmp.Or(wire.Encode(zip, reading), zip.Close()); err != nil {
		return nil, err
	}
	zipped := bytes.Clone(out.Bytes()) // without the unused capacity of the buffer
	size := int64(binary.LittleEndian.Uint32(zipped[len(zipped)-4:]))
	return &body{zipped, size, fmt.Sprintf(`W/"%x"`, sha256.Sum256(zipped))}, nil
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

// bodies keeps the body of the newest reading.
type bodies struct {
	store *load.Store

	mu      sync.Mutex
	current *currentBody
}

// currentBody is the body of a snapshot, encoded by the first request for it while other requests wait.
type currentBody struct {
	snapshot *load.Snapshot
	once     sync.Once
	body     *body
	err      error
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
