package oncluster

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/job"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// Keys of the ConfigMaps of an index.
const (
	dataKey  = "data"     // a part of the input or of the outcomes
	partsKey = "parts"    // in the first part: the number of parts
	sumKey   = "checksum" // in the first part: of all parts
)

// maxUncompressed bounds the outcomes of an index without compression.
const maxUncompressed = 512 << 20

// parts is the number of ConfigMaps for the results of an index. A run that is recorded has time series of every node and needs more.
func parts(jobs []job.Job) int {
	if slices.ContainsFunc(jobs, func(j job.Job) bool { return j.Record }) {
		return 8
	}
	return 1
}

// outcome is that of one job: its run, or why it failed. A job that fails would fail again, so it is an outcome and no failure of the pod.
type outcome struct {
	Run   *result.Run `json:"run,omitempty"`
	Error string      `json:"error,omitempty"`
}

// part is the content of one ConfigMap.
type part struct {
	text   map[string]string
	binary map[string][]byte
}

// encode returns the outcomes of an index in at most limit parts.
func encode(outcomes []outcome, limit int) ([]part, error) {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(compressed).Encode(outcomes), compressed.Close()); err != nil {
		return nil, err
	}
	if packed.Len() > limit*chunkSize {
		return nil, fmt.Errorf("the results have %d KiB after compression: must have at most %d KiB", packed.Len()>>10, limit*chunkSize>>10)
	}
	var list []part
	for chunk := range slices.Chunk(packed.Bytes(), chunkSize) {
		list = append(list, part{binary: map[string][]byte{dataKey: chunk}})
	}
	sum := sha256.Sum256(packed.Bytes())
	list[0].text = map[string]string{partsKey: strconv.Itoa(len(list)), sumKey: hex.EncodeToString(sum[:])}
	return list, nil
}

// countParts returns the number of parts, which the first one states.
func countParts(first part, limit int) (int, error) {
	count, err := strconv.Atoi(first.text[partsKey])
	if err != nil || count < 1 || count > limit {
		return 0, fmt.Errorf("%s: invalid value %q: must be from 1 to %d", partsKey, first.text[partsKey], limit)
	}
	return count, nil
}

// decode returns the outcomes in all parts of an index.
func decode(list []part) ([]outcome, error) {
	var packed bytes.Buffer
	for _, p := range list {
		packed.Write(p.binary[dataKey])
	}
	if sum := sha256.Sum256(packed.Bytes()); hex.EncodeToString(sum[:]) != list[0].text[sumKey] {
		return nil, fmt.Errorf("%s: does not match the parts", sumKey)
	}
	compressed, err := gzip.NewReader(&packed)
	if err != nil {
		return nil, err
	}
	var outcomes []outcome
	if err := json.NewDecoder(io.LimitReader(compressed, maxUncompressed)).Decode(&outcomes); err != nil {
		return nil, err
	}
	return outcomes, nil
}
