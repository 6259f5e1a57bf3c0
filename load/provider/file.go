package provider

import (
	"context"
	"fmt"
	"os"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// File reads a file in the format of package wire. Every read opens the file: write a new file and rename it, so that an incomplete file
// is never read.
type File struct {
	path string
}

// NewFile returns the source of a path.
func NewFile(path string) *File { return &File{path} }

// String returns the path of the file, for messages.
func (s *File) String() string { return "the file " + s.path }

// Read reads the file.
func (s *File) Read(context.Context) (load.Reading, error) {
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
