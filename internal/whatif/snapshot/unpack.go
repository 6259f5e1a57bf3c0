package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/plimsoll-k8s/plimsoll/internal/jsonlist"
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
		return fmt.Errorf("not a snapshot: must be a file of plimsoll snapshot (--recording reads a recording): %w", err)
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
func (u *unpacker) readList(content io.Reader) (items []json.RawMessage, err error) {
	kind := ""
	err = jsonlist.Read(content, u.item, func(name string, value *json.Decoder) error {
		var raw json.RawMessage
		if err := value.Decode(&raw); err != nil {
			return err
		}
		switch name {
		case "kind":
			if err := json.Unmarshal(raw, &kind); err != nil || kind != "List" {
				return fmt.Errorf("found kind %s: must be List", raw)
			}
		case jsonlist.Items:
			items = append(items, raw)
			return u.checkItem(raw, len(items))
		}
		return nil
	})
	if err == nil && kind == "" {
		err = errors.New("kind: required value List")
	}
	return items, err
}

// checkItem returns an error if the item with a number in its list, which starts at 1, is no object or exceeds a limit.
func (u *unpacker) checkItem(item json.RawMessage, number int) error {
	u.structCount += CountObjects(item)
	switch most := u.structs + u.packed.n; {
	case number > u.items:
		return fmt.Errorf("found more than %d items: must have at most %d", u.items, u.items)
	case item[0] != '{':
		return fmt.Errorf("item %d: found %.20s: must be an object", number, item)
	case int64(len(item)) > u.item:
		return fmt.Errorf("item %d exceeds the limit of %s", number, mebibytes(u.item))
	case u.structCount > most:
		return fmt.Errorf("item %d: found more than %d JSON objects: must have at most %d and one for each byte of the file",
			number, most, u.structs)
	}
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
