package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
)

// limits bounds the memory that a file takes when it is read.
type limits struct {
	// member is the largest size of a member in bytes, compressed and uncompressed; line the largest size of a line.
	member, line int64
	// text is the largest size of all lines in bytes, without textPerByte for each byte of the file.
	text int64
	// nodes, pods and objects are the largest numbers of nodes, pods and other objects.
	nodes, pods, objects int
	// structs is the largest number of JSON objects in all objects, plus one for each byte of the file: each takes
	// up to 1 KiB when it is decoded.
	structs int64
	// values is the largest number of values of usage, of 2 bytes each, and freeValues the number without a bound by the size of the
	// file: of more there are at most valuesPerByte for each byte.
	values, freeValues int64
}

const (
	// valuesPerByte is the largest number of values of usage for each byte of a file: a pod with constant usage has 500.
	valuesPerByte = 1000
	// textPerByte is the largest number of bytes of lines for each byte of a file, which bounds the time to read it.
	textPerByte = 600
)

// defaultLimits leaves a margin: 30,000 pods that use CPU and memory for a week, in steps of a minute, have 605
// million values.
var defaultLimits = limits{
	member:     64 << 20,
	line:       4 << 20,
	text:       64 << 20,
	nodes:      200_000,
	pods:       5_000_000,
	objects:    1_000_000,
	structs:    1_000_000,
	values:     1 << 30,
	freeValues: 1 << 23,
}

// openFile reads a recording from a file, with usage from one second until another at least, all if until is 0. Errors name the file. If
// the file is cut off or its middle is damaged, the readable part is returned, and About.Missing names the missing part. A snapshot must be
// complete.
func openFile(name string, from, until int64) (*Recording, error) {
	return manifest.Open(name, func(in io.Reader) (*Recording, error) { return defaultLimits.read(in, from, until) })
}

// Read reads a recording, see Open.
func Read(in io.Reader) (*Recording, error) { return defaultLimits.read(in, 0, 0) }

// read reads a recording, with usage from one second until another at least, all if until is 0.
func (l limits) read(in io.Reader, from, until int64) (*Recording, error) {
	d := newDecoder(l, in)
	d.from, d.until = from, until
	if err := d.file(); err != nil {
		return nil, err
	}
	return d.recording()
}

// readAbout reads the first line of a file.
func readAbout(in io.Reader) (About, error) {
	d := newDecoder(defaultLimits, in)
	text, err := d.next()
	if err == nil {
		first, _, _ := bytes.Cut(text, []byte("\n"))
		err = d.line(first)
	}
	return d.header.About, err
}

// counter counts the bytes that are read.
type counter struct {
	in    io.Reader
	count int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.count += int64(n)
	return n, err
}

// concerns reports whether usage from a step until before another may concern the span.
func (d *decoder) concerns(first, end int) bool {
	step := int64(d.header.Step)
	return int64(end)*step > d.from-spanMargin && (d.until == 0 || int64(first)*step <= d.until+spanMargin)
}

// errDamaged is returned for a member that is damaged if the next one can be read, errBound for one that exceeds a bound, and errCut for
// one that is cut off.
var (
	errDamaged = errors.New("damaged")
	errBound   = errors.New("too large")
	errCut     = errors.New("cut off within a member")
)

// next returns the lines of the next member, none if it is outside of the span, and io.EOF at the end.
func (d *decoder) next() ([]byte, error) {
	head, err := d.in.Peek(headerLength)
	switch {
	case len(head) == 0:
		return nil, err
	case strings.HasPrefix(string(head), "PLRC"):
		return nil, errors.New("recorded by an earlier build, whose files are not read: record again")
	case !strings.HasPrefix(magic, string(head[:min(len(head), len(magic))])):
		return nil, errors.New("must be a file of plimsoll record or plimsoll snapshot")
	}
	d.members++
	length, first, end, ok := parseIndex(head)
	switch {
	case !ok:
		err = d.unpack(d.in)
	case length > d.limits.member || length < int64(headerLength):
		err = fmt.Errorf("%w: member of %d bytes: must have at most %d", errBound, length, d.limits.member)
	case d.described && end > 0 && !d.concerns(first, end):
		d.content.Reset()
		_, err = d.in.Discard(int(length))
	default:
		err = d.indexed(length)
	}
	d.packed = d.raw.count - int64(d.in.Buffered())
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errCut
	}
	d.text += int64(d.content.Len())
	if most := d.limits.text + textPerByte*d.packed; err == nil && d.text > most {
		err = fmt.Errorf("%w: more than %d bytes of lines in a file of %d bytes", errBound, most, d.packed)
	}
	return d.content.Bytes(), err
}

// indexed reads a member of a length.
func (d *decoder) indexed(length int64) error {
	d.member.Reset() // it grows while it is read
	if _, err := io.CopyN(&d.member, d.in, length); err != nil {
		return err
	}
	member := bytes.NewReader(d.member.Bytes())
	err := d.unpack(member)
	switch {
	case errors.Is(err, errBound):
		return err
	case err == nil && member.Len() > 0:
		err = errors.New("another member within its length")
	}
	if err != nil {
		return fmt.Errorf("%w (%v)", errDamaged, err) //nolint:errorlint // it may be io.ErrUnexpectedEOF, but the file is not cut off
	}
	return nil
}

// unpack unpacks a member and checks its checksum.
func (d *decoder) unpack(member io.Reader) error {
	d.content.Reset()
	if err := d.gzip.Reset(member); err != nil {
		return err
	}
	d.gzip.Multistream(false)
	switch _, err := io.CopyN(&d.content, &d.gzip, d.limits.member+1); {
	case err == nil:
		return fmt.Errorf("%w: member of more than %d bytes when unpacked: must have at most that", errBound, d.limits.member)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// file reads all members.
func (d *decoder) file() error {
	for {
		start := d.packed
		text, err := d.next()
		if err == nil {
			if err = d.lines(text); err == nil {
				continue
			}
			err = fmt.Errorf("member %d (at byte %d): %w", d.members, start, err)
			if !d.described {
				err = fmt.Errorf("not a recording: %w", err)
			}
			return err
		}
		switch {
		case !d.described && errors.Is(err, io.EOF):
			return errors.New("not a recording: empty file")
		case !d.described:
			return fmt.Errorf("not a recording: %w", err)
		case errors.Is(err, errBound):
			return fmt.Errorf("member %d (at byte %d): %w", d.members, start, err)
		case errors.Is(err, errDamaged):
			d.addMissing(fmt.Sprintf("bytes %d to %d of the file", start, d.packed-1), err.Error()+", skipped")
			continue
		case errors.Is(err, io.EOF):
			if !d.header.Complete {
				d.addMissing("the end of the recording", "the writer was interrupted or is still writing, or the file is cut off")
			}
		case errors.Is(err, errCut):
			d.addMissing("the end of the recording", fmt.Sprintf("the file is cut off within the member at byte %d", start))
		default:
			d.addMissing(fmt.Sprintf("the file from byte %d on", start), "damaged ("+err.Error()+"), skipped")
		}
		return nil
	}
}

// lines reads the lines of a member.
func (d *decoder) lines(text []byte) error {
	for number := 1; len(text) > 0; number++ {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		if int64(len(line)) > d.limits.line {
			return fmt.Errorf("line %d: found %d bytes: must have at most %d", number, len(line), d.limits.line)
		}
		if err := d.line(line); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		text = rest
	}
	return nil
}
