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
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// MaxBytes is the size of the largest message; a message with 5,000 nodes has about 3 MiB.
const MaxBytes = 64 << 20

const (
	// maxNodes is the largest number of nodes in a message.
	maxNodes = 100_000
	// maxMetrics is the largest number of metrics of a node; existing services send up to 34, and two for each further disk.
	maxMetrics = 10_000
	// maxName is the length of the longest name of a node.
	maxName = 253
)

// The types and operators of a metric.
const (
	typeCPU    = "CPU"
	typeMemory = "Memory"

	operatorAverage   = "AVG"
	operatorDeviation = "STD"
	operatorLatest    = "Latest"
)

type message struct {
	// Kind is set in objects of Kubernetes only.
	Kind      string `json:"kind,omitempty"`
	Timestamp int64  `json:"timestamp"`
	Window    window `json:"window"`
	Source    string `json:"source"`
	Data      struct {
		NodeMetricsMap nodeMap
	} `json:"data,omitzero"`
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

// nodeMap collects the load of the nodes while the message is decoded, one metric at a time, so that the
// memory depends on the number of nodes and not on the size of the message.
type nodeMap struct {
	nodes    map[string]load.Node
	rejected int
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *nodeMap) UnmarshalJSON(raw []byte) error {
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if n.nodes == nil {
		n.nodes = map[string]load.Node{}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return fmt.Errorf("data.NodeMetricsMap: found %.20q: must be an object", raw)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var node struct {
			Metrics metricList `json:"metrics"`
		}
		if err := dec.Decode(&node); err != nil {
			return fmt.Errorf("data.NodeMetricsMap[%.260q]: %v", key, err) //nolint:errorlint // offsets are relative to the node
		}
		if err := n.add(key.(string), &node.Metrics); err != nil {
			return err
		}
	}
	return nil
}

// add adds the load of a node.
func (n *nodeMap) add(name string, metrics *metricList) error {
	n.rejected += metrics.rejected
	cpu, memory := &metrics.cpu, &metrics.memory
	if len(name) > maxName {
		n.rejected++
		return nil
	}
	if cpu.known() || memory.known() {
		n.nodes[name] = load.Node{
			CPU: cpu.utilization(), Memory: memory.utilization(), HasCPU: cpu.known(), HasMemory: memory.known(),
		}
	}
	if len(n.nodes) > maxNodes {
		return fmt.Errorf("data.NodeMetricsMap: found more than %d nodes: must have at most %d", maxNodes, maxNodes)
	}
	return nil
}

// metricList collects the values of the metrics of a node.
type metricList struct {
	cpu, memory resourceValues
	rejected    int
}

type metric struct {
	Type     string   `json:"type"`
	Operator string   `json:"operator"`
	Value    *percent `json:"value"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *metricList) UnmarshalJSON(raw []byte) error {
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('[') {
		return fmt.Errorf("metrics: found %.20q: must be a list", raw)
	}
	for i := 0; dec.More(); i++ {
		if i == maxMetrics {
			return fmt.Errorf("metrics: found more than %d: must have at most %d", maxMetrics, maxMetrics)
		}
		var m metric
		if err := dec.Decode(&m); err != nil {
			return fmt.Errorf("metrics[%d]: %w", i, err)
		}
		switch m.Type {
		case typeCPU:
			l.add(&l.cpu, m)
		case typeMemory:
			l.add(&l.memory, m)
		default: // services send other types
			if m.Type == "" || strings.EqualFold(m.Type, typeCPU) || strings.EqualFold(m.Type, typeMemory) {
				l.rejected++
			}
		}
	}
	return nil
}

// maxFraction is the largest utilization that is valid: measurements exceed the capacity for a short time. A larger one is a sum over CPUs.
const maxFraction = 1.5

// add adds a metric to the values of its resource. A second one with the same operator is rejected.
func (l *metricList) add(to *resourceValues, m metric) {
	if m.Value == nil || !(*m.Value >= 0 && *m.Value <= 100*maxFraction) {
		l.rejected++
		return
	}
	fraction := min(float64(*m.Value)/100, 1)
	switch {
	case m.Operator == operatorAverage && !to.hasAverage:
		to.average, to.hasAverage = fraction, true
	case (m.Operator == operatorLatest || m.Operator == "") && !to.hasLatest:
		to.latest, to.hasLatest = fraction, true
	case m.Operator == operatorDeviation && !to.hasDeviation:
		to.deviation, to.hasDeviation = fraction, true
	case m.Operator == "Unknown": // of services
	default:
		l.rejected++
	}
}

// resourceValues are the values of one resource of a node, as fractions.
type resourceValues struct {
	average, latest, deviation          float64
	hasAverage, hasLatest, hasDeviation bool
}

func (r *resourceValues) known() bool { return r.hasAverage || r.hasLatest }

func (r *resourceValues) utilization() load.Utilization {
	if r.hasAverage {
		return load.Utilization{Mean: r.average, StdDev: r.deviation}
	}
	return load.Utilization{Mean: r.latest}
}

// percent is a value in percent. It is NaN if the message has anything but a number.
type percent float64

// UnmarshalJSON implements json.Unmarshaler. It does not fail.
func (p *percent) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, (*float64)(p)); err != nil {
		*p = percent(math.NaN())
	}
	return nil
}

// Decode reads a message. Invalid values are ignored and counted in the reading; values over 100 count
// as 100. Nodes without an average have the latest value, without a standard deviation. A message has at most
// MaxBytes, 100,000 nodes and 10,000 metrics per node.
func Decode(r io.Reader) (load.Reading, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return load.Reading{}, err
	}
	if len(raw) > MaxBytes {
		return load.Reading{}, fmt.Errorf("message is larger than %d MiB", MaxBytes>>20)
	}
	var m message
	if err := json.Unmarshal(quoteNonNumbers(raw), &m); err != nil {
		return load.Reading{}, fmt.Errorf("must be JSON in the format of a load watcher: %w", err)
	}
	at := m.Timestamp
	if at == 0 {
		at = m.Window.End
	}
	switch {
	case m.Kind != "" && at <= 0:
		return load.Reading{}, fmt.Errorf(
			"found kind %.40q: must be the message of a load watcher, with timestamp and data.NodeMetricsMap",
			m.Kind,
		)
	case at == 0 && m.Data.NodeMetricsMap.nodes == nil:
		return load.Reading{}, errors.New("timestamp, data.NodeMetricsMap: required: must be the message of a load watcher")
	case at <= 0 || at > math.MaxInt32*4:
		return load.Reading{}, fmt.Errorf("timestamp: invalid value %d: must be Unix seconds", at)
	case m.Data.NodeMetricsMap.nodes == nil:
		return load.Reading{}, errors.New("data.NodeMetricsMap: required")
	}
	return load.Reading{
		Source: m.Source, Time: time.Unix(at, 0), Window: m.Window.length(),
		Nodes: m.Data.NodeMetricsMap.nodes, Rejected: m.Data.NodeMetricsMap.rejected,
	}, nil
}

// nonNumber matches NaN and Infinity in their spellings.
var nonNumber = regexp.MustCompile(`^[+-]?(?:NaN|Inf(?:inity)?)`)

// quoteNonNumbers returns a message in which bare NaN and Infinity, which some services send and JSON does not allow, are
// strings of the same length: quotes replace their first and last letters.
func quoteNonNumbers(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("NaN")) && !bytes.Contains(raw, []byte("Inf")) {
		return raw
	}
	out, inString := bytes.Clone(raw), false
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == 'N' || c == 'I' || c == '+' || c == '-'):
			if n := len(nonNumber.Find(out[i:])); n > 0 {
				out[i], out[i+n-1] = '"', '"'
				i += n - 1
			}
		}
	}
	return out
}
