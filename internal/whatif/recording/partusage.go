package recording

// recordedUsage is the usage of a pod in a recording.
type recordedUsage struct {
	// start is the second of the recording at which the pod was placed.
	start, step int64
	cpu, memory lastValue
}

// At implements Usage. Before the first sample it returns the first sample, in gaps and after the last sample the previous sample.
func (u *recordedUsage) At(age int64) (cpu, memory float64) {
	second := u.start + age
	step := int(second / u.step)
	if second < 0 {
		step = 0
	}
	return u.cpu.at(step), u.memory.at(step)
}

// lastValue is a series that remembers its last value, so that long gaps are not searched again.
type lastValue struct {
	*Series
	step  int
	value float64
	known bool
}

// at returns the value at a step; in a gap the last value before it, or else the first value.
func (l *lastValue) at(step int) float64 {
	step = min(max(step, l.First), l.End()-1)
	for i := step; i >= l.First; i-- {
		if l.known && i == l.step {
			break
		}
		if value, ok := l.At(i); ok {
			l.value, l.known = value, true
			break
		}
	}
	l.step = step
	return l.value
}
