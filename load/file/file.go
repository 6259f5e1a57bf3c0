// Package file reads load from a file in the format of package wire. Every read opens the file. Write
// a new file and rename it, so that an incomplete file is never read.
package file

import (
	"context"
	"fmt"
	"os"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// Source reads a file.
type Source struct {
	path string
}

// New returns the source of a path.
func New(path string) *Source { return &Source{path} }

// String returns the path of the file, for messages.
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
