// Package file reads load from a file in the format of package wire. The file
// is read anew every time, so that whatever writes it need not tell anyone;
// replace it by renaming, so that it is never read half-written.
package file

import (
	"context"
	"fmt"
	"os"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// Source is a file.
type Source struct {
	path string
}

// New returns the file of that path.
func New(path string) *Source { return &Source{path} }

// String names the file in messages.
func (s *Source) String() string { return "the file " + s.path }

// Read reads the file.
func (s *Source) Read(context.Context) (load.Reading, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return load.Reading{}, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return load.Reading{}, fmt.Errorf("%s: not a regular file", s.path)
	}
	reading, err := wire.Decode(f)
	if err != nil {
		return load.Reading{}, fmt.Errorf("%s: %w", s.path, err)
	}
	return reading, nil
}
