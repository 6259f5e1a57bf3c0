package base

import (
	"io"
	"os"
)

// Stdout is the standard output of a program. It keeps the first error of a write, since functions that print tables and
// texts return no errors.
type Stdout struct {
	file *os.File
	err  error
}

// NewStdout returns a Stdout that writes to a file.
func NewStdout(file *os.File) *Stdout { return &Stdout{file: file} }

// Write implements io.Writer.
func (s *Stdout) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// Err returns the first error of Write.
func (s *Stdout) Err() error { return s.err }

// fileOf returns the file that a writer writes to, nil if it writes to no file.
func fileOf(out io.Writer) *os.File {
	switch out := unwrap(out).(type) {
	case *os.File:
		return out
	case *Stdout:
		return out.file
	}
	return nil
}
