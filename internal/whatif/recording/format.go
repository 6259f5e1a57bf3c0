package recording

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// The format of a file. All numbers are little-endian.
//
//	file    = chunk, ...
//	chunk   = marker (4 bytes), length of the content (4), checksum of the content (4), checksum of these 12 bytes (4), content
//	content = records, compressed with DEFLATE
//	record  = kind (1 byte), length of the body (unsigned varint), body
//
// Checksums are CRC-32C. The first record of a file is About. A later About replaces the earlier About: the recording is
// complete until its To. A record of a node or a pod with a number that occurred before changes that node or pod. Usage
// of a pod is in the order of the first steps; later values replace earlier ones of the same step. Records of unknown
// kinds are ignored. The last record of a finished file is recordEnd.
const (
	marker       = "PLRC"
	headerLength = 16

	recordAbout  = 'A' // About as JSON
	recordNode   = 'N' // objectRecord as JSON
	recordPod    = 'P' // objectRecord as JSON
	recordObject = 'O' // an object as JSON
	recordUsage  = 'U' // number of the pod, resource, first step, number of values, differences of codes
	recordEnd    = 'E' // empty

	// recordLoad and recordMeasured are in snapshots only.
	recordLoad     = 'L' // load of some nodes, as package wire encodes it
	recordMeasured = 'M' // measuredRecord as JSON
)

// The resources in records of usage.
const (
	resourceCPU    = 0
	resourceMemory = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// objectRecord is a node or a pod or, without an object, a change of one. Times that are nil and an empty node are unchanged; a time that
// is nil in the first record is Never. Appeared and Gone are times of nodes, all other times of pods.
type objectRecord struct {
	ID        int             `json:"id"`
	Object    json.RawMessage `json:"object,omitempty"`
	Appeared  *int64          `json:"appeared,omitempty"`
	Gone      *int64          `json:"gone,omitempty"`
	Created   *int64          `json:"created,omitempty"`
	Scheduled *int64          `json:"scheduled,omitempty"`
	Started   *int64          `json:"started,omitempty"`
	Ended     *int64          `json:"ended,omitempty"`
	Node      string          `json:"node,omitempty"`
}

// measuredRecord is the usage of some pods of a snapshot.
type measuredRecord struct {
	Source        string          `json:"source"`
	Time          time.Time       `json:"time"`
	WindowSeconds float64         `json:"windowSeconds"`
	Pods          []load.PodUsage `json:"pods"`
}

// known returns the time for a record, nil for Never.
func known(at int64) *int64 {
	if at == Never {
		return nil
	}
	return &at
}

// appendUsage appends the body of a record of usage. Differences are zigzag varints, the first one to zero.
func appendUsage(out []byte, id, resource int, s Series) []byte {
	for _, n := range []int{id, resource, s.First, len(s.codes)} {
		out = binary.AppendUvarint(out, uint64(n))
	}
	last := int64(0)
	for _, code := range s.codes {
		out = binary.AppendVarint(out, int64(code)-last)
		last = int64(code)
	}
	return out
}

// compress returns a chunk with the records.
func compress(records []byte) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, headerLength, headerLength+len(records)/4))
	compressor, err := flate.NewWriter(out, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	_, err = compressor.Write(records)
	if err = errors.Join(err, compressor.Close()); err != nil {
		return nil, err
	}
	chunk := out.Bytes()
	content := chunk[headerLength:]
	copy(chunk, marker)
	binary.LittleEndian.PutUint32(chunk[4:], uint32(len(content)))
	binary.LittleEndian.PutUint32(chunk[8:], crc32.Checksum(content, castagnoli))
	binary.LittleEndian.PutUint32(chunk[12:], crc32.Checksum(chunk[:12], castagnoli))
	return chunk, nil
}
