package base

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// NewFile is a file that a command writes, completely or not at all.
type NewFile struct {
	// Flag that names the file, for error messages.
	Flag string
	Path string
	// Force replaces an existing file.
	Force bool
	Mode  fs.FileMode
}

// Check returns an error if the file cannot be written. Commands call it before they compute
// the content, which may take long.
func (f NewFile) Check() error {
	if f.Path == "-" {
		return fmt.Errorf(`%s: invalid value "-": must be the name of a file`, f.Flag)
	}
	folder := filepath.Dir(f.Path)
	if info, err := os.Stat(folder); err != nil {
		return fmt.Errorf("%s: %w", f.Flag, err)
	} else if !info.IsDir() {
		return fmt.Errorf("%s: %s is not a directory", f.Flag, folder)
	}
	switch existing, err := os.Stat(f.Path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", f.Flag, err)
	case !existing.Mode().IsRegular():
		return fmt.Errorf("%s: %s is not a regular file", f.Flag, f.Path)
	case !f.Force:
		return fmt.Errorf("%s: %s already exists; --force replaces it", f.Flag, f.Path)
	}
	return nil
}

// Write writes the content to a temporary file in the same directory and renames it when it is
// complete.
func (f NewFile) Write(content func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(f.Path), ".plimsoll-*")
	if err != nil {
		return fmt.Errorf("%s: %w", f.Flag, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the first error is the one to report
			err = fmt.Errorf("%s: %w", f.Flag, err)
		}
	}()
	err = cmp.Or(content(file), file.Chmod(f.Mode), file.Close())
	if err != nil {
		return err
	}
	if f.Force {
		return os.Rename(file.Name(), f.Path)
	}
	// Unlike a rename, a link does not replace a file created in the meantime. Not every file
	// system supports links.
	switch err := os.Link(file.Name(), f.Path); {
	case err == nil:
		return os.Remove(file.Name())
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s was created in the meantime", f.Path)
	}
	return os.Rename(file.Name(), f.Path)
}
