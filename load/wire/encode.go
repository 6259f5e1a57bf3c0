package wire

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// Encode writes a reading as one message, with the nodes sorted by name. It writes node by node and keeps
// none in memory.
func Encode(w io.Writer, reading load.Reading) error {
	e := encoder{rollup: appendString(nil, shortDuration(reading.Window))}
	out := bufio.NewWriterSize(w, min(1<<10*(len(reading.Nodes)+1), 64<<10))
	e.header(reading)
	for i, name := range slices.Sorted(maps.Keys(reading.Nodes)) {
		if i > 0 {
			e.text(",")
		}
		e.node(name, reading.Nodes[name])
		if _, err := out.Write(e.buffer); err != nil {
			return err
		}
		e.buffer = e.buffer[:0]
	}
	e.text("}}}\n")
	if _, err := out.Write(e.buffer); err != nil {
		return err
	}
	return out.Flush()
}

// encoder appends parts of a message to a buffer.
type encoder struct {
	buffer []byte
	// rollup is the length of the window, encoded.
	rollup []byte
}

func (e *encoder) text(text string) { e.buffer = append(e.buffer, text...) }

func (e *encoder) string(text string) { e.buffer = appendString(e.buffer, text) }

func (e *encoder) int(value int64) { e.buffer = strconv.AppendInt(e.buffer, value, 10) }

// header appends the message up to the first node.
func (e *encoder) header(reading load.Reading) {
	e.text(`{"timestamp":`)
	e.int(reading.Time.Unix())
	e.text(`,"window":{"duration":`)
	e.buffer = append(e.buffer, e.rollup...)
	e.text(`,"start":`)
	e.int(reading.Time.Add(-reading.Window).Unix())
	e.text(`,"end":`)
	e.int(reading.Time.Unix())
	e.text(`},"source":`)
	e.string(reading.Source)
	e.text(`,"data":{"NodeMetricsMap":{`)
}

// node appends the load of a node. Invalid values are omitted.
func (e *encoder) node(name string, node load.Node) {
	e.string(name)
	e.text(`:{"metrics":[`)
	first := true
	for _, resource := range []struct {
		name  string
		load  load.Utilization
		known bool
	}{{typeCPU, node.CPU, node.HasCPU}, {typeMemory, node.Memory, node.HasMemory}} {
		if !resource.known || !resource.load.Valid() {
			continue
		}
		if !first {
			e.text(",")
		}
		first = false
		e.metric(resource.name, operatorAverage, resource.load.Mean)
		e.text(",")
		e.metric(resource.name, operatorDeviation, resource.load.StdDev)
	}
	e.text(`],"tags":{},"metadata":{"dataCenter":""}}`)
}

// negligible is the smallest value in percent that is written; smaller ones are written as 0. The client of load-watcher
// rejects a whole message if one number has an exponent below -19, as the deviation of a constant load may have.
const negligible = 1e-12

// metric appends a metric with a fraction as its value.
func (e *encoder) metric(resource, operator string, fraction float64) {
	value := min(fraction, 1) * 100
	if value < negligible {
		value = 0
	}
	e.text(`{"name":"`)
	e.text(resource)
	e.text(`","type":"`)
	e.text(resource)
	e.text(`","operator":"`)
	e.text(operator)
	e.text(`","rollup":`)
	e.buffer = append(e.buffer, e.rollup...)
	e.text(`,"value":`)
	e.buffer = appendNumber(e.buffer, value)
	e.text("}")
}

// appendNumber appends a finite number as package json encodes it.
func appendNumber(to []byte, value float64) []byte {
	if value == 0 || math.Abs(value) >= 1e-6 && math.Abs(value) < 1e21 {
		return strconv.AppendFloat(to, value, 'f', -1, 64)
	}
	raw, _ := json.Marshal(value) // finite numbers have no error
	return append(to, raw...)
}

// appendString appends a string as package json encodes it.
func appendString(to []byte, text string) []byte {
	plain := func(c byte) bool {
		return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	for i := range len(text) {
		if !plain(text[i]) {
			raw, _ := json.Marshal(text) // strings have no error
			return append(to, raw...)
		}
	}
	to = append(to, '"')
	to = append(to, text...)
	return append(to, '"')
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
