package metricsserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// itemsField is the name of the field with the items of a list.
const itemsField = "items"

// errTooLarge is the cause of the error of Read for a value above the limit.
var errTooLarge = errors.New("exceeds the limit")

// readList reads an object with a list in the field items, one value after the other: the memory depends on the largest value, not on the
// length of the list. It calls visit for each item, with the name items, and for each other field, with the name of the field. visit must
// decode one value, and its error ends Read. A value of more than limit bytes, with the spaces before it, is an error at the latest when
// the decoder has read twice as many bytes, and 64 KiB.
func readList(in io.Reader, limit int64, visit func(name string, value *json.Decoder) error) error {
	bounded := &boundedReader{Reader: in, limit: 2*limit + 64<<10}
	r := &listReader{Decoder: json.NewDecoder(bounded), visit: visit}
	bounded.decoded = r.InputOffset
	err := r.readFields()
	switch {
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("%s %w of %d MiB", r.where(), err, limit>>20)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("unexpected end of JSON input")
	}
	return err
}

// listReader reads one list.
type listReader struct {
	*json.Decoder
	visit func(string, *json.Decoder) error
	// item is the number of the item that is being read, 0 outside the items.
	item int
}

// where returns the part that is being read, for errors.
func (r *listReader) where() string {
	if r.item > 0 {
		return fmt.Sprintf("item %d", r.item)
	}
	return "a value"
}

// readFields reads the object, and expects nothing after it.
func (r *listReader) readFields() error {
	if err := r.open('{', "must be an object"); err != nil {
		return err
	}
	hasItems := false
	for r.More() {
		token, err := r.Token()
		switch name, _ := token.(string); {
		case err != nil:
		case name == itemsField:
			hasItems, err = true, r.readItems()
		default:
			err = r.visit(name, r.Decoder)
		}
		if err != nil {
			return err
		}
	}
	if _, err := r.Token(); err != nil {
		return err
	}
	switch _, err := r.Token(); {
	case err == nil:
		return errors.New("found a second value after the list")
	case !errors.Is(err, io.EOF):
		return err
	case !hasItems:
		return errors.New("no field items")
	}
	return nil
}

// readItems reads the items.
func (r *listReader) readItems() error {
	if err := r.open('[', "must be a list of items"); err != nil {
		return err
	}
	for r.item = 1; r.More(); r.item++ {
		if err := r.visit(itemsField, r.Decoder); err != nil {
			return err
		}
	}
	r.item = 0
	_, err := r.Token()
	return err
}

// open reads the start of an object or a list.
func (r *listReader) open(want json.Delim, must string) error {
	found, err := r.Token()
	if err == nil && found != want {
		err = fmt.Errorf("found %v: %s", found, must)
	}
	return err
}

// boundedReader returns ErrTooLarge if too many bytes are read that the decoder has not returned in a value.
type boundedReader struct {
	io.Reader
	read, limit int64
	// decoded returns how many bytes the decoder has returned.
	decoded func() int64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.read-b.decoded() > b.limit {
		return 0, errTooLarge
	}
	n, err := b.Reader.Read(p)
	b.read += int64(n)
	return n, err
}
