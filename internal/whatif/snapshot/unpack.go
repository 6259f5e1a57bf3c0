package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// unpacker reads an archive within limits. Files are decoded while they are unpacked, so that the memory
// depends only on the kept objects.
type unpacker struct {
	limits
	// packed counts the bytes of the archive, unpacked the bytes after decompression.
	packed, unpacked counter
	// structCount is the number of JSON objects so far.
	structCount int64
}

// counter counts the bytes that are read from a reader.
type counter struct {
	io.Reader
	n int64
	// check, if set, returns an error if too many bytes were read.
	check func() error
	// err is the first error other than io.EOF.
	err error
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	if c.check != nil && (err == nil || errors.Is(err, io.EOF)) {
		if excess := c.check(); excess != nil {
			n, err = 0, excess
		}
	}
	if err != nil && !errors.Is(err, io.EOF) && c.err == nil {
		c.err = err
	}
	return n, err
}

// sizeError is an error of a limit.
type sizeError struct{ error }

// checkSize returns an error if the unpacked size exceeds a limit.
func (u *unpacker) checkSize() error {
	switch n := u.unpacked.n; {
	case n > u.total:
		return sizeError{fmt.Errorf("unpacked size exceeds the limit of %s", mebibytes(u.total))}
	case n > u.free && n > u.packed.n*u.ratio:
		return sizeError{fmt.Errorf("unpacked size exceeds the limit of %d times the packed size (%s are always permitted)",
			u.ratio, mebibytes(u.free))}
	}
	return nil
}

// unpack calls read with the name and the content of each file.
func (u *unpacker) unpack(r io.Reader, read func(name string, content io.Reader) error) error {
	u.packed.Reader = r
	zipped, err := gzip.NewReader(&u.packed)
	if err != nil {
		return fmt.Errorf("not a snapshot: not a gzipped tar archive: %w", err)
	}
	u.unpacked = counter{Reader: zipped, check: u.checkSize}
	archive, files := tar.NewReader(&u.unpacked), map[string]bool{}
	for entries := 1; ; entries++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("incomplete snapshot: %w", explain(err))
		}
		if entries > u.entries {
			return fmt.Errorf("archive has more than %d entries", u.entries)
		}
		name, ok, err := u.entry(header, files)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		files[name] = true
		content := &counter{Reader: archive}
		if err := read(name, content); content.err != nil {
			return fmt.Errorf("%s: %w", name, explain(content.err))
		} else if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	// The checksum is at the end of the compressed data.
	if _, err := io.Copy(io.Discard, &u.unpacked); err != nil {
		return fmt.Errorf("incomplete snapshot: %w", explain(err))
	}
	return nil
}

// explain returns the cause of an error of reading an archive.
func explain(err error) error {
	size := sizeError{}
	switch {
	case errors.As(err, &size):
		return size.error
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("truncated")
	}
	return err
}

// readList reads the items of a v1 List one by one.
func (u *unpacker) readList(content io.Reader) ([]json.RawMessage, error) {
	l := &listReader{unpacker: u}
	l.value = &valueLimit{Reader: content, limit: 2*u.item + 64<<10}
	l.dec = json.NewDecoder(l.value)
	err := l.read()
	switch {
	case l.value.exceeded:
		return nil, fmt.Errorf("%s exceeds the limit of %s", l.where(), mebibytes(u.item))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("unexpected end of JSON input")
	}
	return l.items, err
}

// valueLimit returns an error if a decoder reads too many bytes for one value.
type valueLimit struct {
	io.Reader
	read, limit int64
	exceeded    bool
}

// Read implements io.Reader.
func (v *valueLimit) Read(p []byte) (int, error) {
	if v.read > v.limit {
		v.exceeded = true
		return 0, errors.New("too large")
	}
	n, err := v.Reader.Read(p)
	v.read += int64(n)
	return n, err
}

// listReader reads a v1 List.
type listReader struct {
	*unpacker
	value *valueLimit
	dec   *json.Decoder
	kind  string
	items []json.RawMessage
	// inItems is true while items are read.
	inItems bool
}

// where returns the part that is being read, for errors.
func (l *listReader) where() string {
	if l.inItems {
		return fmt.Sprintf("item %d", len(l.items)+1)
	}
	return "a value"
}

func (l *listReader) token() (json.Token, error) {
	l.value.read = 0
	return l.dec.Token()
}

// read reads the whole list.
func (l *listReader) read() error {
	if err := l.open('{', "a List"); err != nil {
		return err
	}
	for l.dec.More() {
		key, err := l.token()
		if err != nil {
			return err
		}
		if err := l.field(key); err != nil {
			return err
		}
	}
	if _, err := l.token(); err != nil {
		return err
	}
	if _, err := l.token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("found a second value after the List")
		}
		return err
	}
	if l.kind != "List" {
		return fmt.Errorf("found kind %q: must be List", l.kind)
	}
	return nil
}

// open reads the start of an object or a list.
func (l *listReader) open(want json.Delim, what string) error {
	found, err := l.token()
	if err == nil && found != want {
		err = fmt.Errorf("found %v: must be %s", found, what)
	}
	return err
}

// field reads the value of a field of the List.
func (l *listReader) field(key json.Token) error {
	l.value.read = 0
	switch key {
	case "kind":
		return l.dec.Decode(&l.kind)
	case "items":
		return l.readItems()
	}
	var skipped json.RawMessage
	return l.dec.Decode(&skipped)
}

// readItems reads the items.
func (l *listReader) readItems() error {
	if err := l.open('[', "a list of items"); err != nil {
		return err
	}
	l.inItems = true
	for l.dec.More() {
		if len(l.items) == l.limits.items {
			return fmt.Errorf("found more than %d items: must have at most %d", l.limits.items, l.limits.items)
		}
		if err := l.readItem(); err != nil {
			return err
		}
	}
	l.inItems = false
	_, err := l.token()
	return err
}

// readItem reads one item.
func (l *listReader) readItem() error {
	l.value.read = 0
	var item json.RawMessage
	if err := l.dec.Decode(&item); err != nil {
		return err
	}
	switch {
	case item[0] != '{':
		return fmt.Errorf("%s: found %.20s: must be an object", l.where(), item)
	case int64(len(item)) > l.item:
		return fmt.Errorf("%s exceeds the limit of %s", l.where(), mebibytes(l.item))
	}
	l.structCount += CountObjects(item)
	if most := l.structs + l.packed.n; l.structCount > most {
		return fmt.Errorf("%s: found more than %d JSON objects: must have at most %d and one for each byte of the file",
			l.where(), most, l.structs)
	}
	l.items = append(l.items, item)
	return nil
}

// CountObjects returns the number of JSON objects in a valid JSON value.
func CountObjects(raw []byte) (n int64) {
	for {
		i := bytes.IndexAny(raw, `{"`)
		if i < 0 {
			return n
		}
		quoted := raw[i] == '"'
		raw = raw[i+1:]
		if !quoted {
			n++
			continue
		}
		raw = afterString(raw)
	}
}

// afterString returns the text after a string whose opening quote was removed.
func afterString(raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return raw[i+1:]
		}
	}
	return nil
}
