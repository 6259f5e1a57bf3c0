// Package wire encodes and decodes the JSON format of load-watcher services. Times are in Unix seconds,
// values in percent of the node's capacity.
//
//	{"timestamp": 1795239886,
//	 "window": {"duration": "15m", "start": 1795238986, "end": 1795239886},
//	 "source": "Prometheus",
//	 "data": {"NodeMetricsMap": {"node-1": {"metrics": [
//	   {"name": "instance:node_cpu:ratio", "type": "CPU", "operator": "AVG", "rollup": "15m", "value": 40}],
//	   "tags": {}, "metadata": {"dataCenter": ""}}}}}
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// MaxBytes is the size of the largest message; one with 5,000 nodes has about 3 MiB.
const MaxBytes = 64 << 20

// The types and operators of a metric.
const (
	typeCPU    = "CPU"
	typeMemory = "Memory"

	operatorAverage   = "AVG"
	operatorDeviation = "STD"
	operatorLatest    = "Latest"
)

type message struct {
	Timestamp int64  `json:"timestamp"`
	Window    window `json:"window"`
	Source    string `json:"source"`
	Data      data   `json:"data"`
}

type window struct {
	Duration string `json:"duration"`
	Start    int64  `json:"start"`
	End      int64  `json:"end"`
}

// length returns the length of the window, 0 if the message does not contain it.
func (w window) length() time.Duration {
	if d, err := time.ParseDuration(w.Duration); err == nil && d >= 0 {
		return d
	}
	if w.Start > 0 && w.End > w.Start && w.End < math.MaxInt32*4 {
		return time.Duration(w.End-w.Start) * time.Second
	}
	return 0
}

type data struct {
	NodeMetricsMap map[string]nodeMetrics `json:"NodeMetricsMap"`
}

type nodeMetrics struct {
	Metrics  []metric       `json:"metrics"`
	Tags     map[string]any `json:"tags"`
	Metadata metadata       `json:"metadata"`
}

type metadata struct {
	DataCenter string `json:"dataCenter"`
}

type metric struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Operator string   `json:"operator"`
	Rollup   string   `json:"rollup"`
	Value    *percent `json:"value"`
}

// percent is a value in percent. It is NaN if the message has anything but a number.
type percent float64

// UnmarshalJSON implements json.Unmarshaler. It does not fail.
func (p *percent) UnmarshalJSON(raw []byte) error {
	var value float64
	if err := json.Unmarshal(raw, &value); err != nil {
		value = math.NaN()
	}
	*p = percent(value)
	return nil
}

// Decode reads a message. Invalid values are ignored and counted in the reading; values over 100 count
// as 100. Nodes without an average have the latest value, without a standard deviation.
func Decode(r io.Reader) (load.Reading, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return load.Reading{}, err
	}
	if len(raw) > MaxBytes {
		return load.Reading{}, fmt.Errorf("message is larger than %d MiB", MaxBytes>>20)
	}
	quoted := quoteNonNumbers(raw)
	var m message
	if err := json.Unmarshal(quoted, &m); err != nil {
		return load.Reading{}, describe(err, raw, quoted)
	}
	at := m.Timestamp
	if at == 0 {
		at = m.Window.End
	}
	switch {
	case at <= 0 || at > math.MaxInt32*4:
		return load.Reading{}, fmt.Errorf("timestamp: invalid value %d: must be Unix seconds", at)
	case m.Data.NodeMetricsMap == nil:
		return load.Reading{}, errors.New("data.NodeMetricsMap: required")
	}
	reading := load.Reading{Source: m.Source, Time: time.Unix(at, 0), Nodes: make(map[string]load.Node, len(m.Data.NodeMetricsMap))}
	reading.Window = m.Window.length()
	for name, node := range m.Data.NodeMetricsMap {
		cpu, hasCPU := utilization(node.Metrics, typeCPU, &reading.Rejected)
		memory, hasMemory := utilization(node.Metrics, typeMemory, &reading.Rejected)
		if hasCPU || hasMemory {
			reading.Nodes[name] = load.Node{CPU: cpu, Memory: memory, HasCPU: hasCPU, HasMemory: hasMemory}
		}
	}
	return reading, nil
}

// utilization returns the utilization of one resource from the metrics of a node, and whether there is
// one. It adds the number of invalid values to rejected.
func utilization(metrics []metric, resource string, rejected *int) (load.Utilization, bool) {
	var average, latest, deviation float64
	var hasAverage, hasLatest bool
	for _, m := range metrics {
		if m.Type != resource {
			continue
		}
		if m.Value == nil {
			*rejected++
			continue
		}
		fraction := float64(*m.Value) / 100
		if !(fraction >= 0) || math.IsInf(fraction, 1) {
			*rejected++
			continue
		}
		fraction = min(fraction, 1)
		switch m.Operator {
		case operatorAverage:
			average, hasAverage = fraction, true
		case operatorLatest, "":
			latest, hasLatest = fraction, true
		case operatorDeviation:
			deviation = fraction
		}
	}
	if hasAverage {
		return load.Utilization{Mean: average, StdDev: deviation}, true
	}
	return load.Utilization{Mean: latest}, hasLatest
}

// Encode writes a reading as one message, with the nodes sorted by name.
func Encode(w io.Writer, reading load.Reading) error {
	m := message{
		Timestamp: reading.Time.Unix(), Source: reading.Source,
		Window: window{Duration: shortDuration(reading.Window), Start: reading.Time.Add(-reading.Window).Unix(), End: reading.Time.Unix()},
		Data:   data{NodeMetricsMap: make(map[string]nodeMetrics, len(reading.Nodes))},
	}
	for _, name := range slices.Sorted(maps.Keys(reading.Nodes)) {
		node := reading.Nodes[name]
		out := nodeMetrics{Metrics: []metric{}, Tags: map[string]any{}}
		add := func(resource string, u load.Utilization, has bool) {
			if !has || !u.Valid() {
				return
			}
			mean, deviation := percent(min(u.Mean, 1)*100), percent(min(u.StdDev, 1)*100)
			out.Metrics = append(out.Metrics,
				metric{resource, resource, operatorAverage, m.Window.Duration, &mean},
				metric{resource, resource, operatorDeviation, m.Window.Duration, &deviation})
		}
		add(typeCPU, node.CPU, node.HasCPU)
		add(typeMemory, node.Memory, node.HasMemory)
		m.Data.NodeMetricsMap[name] = out
	}
	return json.NewEncoder(w).Encode(m)
}

// shortDuration formats a duration without trailing zero units, such as 15m. Other services use this
// format, and clients may compare it.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// quoteNonNumbers quotes bare NaN and Infinity, which some services send and JSON does not allow, so that
// the message can be decoded.
func quoteNonNumbers(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("NaN")) && !bytes.Contains(raw, []byte("Inf")) {
		return raw
	}
	out := make([]byte, 0, len(raw)+64)
	inString := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\' && i+1 < len(raw):
			out = append(out, c)
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == 'N' || c == 'I' || c == '+' || c == '-'):
			if word := nonNumber(raw[i:]); word != "" {
				out = append(out, '"')
				out = append(out, word...)
				out = append(out, '"')
				i += len(word) - 1
				continue
			}
		}
		out = append(out, raw[i])
	}
	return out
}

// nonNumber returns the prefix that is NaN or Infinity, empty if there is none.
func nonNumber(raw []byte) string {
	for _, word := range []string{"NaN", "Infinity", "-Infinity", "+Infinity", "-Inf", "+Inf", "Inf"} {
		if bytes.HasPrefix(raw, []byte(word)) {
			return word
		}
	}
	return ""
}

// describe adds line and column of the message raw to an error of the JSON decoder, which decoded
// quoted.
func describe(err error, raw, quoted []byte) error {
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &wrongType):
		offset = wrongType.Offset
	}
	if offset < 1 || offset > int64(len(quoted)) {
		return fmt.Errorf("decoding load-watcher message: %w", err)
	}
	before := raw[:rawOffset(raw, quoted, int(offset)-1)]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("decoding load-watcher message: line %d, column %d: %w", line, column, err)
}

// rawOffset returns the offset in raw of the byte at an offset in quoted, which is raw with added
// quotes.
func rawOffset(raw, quoted []byte, offset int) int {
	position := 0
	for i := range offset {
		if position < len(raw) && quoted[i] == raw[position] {
			position++
		}
	}
	return min(position, len(raw))
}
