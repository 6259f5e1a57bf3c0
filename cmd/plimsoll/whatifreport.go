package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plimsoll-k8s/plimsoll/internal/report/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// checkReport says before anything runs why a report could not be written to a
// file: runs take long, and what they come to is not to be lost.
func checkReport(path string, force bool) error {
	if path == "" {
		return nil
	}
	if folder, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("--report: %w", err)
	} else if !folder.IsDir() {
		return fmt.Errorf("--report: %s is not a folder", filepath.Dir(path))
	}
	switch there, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--report: %w", err)
	case !there.Mode().IsRegular():
		return fmt.Errorf("--report: %s is not a file", path)
	case !force:
		return fmt.Errorf("--report: %s is there already; --force replaces it", path)
	}
	return nil
}

// reportMode lets others read a report: it is made to be shown.
const reportMode = 0o644

// writeReport writes the report beside its place and moves it there when it is
// whole, so that the file is there entirely or not at all.
func writeReport(path string, force bool, r *result.Result) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".plimsoll-report-*")
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // what went wrong says more
			err = fmt.Errorf("--report: %w", err)
		}
	}()
	err = errors.Join(whatif.Write(file, r), file.Chmod(reportMode), file.Close())
	if err != nil {
		return err
	}
	if force {
		return os.Rename(file.Name(), path)
	}
	// Unlike a rename, a link does not replace what has come there meanwhile. Not
	// every file system has links.
	switch err := os.Link(file.Name(), path); {
	case err == nil:
		return os.Remove(file.Name())
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s has come there meanwhile", path)
	}
	return os.Rename(file.Name(), path)
}
