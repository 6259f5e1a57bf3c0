package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// newFile is a file to be written, entirely or not at all.
type newFile struct {
	// flag that names it, for errors.
	flag, path string
	// force replaces the file if it is there.
	force bool
	mode  fs.FileMode
}

// check says why the file could not be written, before there is anything to write:
// that takes long, and what it comes to is not to be lost.
func (f newFile) check() error {
	if folder, err := os.Stat(filepath.Dir(f.path)); err != nil {
		return fmt.Errorf("%s: %w", f.flag, err)
	} else if !folder.IsDir() {
		return fmt.Errorf("%s: %s is not a folder", f.flag, filepath.Dir(f.path))
	}
	switch there, err := os.Stat(f.path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", f.flag, err)
	case !there.Mode().IsRegular():
		return fmt.Errorf("%s: %s is not a file", f.flag, f.path)
	case !f.force:
		return fmt.Errorf("%s: %s is there already; --force replaces it", f.flag, f.path)
	}
	return nil
}

// write writes the content beside the file's place, and moves it there when it is
// whole.
func (f newFile) write(content func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(f.path), ".plimsoll-*")
	if err != nil {
		return fmt.Errorf("%s: %w", f.flag, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // what went wrong says more
			err = fmt.Errorf("%s: %w", f.flag, err)
		}
	}()
	err = errors.Join(content(file), file.Chmod(f.mode), file.Close())
	if err != nil {
		return err
	}
	if f.force {
		return os.Rename(file.Name(), f.path)
	}
	// Unlike a rename, a link does not replace what has come there meanwhile. Not
	// every file system has links.
	switch err := os.Link(file.Name(), f.path); {
	case err == nil:
		return os.Remove(file.Name())
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s has come there meanwhile", f.path)
	}
	return os.Rename(file.Name(), f.path)
}
