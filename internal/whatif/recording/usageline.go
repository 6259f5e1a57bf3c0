package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// usageLine is usage of a pod: values at consecutive steps from a time on, in whole millicores and MiB. Later values of a step replace
// earlier ones. It belongs to the last created pod with the name before the line or, if Created is set, to the pod that was created then.
type usageLine struct {
	Type      string     `json:"type"`
	Time      time.Time  `json:"time"`
	Namespace string     `json:"namespace"`
	Pod       string     `json:"pod"`
	Created   *time.Time `json:"created"`
	CPU       numbers    `json:"cpuMillicores"`
	Memory    numbers    `json:"memoryMiB"`
}

// numbers are whole units of usage, noValue in place of null, which is a gap.
type numbers []int32

const noValue = -1

// UnmarshalJSON reads an array of any spelling.
func (n *numbers) UnmarshalJSON(raw []byte) error {
	var values []*int32
	if err := json.Unmarshal(raw, &values); err != nil {
		return err
	}
	*n = (*n)[:0]
	for _, value := range values {
		switch {
		case value == nil:
			*n = append(*n, noValue)
		case *value < 0:
			return fmt.Errorf("invalid value %d: must not be negative", *value)
		default:
			*n = append(*n, *value)
		}
	}
	return nil
}

// appendTo appends the array.
func (n numbers) appendTo(out []byte) []byte {
	out = append(out, '[')
	for i, number := range n {
		if i > 0 {
			out = append(out, ',')
		}
		if number == noValue {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendInt(out, int64(number), 10)
		}
	}
	return append(out, ']')
}

// unit is a unit of usage in files, with the codes of small numbers.
type unit struct {
	size  float64
	codes []uint16
}

// millicores and mebibytes are the units of CPU and memory.
var (
	millicores = sync.OnceValue(func() *unit { return newUnit(1) })
	mebibytes  = sync.OnceValue(func() *unit { return newUnit(1 << 20) })
)

func newUnit(size float64) *unit {
	u := &unit{size: size, codes: make([]uint16, 1<<16)}
	for i := range u.codes {
		u.codes[i] = encode(float64(i) * size)
	}
	return u
}

// number returns the number of units of a value, noValue for NaN.
func (u *unit) number(value float64) int32 {
	if math.IsNaN(value) {
		return noValue
	}
	return int32(max(0, min(math.Round(value/u.size), math.MaxInt32)))
}

// code returns the code of a number of units.
func (u *unit) code(number int32) uint16 {
	switch {
	case number == noValue:
		return gapCode
	case int(number) < len(u.codes):
		return u.codes[number]
	}
	return encode(float64(number) * u.size)
}

// appendNumbers appends the numbers of a series from a step until before another.
func (u *unit) appendNumbers(out numbers, s *Series, first, end int) numbers {
	for step := first; step < end; step++ {
		value, _ := s.At(step)
		out = append(out, u.number(value))
	}
	return out
}

// set sets numbers from a step on. Values at gaps remain.
func (u *unit) set(s *Series, first int, n numbers) {
	codes := make([]uint16, len(n))
	for i, number := range n {
		codes[i] = u.code(number)
		if at := first + i - s.First; codes[i] == gapCode && at >= 0 && at < len(s.codes) {
			codes[i] = s.codes[at]
		}
	}
	s.put(first, codes)
}

// The parts of a line as it is written.
const (
	partStart     = `{"type":"` + lineUsage + `","time":"`
	partNamespace = `","namespace":`
	partPod       = `,"pod":`
	partCreated   = `,"created":"`
	partCPU       = `,"cpuMillicores":`
	partMemory    = `,"memoryMiB":`
)

// appendTo appends the line.
func (l *usageLine) appendTo(out []byte) []byte {
	out = append(l.Time.AppendFormat(append(out, partStart...), time.RFC3339), partNamespace...)
	out = append(appendText(out, l.Namespace), partPod...)
	out = appendText(out, l.Pod)
	if l.Created != nil {
		out = append(l.Created.AppendFormat(append(out, partCreated...), time.RFC3339), '"')
	}
	out = l.CPU.appendTo(append(out, partCPU...))
	return append(l.Memory.appendTo(append(out, partMemory...)), '}')
}

// appendText appends a JSON string.
func appendText(out []byte, text string) []byte {
	raw, _ := json.Marshal(text) // strings have no error
	return append(out, raw...)
}

// parse parses a line as it is written, and reports whether it is such a line. Others are read with encoding/json, which is slower.
func (l *usageLine) parse(raw []byte) bool {
	s := scanner{rest: raw}
	s.skip(partStart)
	l.Type, l.Time, l.Created = lineUsage, s.time(), nil
	s.skip(partNamespace[1:] + `"`)
	l.Namespace = string(s.text())
	s.skip(partPod + `"`)
	l.Pod = string(s.text())
	if bytes.HasPrefix(s.rest, []byte(partCreated)) {
		s.skip(partCreated)
		l.Created = new(s.time())
	}
	s.skip(partCPU)
	l.CPU = s.numbers(l.CPU[:0])
	s.skip(partMemory)
	l.Memory = s.numbers(l.Memory[:0])
	s.skip("}")
	return !s.failed && len(s.rest) == 0
}

// scanner parses a line without escapes and spaces. After a failure, its results are not valid.
type scanner struct {
	rest   []byte
	failed bool
}

// skip skips a text.
func (s *scanner) skip(text string) {
	if len(s.rest) < len(text) || string(s.rest[:len(text)]) != text {
		s.failed = true
		return
	}
	s.rest = s.rest[len(text):]
}

// text returns the rest of a string of ASCII after its opening quote.
func (s *scanner) text() []byte {
	for i, c := range s.rest {
		if c == '"' {
			text := s.rest[:i]
			s.rest = s.rest[i+1:]
			return text
		}
		if c == '\\' || c < ' ' || c > '~' {
			break
		}
	}
	s.failed = true
	return nil
}

// time returns a time after its opening quote.
func (s *scanner) time() (at time.Time) {
	s.failed = at.UnmarshalText(s.text()) != nil || s.failed
	return at
}

// numbers appends the numbers of an array.
func (s *scanner) numbers(out numbers) numbers {
	s.skip("[")
	const most = len("2147483647")
	for rest := s.rest; !s.failed && len(rest) > 0; {
		n, number := 0, int64(0)
		if rest[0] == 'n' {
			n, number = len("null"), noValue
			s.failed = !bytes.HasPrefix(rest, []byte("null"))
		} else {
			for ; n < len(rest) && n <= most && rest[n]-'0' < 10; n++ {
				number = 10*number + int64(rest[n]-'0')
			}
			s.failed = n == 0 || n > 1 && rest[0] == '0' || number > math.MaxInt32
		}
		if s.failed || n >= len(rest) {
			break
		}
		out = append(out, int32(number))
		end := rest[n]
		rest = rest[n+1:]
		if end == ']' {
			s.rest = rest
			return out
		}
		s.failed = end != ','
	}
	s.failed = true
	return out
}

// readUsage reads a line of usage.
func (d *decoder) readUsage(raw []byte) error {
	l := &d.usage
	if !l.parse(raw) {
		*l = usageLine{CPU: l.CPU[:0], Memory: l.Memory[:0]}
		if err := json.Unmarshal(raw, l); err != nil {
			return fmt.Errorf("usage: %w", err)
		}
	}
	if err := d.setUsage(l); err != nil {
		return fmt.Errorf("usage of pod %s/%s: %w", l.Namespace, l.Pod, err)
	}
	return nil
}

// setUsage sets the usage of a pod.
func (d *decoder) setUsage(l *usageLine) error {
	second, err := d.second(l.Time)
	switch {
	case err != nil:
		return fmt.Errorf("time: %w", err)
	case len(l.CPU) != len(l.Memory):
		return fmt.Errorf("found %d values of cpuMillicores and %d of memoryMiB: must be the same number", len(l.CPU), len(l.Memory))
	case d.header.isSnapshot():
		return d.measure(l)
	case second < 0:
		return errors.New("time: must not be before the start of the recording")
	}
	p, err := d.findPod(l.Namespace, l.Pod, l.Created)
	if p == nil {
		d.orphans++
		return err
	}
	first := int(second / int64(d.header.Step))
	if first+len(l.CPU) > MaxSteps {
		return fmt.Errorf("%d values from step %d on: must be before step %d", len(l.CPU), first, MaxSteps)
	}
	if p.CPU.Len() > 0 && first < p.CPU.First {
		return fmt.Errorf("found step %d after step %d: must be in the order of time", first, p.CPU.First)
	}
	most := min(d.limits.values, d.freeValues+valuesPerByte*d.packed)
	if d.values += 2 * int64(p.CPU.growth(first, len(l.CPU))); d.values > most {
		return fmt.Errorf("found more than %d values, gaps included, in a file of %d bytes", most, d.packed)
	}
	millicores().set(&p.CPU, first, l.CPU)
	mebibytes().set(&p.Memory, first, l.Memory)
	return nil
}

// measure adds the usage of a pod to a snapshot.
func (d *decoder) measure(l *usageLine) error {
	if len(l.CPU) == 0 || l.CPU[0] == noValue || l.Memory[0] == noValue {
		return nil
	}
	if d.measured == nil {
		d.measured = &load.PodReading{Time: l.Time.UTC().Truncate(time.Second)}
	}
	if len(d.measured.Pods) == load.MaxPods {
		return fmt.Errorf("found more than %d pods", load.MaxPods)
	}
	d.measured.Pods = append(d.measured.Pods, load.PodUsage{
		Namespace: l.Namespace, Name: l.Pod, CPU: float64(l.CPU[0]), Memory: float64(l.Memory[0]) * (1 << 20),
	})
	return nil
}
