package snapshot

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// limits bounds the memory that an archive takes when it is unpacked.
type limits struct {
	// entries is the largest number of entries, file and total the largest sizes in bytes of an
	// entry and of all entries.
	entries     int
	file, total int64
	// ratio is the largest ratio of the unpacked to the packed size. The first free bytes are not bound by it.
	ratio, free int64
	// item is the largest size of an object in bytes, items the largest number of objects of a kind.
	item  int64
	items int
	// structs is the largest number of JSON objects in all objects, plus one for each packed byte: each takes
	// up to 1 KiB when it is decoded.
	structs int64
}

// defaultLimits leaves a margin: a cluster of 5,000 nodes and 150,000 pods takes about 250 MiB, 10 MiB
// packed, and has 6 million JSON objects. The API server does not store objects of more than 3 MiB.
var defaultLimits = limits{
	entries: 256, file: 1 << 30, total: 2 << 30, ratio: 250, free: 64 << 20, item: 3 << 20, items: 1_000_000, structs: 1_000_000,
}

// maxAbout is the largest size of the description.
const maxAbout = 1 << 20

// Open reads a snapshot from a file. Errors name the file and the entry of the archive.
func Open(name string) (*Snapshot, error) { return manifest.Open(name, Read) }

// Read reads a snapshot from an archive.
func Read(r io.Reader) (*Snapshot, error) { return defaultLimits.read(r) }

// read reads a snapshot within the limits.
func (b limits) read(r io.Reader) (*Snapshot, error) {
	s, described := &Snapshot{}, false
	items := map[*Kind][]json.RawMessage{}
	u := &unpacker{limits: b}
	err := u.unpack(r, func(name string, content io.Reader) (err error) {
		switch name {
		case aboutFile:
			described = true
			return s.readAbout(content)
		case loadFile:
			return s.readLoad(content)
		case usageFile:
			return s.readUsage(content)
		}
		kind := kindOfFile(name)
		items[kind], err = u.readList(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !described {
		return nil, fmt.Errorf("not a snapshot: %s is missing", aboutFile)
	}
	for _, kind := range Kinds {
		if found, ok := items[kind]; ok {
			s.Lists = append(s.Lists, List{kind, found})
		}
	}
	return s, s.check()
}

// kindOfFile returns the kind with a file, or nil.
func kindOfFile(name string) *Kind {
	i := slices.IndexFunc(Kinds, func(kind *Kind) bool { return kind.File() == name })
	if i < 0 {
		return nil
	}
	return Kinds[i]
}

// entry returns the name of the file of an entry, and false if the entry has no content.
func (b limits) entry(header *tar.Header, files map[string]bool) (string, bool, error) {
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
	switch {
	case name != aboutFile && name != loadFile && name != usageFile && kindOfFile(name) == nil:
		return "", false, fmt.Errorf("%q: unknown file", header.Name)
	case files[name]:
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
func (s *Snapshot) readAbout(in io.Reader) error {
	content, err := io.ReadAll(io.LimitReader(in, maxAbout+1))
	if err != nil {
		return err
	}
	if len(content) > maxAbout {
		return fmt.Errorf("exceeds the limit of %s", mebibytes(maxAbout))
	}
	if err := json.Unmarshal(content, &s.About); err != nil {
		return err
	}
	switch {
	case s.About.Kind != AboutKind || s.About.APIVersion != APIVersion:
		return fmt.Errorf(
			"found kind %q of apiVersion %q: must be kind %s of apiVersion %s",
			s.About.Kind, s.About.APIVersion, AboutKind, APIVersion,
		)
	case s.About.Time.IsZero():
		return errors.New("time: required value")
	}
	return nil
}

// readLoad reads the load.
func (s *Snapshot) readLoad(in io.Reader) error {
	reading, err := wire.Decode(in)
	if err == nil {
		s.Load = &reading
	}
	return err
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
	return s.checkUsage()
}
