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

// bounds of what is read, so that no archive, however small, fills memory.
type bounds struct {
	// entries of the archive; bytes of one of them, and of all, unpacked.
	entries     int
	file, total int64
}

// A cluster of 5,000 nodes and 150,000 pods takes about 250 MiB.
var usual = bounds{entries: 256, file: 1 << 30, total: 2 << 30}

// Open reads a file. Errors name it, and the entry of the archive.
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

// Read reads an archive.
func Read(r io.Reader) (*Snapshot, error) { return usual.read(r) }

func (b bounds) read(r io.Reader) (*Snapshot, error) {
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

// unpack returns the content of all files by name.
func (b bounds) unpack(r io.Reader) (map[string][]byte, error) {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("not a snapshot, which is a gzipped tar archive: %w", err)
	}
	limited := &io.LimitedReader{R: zipped, N: b.total + 1}
	ended := func(err error) error {
		switch {
		case limited.N <= 0:
			return fmt.Errorf("unpacks to more than %s, want at most that", mebibytes(b.total))
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return errors.New("it ends in the middle")
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
			return nil, fmt.Errorf("not a whole snapshot: %w", ended(err))
		}
		if entries > b.entries {
			return nil, fmt.Errorf("more than %d entries, which no snapshot has", b.entries)
		}
		name, ok, err := b.entry(header, files)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		// Not as large as the header says: what is not there takes no memory.
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, ended(err))
		}
		files[name] = content
	}
	// What follows the archive holds the checksum of all.
	if _, err := io.Copy(io.Discard, limited); err != nil || limited.N <= 0 {
		return nil, fmt.Errorf("not a whole snapshot: %w", ended(err))
	}
	return files, nil
}

// entry returns the name of a file that is to be read, and whether the entry is one.
func (b bounds) entry(header *tar.Header, files map[string][]byte) (string, bool, error) {
	name := path.Clean(header.Name)
	switch header.Typeflag {
	case tar.TypeXGlobalHeader:
		return "", false, nil
	case tar.TypeReg, tar.TypeDir:
	default:
		return "", false, fmt.Errorf("%q: a link, a device or the like (type %q), want files", header.Name, header.Typeflag)
	}
	if path.IsAbs(name) || strings.Contains(header.Name, `\`) || slices.Contains(strings.Split(header.Name, "/"), "..") {
		return "", false, fmt.Errorf("%q: leads out of the archive", header.Name)
	}
	if header.Typeflag == tar.TypeDir {
		return "", false, nil
	}
	known := name == aboutFile || name == loadFile || slices.ContainsFunc(Kinds, func(kind *Kind) bool { return kind.File() == name })
	switch _, twice := files[name]; {
	case !known:
		return "", false, fmt.Errorf("%q: not a file that a snapshot has", header.Name)
	case twice:
		return "", false, fmt.Errorf("%q: there twice", header.Name)
	case header.Size > b.file:
		return "", false, fmt.Errorf("%q: larger than %s", header.Name, mebibytes(b.file))
	}
	return name, true, nil
}

func mebibytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

func (s *Snapshot) readAbout(content []byte) error {
	if content == nil {
		return fmt.Errorf("not a snapshot: %s is missing", aboutFile)
	}
	if err := json.Unmarshal(content, &s.About); err != nil {
		return fmt.Errorf("%s: %w", aboutFile, err)
	}
	switch {
	case s.About.Kind != AboutKind || s.About.APIVersion != APIVersion:
		return fmt.Errorf("%s: found kind %q of apiVersion %q, want %s of %s", aboutFile, s.About.Kind, s.About.APIVersion, AboutKind, APIVersion)
	case s.About.Time.IsZero():
		return fmt.Errorf("%s: time: missing, want the instant that the snapshot is of", aboutFile)
	}
	return nil
}

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

func (l *List) read(content []byte) error {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return err
	}
	if list.Kind != "List" {
		return fmt.Errorf("found kind %q, want List", list.Kind)
	}
	l.Items = list.Items
	return nil
}

// check compares what is there with what the snapshot says of itself.
func (s *Snapshot) check() error {
	said := map[string]int{}
	for _, file := range s.About.Files {
		said[file.Name] = file.Objects
	}
	for _, list := range s.Lists {
		objects, ok := said[list.File()]
		if !ok || objects != len(list.Items) {
			return fmt.Errorf("%s: found %d objects, %s says %d", list.File(), len(list.Items), aboutFile, objects)
		}
		delete(said, list.File())
	}
	for _, file := range s.About.Files {
		if _, missing := said[file.Name]; missing {
			return fmt.Errorf("%s: missing, though %s names it", file.Name, aboutFile)
		}
	}
	if s.About.Load != nil && s.Load == nil {
		return fmt.Errorf("%s: missing, though %s says there is load", loadFile, aboutFile)
	}
	return nil
}
