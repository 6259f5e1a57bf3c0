package snapshot

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"

	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// The names of the files other than lists of objects.
const (
	aboutFile = "snapshot.json"
	loadFile  = "load.json"
	usageFile = "usage.json"
)

// Write writes the snapshot as an archive. The archive has neither the time of writing nor an owner.
func (s *Snapshot) Write(w io.Writer) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	return cmp.Or(s.writeFiles(archive), archive.Close(), zipped.Close())
}

// writeFiles writes all files.
func (s *Snapshot) writeFiles(archive *tar.Writer) error {
	about, err := json.MarshalIndent(s.About, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(archive, aboutFile, append(about, '\n')); err != nil {
		return err
	}
	if s.Load != nil {
		var reading bytes.Buffer
		if err := wire.Encode(&reading, *s.Load); err != nil {
			return err
		}
		if err := writeFile(archive, loadFile, reading.Bytes()); err != nil {
			return err
		}
	}
	if s.Usage != nil {
		content, err := encodeUsage(s.Usage)
		if err != nil {
			return err
		}
		if err := writeFile(archive, usageFile, content); err != nil {
			return err
		}
	}
	for _, list := range s.Lists {
		if err := writeFile(archive, list.File(), list.encode()); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file.
func writeFile(archive *tar.Writer, name string, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), Format: tar.FormatUSTAR}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}
