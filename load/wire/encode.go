package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// Encode writes a reading as one message, with the nodes sorted by name. It writes node by node and keeps
// none in memory.
func Encode(w io.Writer, reading load.Reading) error {
	end, rollup := reading.Time.Unix(), shortDuration(reading.Window)
	header, err := json.Marshal(message{
		Timestamp: end, Source: reading.Source,
		Window: window{Duration: rollup, Start: reading.Time.Add(-reading.Window).Unix(), End: end},
	})
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, min(1<<10*(len(reading.Nodes)+1), 64<<10))
	fmt.Fprintf(out, `%s,"data":{"NodeMetricsMap":{`, bytes.TrimSuffix(header, []byte("}")))
	for i, name := range slices.Sorted(maps.Keys(reading.Nodes)) {
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		key, _ := json.Marshal(name) // strings and finite numbers have no error
		node, _ := json.Marshal(encodedNode{Metrics: metricsOf(reading.Nodes[name], rollup)})
		fmt.Fprintf(out, "%s:%s", key, node)
	}
	fmt.Fprint(out, "}}}\n")
	return out.Flush() // with the first error of the writer
}

// encodedNode is a node in a message.
type encodedNode struct {
	Metrics  []encodedMetric `json:"metrics"`
	Tags     struct{}        `json:"tags"`
	Metadata struct {
		DataCenter string `json:"dataCenter"`
	} `json:"metadata"`
}

// encodedMetric is a metric of a node. Value is in percent.
type encodedMetric struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Operator string  `json:"operator"`
	Rollup   string  `json:"rollup"`
	Value    float64 `json:"value"`
}

// metricsOf returns the metrics of a node. Invalid values are omitted.
func metricsOf(node load.Node, rollup string) []encodedMetric {
	metrics := []encodedMetric{}
	add := func(resource string, u load.Utilization, known bool) {
		if known && u.Valid() {
			metrics = append(metrics, encodedMetric{resource, resource, operatorAverage, rollup, percentOf(u.Mean)},
				encodedMetric{resource, resource, operatorDeviation, rollup, percentOf(u.StdDev)})
		}
	}
	add(typeCPU, node.CPU, node.HasCPU)
	add(typeMemory, node.Memory, node.HasMemory)
	return metrics
}

// negligible is the smallest value in percent that is written; smaller ones are written as 0. The client of load-watcher
// rejects a whole message if one number has an exponent below -19, as the deviation of a constant load may have.
const negligible = 1e-12

// percentOf returns a fraction in percent, at most 100.
func percentOf(fraction float64) float64 {
	if value := min(fraction, 1) * 100; value >= negligible {
		return value
	}
	return 0
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
