package recording

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"time"
)

// The format of a file: members of gzip, each of whole lines. A line is a JSON object with type and time. Readers skip unknown types.
const (
	// lineRecording is a header, which is the first line. A later header replaces it, but may change neither the start nor the step: the
	// recording is complete until its To.
	lineRecording = "RECORDING"
	// lineAdded, lineModified and lineDeleted are watch events of objects, as kubectl get --watch --output-watch-events prints them. A pod
	// has its creationTimestamp, its nodeName, the condition PodScheduled, its startTime and, if it has finished, the states of its
	// containers. A line replaces the object with the same name and, of pods, the same creationTimestamp. A node appears at the time of its
	// first line, and nodes and pods end at the time of DELETED. Of other objects, only ADDED is read.
	lineAdded    = "ADDED"
	lineModified = "MODIFIED"
	lineDeleted  = "DELETED"
	// lineUsage is a usageLine.
	lineUsage = "USAGE"
	// lineLoad is the load of some nodes, as package wire encodes it, in snapshots only.
	lineLoad = "LOAD"
)

// header is a line that describes the recording.
type header struct {
	About
	// Complete is true in the last line of a finished recording.
	Complete bool `json:"complete"`
	// Source and WindowSeconds are where the usage of pods in a snapshot is from, and the time that it covers.
	Source        string  `json:"source,omitempty"`
	WindowSeconds float64 `json:"windowSeconds,omitempty"`
}

// line is a line of another type than header and usage.
type line struct {
	Type   string          `json:"type"`
	Time   time.Time       `json:"time"`
	Object json.RawMessage `json:"object,omitempty"`
	Nodes  json.RawMessage `json:"nodes,omitempty"`
}

// The header of a member has an index in its extra field, which other readers of gzip ignore: the length of the member in bytes; if it has
// only usage, the first step and the step after the last, else 0; and the CRC-32 of these three. Each has 4 bytes, little-endian. With it a
// member is skipped that is damaged or outside of a span. Files without it are read, too.
const (
	magic        = "\x1f\x8b\x08"
	extra        = "\x14\x00PL\x10\x00" // length of the extra field, ID, and length of the index
	extraAt      = 10
	indexAt      = extraAt + len(extra)
	headerLength = indexAt + 16
)

// compress returns a member with lines. If they have only usage, it is from a step until before another; else both are 0.
func compress(lines []byte, level, first, end int) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		return nil, err
	}
	z.Extra = append([]byte(extra[2:]), make([]byte, headerLength-indexAt)...)
	_, err = z.Write(lines)
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	member := out.Bytes()
	put := func(at int, value uint32) { binary.LittleEndian.PutUint32(member[indexAt+at:], value) }
	put(0, uint32(len(member)))
	put(4, uint32(first))
	put(8, uint32(end))
	put(12, crc32.ChecksumIEEE(member[indexAt:indexAt+12]))
	return member, nil
}

// parseIndex returns the index of a member that begins with a header, and false if there is none.
func parseIndex(header []byte) (length int64, first, end int, ok bool) {
	if len(header) < headerLength || header[3]&4 == 0 || string(header[extraAt:indexAt]) != extra {
		return 0, 0, 0, false
	}
	at := func(i int) uint32 { return binary.LittleEndian.Uint32(header[indexAt+i:]) }
	ok = at(12) == crc32.ChecksumIEEE(header[indexAt:indexAt+12])
	return int64(at(0)), int(at(4)), int(at(8)), ok
}
