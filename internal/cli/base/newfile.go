package base

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// NewFile is a file that a command writes, completely or not at all, or none without a path.
type NewFile struct {
	// Flag that names the file, for error messages.
	Flag string
	Path string
	// Kind is HTMLPage or Recording. Force replaces an existing file of the kind.
	Kind  string
	Force bool
	Mode  fs.FileMode
}

// The kinds of new files.
const (
	HTMLPage  = "HTML page"
	Recording = "recording"
)

// starts are the first bytes of files by kind: of a recording, those of gzip with an extra field.
var starts = map[string]string{HTMLPage: "<!doctype html>", Recording: "\x1f\x8b\x08\x04"}

// CheckFileName returns an error for the name of a new file or directory that is a format of --output in other commands.
func CheckFileName(flag, path string) error {
	if slices.Contains([]string{"-", "name", "html", FormatTable, FormatWide, FormatJSON, FormatYAML, FormatMarkdown}, path) {
		return fmt.Errorf("%s: invalid value %q: must be the name of a file, not a format or -; ./%s is a file", flag, path, path)
	}
	return nil
}

// isReplaceable reports whether an existing file is empty or of the kind of the new one: no other file, such as an input, is lost.
func (f NewFile) isReplaceable() bool {
	file, err := os.Open(f.Path)
	if err != nil {
		return false
	}
	defer file.Close()
	start := make([]byte, len(starts[f.Kind]))
	read, err := io.ReadFull(file, start)
	return read == 0 && errors.Is(err, io.EOF) || string(start) == starts[f.Kind]
}

// Check returns an error if the file cannot be written, or would replace a file of another kind. Commands call it before they compute
// the content, which may take long.
func (f NewFile) Check() error {
	if f.Path == "" {
		return nil
	}
	if err := CheckFileName(f.Flag, f.Path); err != nil {
		return err
	}
	folder := filepath.Dir(f.Path)
	if info, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: folder %s does not exist: create it first", f.Flag, folder)
	} else if err != nil {
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
	case !f.isReplaceable():
		return fmt.Errorf("%s: %s exists and is no %s: must be another file", f.Flag, f.Path, f.Kind)
	case !f.Force:
		return fmt.Errorf("%s: %s already exists; --force replaces it", f.Flag, f.Path)
	}
	return nil
}

// Write writes the content to a temporary file in the same directory and renames it when it is
// complete.
func (f NewFile) Write(content func(io.Writer) error) (err error) {
	if f.Path == "" {
		return nil
	}
	file, err := os.CreateTemp(filepath.Dir(f.Path), ".plimsoll-*")
	if path, ok := errors.AsType[*fs.PathError](err); ok { // of a name that nobody gave
		return fmt.Errorf("%s: %s: %w in %s", f.Flag, f.Path, path.Err, filepath.Dir(f.Path))
	}
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
