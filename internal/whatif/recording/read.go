package recording

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
)

// limits bounds the memory that a file takes when it is read.
type limits struct {
	// chunk is the largest size of a chunk in bytes, compressed and uncompressed; body the largest size of a record.
	chunk, body int64
	// nodes, pods and objects are the largest numbers of nodes, pods and other objects.
	nodes, pods, objects int
	// structs is the largest number of JSON objects in all records, plus one for each byte of the file: each takes
	// up to 1 KiB when it is decoded.
	structs int64
	// values is the largest number of values of usage, of 2 bytes each, and freeValues the number without a bound by the size of the
	// file: of more there are at most valuesPerByte for each byte.
	values, freeValues int64
}

// valuesPerByte is the largest number of values of usage for each byte of a file: a pod with constant usage has 500.
const valuesPerByte = 1000

// defaultLimits leaves a margin: 30,000 pods that use CPU and memory for a week, in steps of a minute, have 605
// million values.
var defaultLimits = limits{
	chunk:      64 << 20,
	body:       4 << 20,
	nodes:      200_000,
	pods:       5_000_000,
	objects:    1_000_000,
	structs:    1_000_000,
	values:     1 << 30,
	freeValues: 1 << 23,
}

// openFile reads a recording from a file. Errors name the file. If the file is cut off or its middle is damaged, the
// readable part is returned, and About.Missing names the missing part. A snapshot must be complete.
func openFile(name string) (*Recording, error) { return manifest.Open(name, Read) }

// Read reads a recording, see Open.
func Read(in io.Reader) (*Recording, error) { return defaultLimits.read(in) }

// read reads a recording.
func (l limits) read(in io.Reader) (*Recording, error) {
	d := &decoder{
		limits: l, nodes: entries[Node]{kind: "node", limit: l.nodes}, pods: entries[Pod]{kind: "pod", limit: l.pods},
	}
	if err := d.file(in); err != nil {
		return nil, err
	}
	return d.recording()
}

// readAbout reads the description at the start of a file.
func readAbout(in io.Reader) (About, error) {
	d := &decoder{limits: defaultLimits}
	content, err := d.next(in)
	if err == nil {
		err = d.content(content)
	}
	return d.about, err
}

// errDamaged is returned for a chunk whose content is damaged if the next chunk can be read.
var errDamaged = errors.New("checksum mismatch")

// next returns the content of the next chunk, io.EOF at the end and io.ErrUnexpectedEOF if the file is cut off.
func (d *decoder) next(in io.Reader) ([]byte, error) {
	header := make([]byte, headerLength)
	n, err := io.ReadFull(in, header)
	isOther := n > 0 && !strings.HasPrefix(marker, string(header[:min(n, len(marker))]))
	if err != nil && !isOther {
		return nil, err
	}
	if isOther || crc32.Checksum(header[:12], castagnoli) != binary.LittleEndian.Uint32(header[12:]) {
		return nil, errors.New("must be a file of plimsoll record or plimsoll snapshot")
	}
	length := int64(binary.LittleEndian.Uint32(header[4:]))
	if length > d.chunk {
		return nil, fmt.Errorf("chunk of %d bytes: must have at most %d", length, d.chunk)
	}
	var content bytes.Buffer // grows while it is read
	if _, err := io.CopyN(&content, in, length); err != nil {
		return nil, unexpected(err)
	}
	d.packed += headerLength + length
	d.chunks++
	if crc32.Checksum(content.Bytes(), castagnoli) != binary.LittleEndian.Uint32(header[8:]) {
		return nil, errDamaged
	}
	return content.Bytes(), nil
}

// file reads all chunks.
func (d *decoder) file(in io.Reader) error {
	in = bufio.NewReaderSize(in, 1<<16)
	for {
		start := d.packed
		content, err := d.next(in)
		switch {
		case err == nil:
			if err := d.content(content); err != nil {
				return fmt.Errorf("chunk %d (at byte %d): %w", d.chunks, start, err)
			}
		case !d.described:
			return notRecording(start, err)
		case errors.Is(err, io.EOF):
			if !d.ended {
				d.addMissing("the end of the recording", "the writer was interrupted or is still writing, or the file is cut off")
			}
			return nil
		case errors.Is(err, errDamaged):
			d.addMissing(fmt.Sprintf("bytes %d to %d of the file", start, d.packed-1), "damaged ("+err.Error()+"), skipped")
		case errors.Is(err, io.ErrUnexpectedEOF):
			d.addMissing("the end of the recording", fmt.Sprintf("the file is cut off within the chunk at byte %d", start))
			return nil
		default:
			d.addMissing(fmt.Sprintf("the file from byte %d on", start), "damaged ("+err.Error()+"), skipped")
			return nil
		}
	}
}

// notRecording returns the error for a file whose first chunk cannot be read.
func notRecording(start int64, err error) error {
	switch {
	case errors.Is(err, io.EOF) && start == 0:
		return errors.New("not a recording: empty file")
	case errors.Is(err, io.EOF):
		return errors.New("not a recording: it has no description")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("incomplete recording: cut off within its first chunk")
	}
	if errors.Is(err, errDamaged) {
		return fmt.Errorf("damaged recording: first chunk: %w: nothing can be read", err)
	}
	return fmt.Errorf("not a recording: %w", err)
}
