package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// StateSuffix is appended to the name of a recording for the file with the state of its writer. The file
// exists while the recording is not finished. It has no names of objects that the recording lacks except,
// with redaction, the key of the pseudonyms.
const StateSuffix = ".state"

// fileMode makes a recording readable by its owner only: it has details of the cluster.
const fileMode = 0o600

// File is a recording that is being written and can be continued after a restart. A commit writes the added records to
// the recording, and then the state of the writer beside it. A restart loses the records after the last commit; the
// writer adds them again.
type File struct {
	*Writer
	path string
	file *os.File
}

// state is the content of the file with the state.
type state struct {
	// Size is the size of the recording in bytes, and Nodes and Pods its numbers of nodes and pods.
	Size  int64 `json:"size"`
	Nodes int   `json:"nodes"`
	Pods  int   `json:"pods"`
	About About `json:"about"`
	// Writer is the state of the program that writes the recording.
	Writer json.RawMessage `json:"writer"`
}

// Unfinished reports whether there is a recording with the name that can be continued.
func Unfinished(path string) bool {
	_, err := os.Stat(path + StateSuffix)
	return err == nil
}

// Discard removes a recording and its state.
func Discard(path string) error {
	for _, name := range []string{path + StateSuffix, path} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Create starts a recording. An existing file is replaced. The state exists before the recording, which otherwise would seem to be
// finished until the first commit.
func Create(path string, about About) (*File, error) {
	if err := os.WriteFile(path+StateSuffix, nil, fileMode); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return nil, err
	}
	writer, err := NewWriter(file, about)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &File{Writer: writer, path: path, file: file}, nil
}

// ErrNotCommitted is the error of Continue for a recording without a commit, which has nothing to continue.
var ErrNotCommitted = errors.New("not committed")

// Continue continues a recording that was not closed, after its last commit, and decodes the state of its writer.
func Continue(path string, writer any) (*File, error) {
	raw, err := os.ReadFile(path + StateSuffix)
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrNotCommitted)
	}
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path+StateSuffix, err)
	}
	if err := json.Unmarshal(s.Writer, writer); err != nil {
		return nil, fmt.Errorf("%s: writer: %w", path+StateSuffix, err)
	}
	if err := s.About.check(); err != nil {
		return nil, fmt.Errorf("%s: about: %w", path+StateSuffix, err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, fileMode)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, file: file, Writer: &Writer{out: file, about: s.About, nodes: s.Nodes, pods: s.Pods, size: s.Size}}
	if err := f.cut(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// cut removes records that were written after the last commit.
func (f *File) cut() error {
	info, err := f.file.Stat()
	switch {
	case err != nil:
		return err
	case info.Size() < f.size:
		return fmt.Errorf("%s: found %d bytes, %s expects %d: remove both files to start again",
			f.path, info.Size(), f.path+StateSuffix, f.size)
	}
	if err := f.file.Truncate(f.size); err != nil {
		return err
	}
	_, err = f.file.Seek(f.size, io.SeekStart)
	return err
}

// Commit writes the added records as a chunk, and the state from which the writer continues after a restart.
func (f *File) Commit(writer any) error {
	if err := f.Flush(); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	raw, err := json.Marshal(writer)
	if err != nil {
		return err
	}
	content, err := json.Marshal(state{Size: f.size, Nodes: f.nodes, Pods: f.pods, About: f.about, Writer: raw})
	if err != nil {
		return err
	}
	return ReplaceFile(f.path+StateSuffix, content)
}

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

// Finish writes the end of the recording and removes the state.
func (f *File) Finish() error {
	if err := f.Pause(); err != nil {
		return err
	}
	return os.Remove(f.path + StateSuffix)
}

// Path returns the name of the file.
func (f *File) Path() string { return f.path }

// Abandon closes the file without writing the records after the last commit. The recording can be continued.
func (f *File) Abandon() error { return f.file.Close() }

// Pause writes the end of the recording and closes the file, so that it can be continued after its last commit.
func (f *File) Pause() error { return errors.Join(f.Close(), f.file.Close()) }
