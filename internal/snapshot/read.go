package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// limits bounds the memory that an archive takes when it is unpacked.
type limits struct {
	// entries is the largest number of entries, file and total the largest sizes in bytes of an
	// entry and of all entries.
	entries     int
	file, total int64
}

// defaultLimits leaves a margin: a cluster of 5,000 nodes and 150,000 pods takes about 250 MiB.
var defaultLimits = limits{entries: 256, file: 1 << 30, total: 2 << 30}

// Open reads a snapshot from a file. Errors name the file and the entry of the archive.
func Open(name string) (*Snapshot, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	s, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// Read reads a snapshot from an archive.
func Read(r io.Reader) (*Snapshot, error) { return defaultLimits.read(r) }

// read reads a snapshot within the limits.
func (b limits) read(r io.Reader) (*Snapshot, error) {
	files, err := b.unpack(r)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{}
	if err := s.readAbout(files[aboutFile]); err != nil {
		return nil, err
	}
	delete(files, aboutFile)
	if err := s.readLoad(files[loadFile]); err != nil {
		return nil, err
	}
	delete(files, loadFile)
	for _, kind := range Kinds {
		content, ok := files[kind.File()]
		if !ok {
			continue
		}
		delete(files, kind.File())
		list := List{Kind: kind}
		if err := list.read(content); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.File(), err)
		}
		s.Lists = append(s.Lists, list)
	}
	return s, s.check()
}

// unpack returns the contents of all files by name.
func (b limits) unpack(r io.Reader) (map[string][]byte, error) {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("not a snapshot: not a gzipped tar archive: %w", err)
	}
	limited := &io.LimitedReader{R: zipped, N: b.total + 1}
	explain := func(err error) error {
		switch {
		case limited.N <= 0:
			return fmt.Errorf("unpacked size exceeds the limit of %s", mebibytes(b.total))
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return errors.New("truncated")
		}
		return err
	}
	archive := tar.NewReader(limited)
	files := map[string][]byte{}
	for entries := 1; ; entries++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("incomplete snapshot: %w", explain(err))
		}
		if entries > b.entries {
			return nil, fmt.Errorf("archive has more than %d entries", b.entries)
		}
		name, ok, err := b.entry(header, files)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		// ReadAll allocates memory for the actual content, whatever size the header claims.
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, explain(err))
		}
		files[name] = content
	}
	// The checksum is at the end of the compressed data.
	if _, err := io.Copy(io.Discard, limited); err != nil || limited.N <= 0 {
		return nil, fmt.Errorf("incomplete snapshot: %w", explain(err))
	}
	return files, nil
}

// entry returns the name of the file of an entry, and false if the entry has no content.
func (b limits) entry(header *tar.Header, files map[string][]byte) (string, bool, error) {
	name := path.Clean(header.Name)
	switch header.Typeflag {
	case tar.TypeXGlobalHeader:
		return "", false, nil
	case tar.TypeReg, tar.TypeDir:
	default:
		return "", false, fmt.Errorf("%q: unsupported entry type %q: must be a file or a directory", header.Name, header.Typeflag)
	}
	if path.IsAbs(name) || strings.Contains(header.Name, `\`) || slices.Contains(strings.Split(header.Name, "/"), "..") {
		return "", false, fmt.Errorf("%q: path leads out of the archive", header.Name)
	}
	if header.Typeflag == tar.TypeDir {
		return "", false, nil
	}
	known := name == aboutFile || name == loadFile || slices.ContainsFunc(Kinds, func(kind *Kind) bool { return kind.File() == name })
	switch _, duplicate := files[name]; {
	case !known:
		return "", false, fmt.Errorf("%q: unknown file", header.Name)
	case duplicate:
		return "", false, fmt.Errorf("%q: duplicate file", header.Name)
	case header.Size > b.file:
		return "", false, fmt.Errorf("%q: exceeds the limit of %s", header.Name, mebibytes(b.file))
	}
	return name, true, nil
}

// mebibytes formats a size.
func mebibytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// readAbout reads the description of the snapshot.
func (s *Snapshot) readAbout(content []byte) error {
	if content == nil {
		return fmt.Errorf("not a snapshot: %s is missing", aboutFile)
	}
	if err := json.Unmarshal(content, &s.About); err != nil {
		return fmt.Errorf("%s: %w", aboutFile, err)
	}
	switch {
	case s.About.Kind != AboutKind || s.About.APIVersion != APIVersion:
		return fmt.Errorf(
			"%s: found kind %q of apiVersion %q: must be kind %s of apiVersion %s",
			aboutFile, s.About.Kind, s.About.APIVersion, AboutKind, APIVersion,
		)
	case s.About.Time.IsZero():
		return fmt.Errorf("%s: time: required value", aboutFile)
	}
	return nil
}

// readLoad reads the load.
func (s *Snapshot) readLoad(content []byte) error {
	if content == nil {
		return nil
	}
	reading, err := wire.Decode(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: %w", loadFile, err)
	}
	s.Load = &reading
	return nil
}

// read reads a v1 List.
func (l *List) read(content []byte) error {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return err
	}
	if list.Kind != "List" {
		return fmt.Errorf("found kind %q: must be List", list.Kind)
	}
	l.Items = list.Items
	return nil
}

// check compares the files with the list of files in the description.
func (s *Snapshot) check() error {
	expected := map[string]int{}
	for _, file := range s.About.Files {
		expected[file.Name] = file.Objects
	}
	for _, list := range s.Lists {
		objects, ok := expected[list.File()]
		if !ok || objects != len(list.Items) {
			return fmt.Errorf("%s: found %d objects, %s lists %d", list.File(), len(list.Items), aboutFile, objects)
		}
		delete(expected, list.File())
	}
	for _, file := range s.About.Files {
		if _, missing := expected[file.Name]; missing {
			return fmt.Errorf("%s: missing, but listed in %s", file.Name, aboutFile)
		}
	}
	if s.About.Load != nil && s.Load == nil {
		return fmt.Errorf("%s: missing, but %s describes it", loadFile, aboutFile)
	}
	return nil
}
