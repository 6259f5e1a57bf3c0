package oncluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/job"
)

const (
	// chunkSize is the size of the parts of inputs and results. A ConfigMap has at most 1 MiB of data.
	chunkSize = 768 << 10
	// maxChunks bounds the parts of an input, and with them the volume of a pod.
	maxChunks = 64
	// maxUnpacked bounds an input without compression.
	maxUnpacked = 2 << 30
	// sweepFile is the file in a bundle with the jobs; filesDir has the files that they read.
	sweepFile = "sweep.json"
	filesDir  = "files"
)

// sweep is the content of sweepFile.
type sweep struct {
	// Version of the program that wrote it. Another version may simulate differently.
	Version string `json:"version"`
	// Jobs of all indexes. Index i runs Jobs[Starts[i]:Starts[i+1]].
	Jobs   []job.Job `json:"jobs"`
	Starts []int     `json:"starts"`
}

// of returns the range of the jobs of an index.
func (s *sweep) of(index int) (from, to int, err error) {
	if index < 0 || index+1 >= len(s.Starts) {
		return 0, 0, fmt.Errorf("index %d: invalid value: must be from 0 to %d", index, len(s.Starts)-2)
	}
	if from, to = s.Starts[index], s.Starts[index+1]; from < 0 || from > to || to > len(s.Jobs) {
		return 0, 0, fmt.Errorf("index %d: invalid jobs %d to %d: must be within 0 to %d", index, from, to, len(s.Jobs))
	}
	return from, to, nil
}

// divide returns the starts of as many equal parts as indexes, and at its end the number of jobs.
func divide(jobs, indexes int) []int {
	starts := make([]int, indexes+1)
	for i := range starts {
		starts[i] = jobs * i / indexes
	}
	return starts
}

// pack returns a compressed bundle of a sweep and the files that its jobs read, in chunks.
func pack(s sweep) ([][]byte, error) {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	b := &bundle{out: tar.NewWriter(compressed), names: map[string]string{}}
	s.Jobs = slices.Clone(s.Jobs)
	for i := range s.Jobs {
		var err error
		if s.Jobs[i].Source, err = s.Jobs[i].Source.Relocated(b.add); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(b.write(sweepFile, raw), b.out.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	if packed.Len() > maxChunks*chunkSize {
		return nil, fmt.Errorf("the input has %d MiB after compression: must have at most %d MiB with --on-cluster",
			packed.Len()>>20, maxChunks*chunkSize>>20)
	}
	return slices.Collect(slices.Chunk(packed.Bytes(), chunkSize)), nil
}

// bundle is an archive that is written.
type bundle struct {
	out *tar.Writer
	// names are those in the archive, by path.
	names map[string]string
	size  int64
}

// add adds a file or the files of a directory, unless they are in the archive, and returns the name in it.
func (b *bundle) add(file string) (string, error) {
	if name, ok := b.names[file]; ok {
		return name, nil
	}
	name := path.Join(filesDir, fmt.Sprint(len(b.names)), filepath.Base(file))
	b.names[file] = name
	return name, filepath.WalkDir(file, func(found string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(file, found)
		if err != nil {
			return err
		}
		info, err := os.Stat(found) // a link is followed
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s: must be a regular file with --on-cluster", found)
		case b.size+info.Size() > maxUnpacked:
			return fmt.Errorf("%s: the input has more than %d MiB: must have less with --on-cluster", found, maxUnpacked>>20)
		}
		content, err := os.ReadFile(found)
		if err != nil {
			return err
		}
		return b.write(path.Join(name, filepath.ToSlash(relative)), content)
	})
}

func (b *bundle) write(name string, content []byte) error {
	b.size += int64(len(content))
	if err := b.out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := b.out.Write(content)
	return err
}

// unpack writes the files of a bundle to a directory and returns its sweep, whose jobs read these files.
func unpack(chunks io.Reader, dir string) (*sweep, error) {
	compressed, err := gzip.NewReader(chunks)
	if err != nil {
		return nil, fmt.Errorf("the input is not a bundle: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing is written through it
	var s *sweep
	size := int64(0)
	for archive := tar.NewReader(io.LimitReader(compressed, maxUnpacked+maxUnpacked/8)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the input is not a bundle: %w", err)
		}
		if size += header.Size; header.Size < 0 || size > 2*maxUnpacked {
			return nil, fmt.Errorf("the input has more than %d MiB", 2*maxUnpacked>>20)
		}
		if header.Name == sweepFile {
			if err := json.NewDecoder(archive).Decode(&s); err != nil {
				return nil, fmt.Errorf("%s: %w", sweepFile, err)
			}
			continue
		}
		if err := unpackFile(root, header.Name, archive); err != nil {
			return nil, err
		}
	}
	if s == nil {
		return nil, fmt.Errorf("the input is not a bundle: it has no %s", sweepFile)
	}
	for i := range s.Jobs {
		s.Jobs[i].Source, err = s.Jobs[i].Source.Relocated(func(name string) (string, error) {
			if !strings.HasPrefix(name, filesDir+"/") {
				return "", fmt.Errorf("%s: must be in %s", name, filesDir)
			}
			return filepath.Join(dir, filepath.FromSlash(name)), nil
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// unpackFile writes one file below a directory.
func unpackFile(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
