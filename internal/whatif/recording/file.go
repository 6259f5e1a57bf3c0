package recording

import (
	"errors"
	"os"
	"path/filepath"
)

// fileMode makes a recording readable by its owner only: it has details of the cluster.
const fileMode = 0o600

// File is a recording that is being written. It has its name from the first commit on. A crash loses what was added after the last commit.
type File struct {
	*Writer
	path string
	file *os.File
	// committed is the size of the file after the last commit.
	committed int64
}

// Create starts a recording.
func Create(path string, about About) (*File, error) {
	file, err := os.CreateTemp(filepath.Dir(path), TemporaryPattern)
	if err != nil {
		return nil, err
	}
	writer, err := NewWriter(file, about)
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return &File{Writer: writer, path: path, file: file}, nil
}

// Commit writes the added records to the volume.
func (f *File) Commit() error {
	err := f.Flush()
	if err == nil {
		err = f.file.Sync()
	}
	if err == nil && f.committed == 0 {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err == nil {
		f.committed = f.size
	}
	return err
}

// Finish commits the end of the recording and closes the file.
func (f *File) Finish() error {
	err := f.Close()
	if err == nil {
		err = f.Commit()
	}
	if err == nil {
		err = f.file.Close()
	}
	return err
}

// Abandon removes what was written after the last commit, and closes the file.
func (f *File) Abandon() error {
	err := errors.Join(f.file.Truncate(f.committed), f.file.Close())
	if f.committed == 0 {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	return err
}

// Path returns the name of the file.
func (f *File) Path() string { return f.path }

// TemporaryPattern matches the names of temporary files and folders.
const TemporaryPattern = ".plimsoll-*"

// RemoveTemporary removes the temporary files and folders in a folder that a killed process has left. No process may write to the folder.
func RemoveTemporary(folder string) error {
	names, err := filepath.Glob(filepath.Join(folder, TemporaryPattern))
	for _, name := range names {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return err
}

// ReplaceFile replaces a file, completely or not at all.
func ReplaceFile(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), TemporaryPattern)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
