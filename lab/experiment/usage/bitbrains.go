package usage

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Columns of a file of Bitbrains. CPU is in MHz, memory in KB.
const (
	columnTime = iota
	columnCores
	columnCPUProvisioned
	columnCPU
	columnPercent
	columnMemoryProvisioned
	columnMemory
	columns
)

const (
	// minInterval is the smallest time in seconds between two rows: a row that follows earlier repeats a measurement.
	minInterval = 200
	// maxAmount is the largest number of a file except for the time: a thousand million MHz, or a pebibyte.
	maxAmount = 1 << 40
	// maxTime is the largest time in seconds: the year 2106.
	maxTime = 1 << 32
	// maxRows is the largest number of rows of a file, half a year.
	maxRows = 1 << 16
	// minValues is the number of values that a day must have: missing values repeat the value before.
	minValues = PerDay / 2
)

// readBitbrains reads the files rnd/2013-7/N.csv and rnd/2013-8/N.csv. A virtual machine is a workload with one machine.
// July is before August. Machines without a day in both months are left out.
func readBitbrains(folder fs.FS, keep func(string) bool) ([]Workload, error) {
	const july, august = "rnd/2013-7", "rnd/2013-8"
	files, err := names(folder, august)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	var workloads []Workload
	for _, file := range files {
		name, isTable := strings.CutSuffix(file, ".csv")
		if !isTable || !keep("vm-"+name) {
			continue
		}
		m := Machine{Name: "vm-" + name}
		if m.Days, err = m.readMonth(folder, path.Join(august, file)); err != nil {
			return nil, err
		}
		if m.Before, err = m.readMonth(folder, path.Join(july, file)); err != nil {
			return nil, err
		}
		if len(m.Days) > 0 && len(m.Before) > 0 {
			workloads = append(workloads, Workload{Name: m.Name, Machines: []Machine{m}})
		}
	}
	return workloads, nil
}

// readMonth returns the days of a file, and sets what is provisioned by the file.
func (m *Machine) readMonth(folder fs.FS, name string) ([]Day, error) {
	var days []Day
	values := 0 // of the last day
	last := -1.0
	finish := func() {
		if n := len(days); n > 0 && values < minValues {
			days = days[:n-1]
		}
		if n := len(days); n > 0 {
			days[n-1].fill()
		}
	}
	err := eachLine(folder, name, func(line int, text string) error {
		if line > maxRows {
			return fmt.Errorf("found more than %d lines: must be at most %d", maxRows, maxRows)
		}
		if line == 1 {
			if !strings.HasPrefix(text, "Timestamp") {
				return fmt.Errorf("found %.40q: must be the names of the columns, the first is Timestamp", text)
			}
			return nil
		}
		row, err := parseRow(text)
		if err != nil {
			return err
		}
		at := row[columnTime]
		if last >= 0 && at < last+minInterval {
			return nil
		}
		last = at
		m.Provisioned.CPU, m.Provisioned.Memory = row[columnCPUProvisioned], row[columnMemoryProvisioned]
		m.Provisioned.Cores = row[columnCores]
		if day := time.Unix(int64(at), 0).UTC().Format(time.DateOnly); len(days) == 0 || days[len(days)-1].Name != day {
			finish()
			days, values = append(days, newDay(day)), 0
		}
		slot := int64(at) % (24 * 3600) / Step
		d := &days[len(days)-1]
		d.CPU[slot], d.Memory[slot] = float32(row[columnCPU]), float32(row[columnMemory])
		values++
		return nil
	})
	finish()
	return days, err
}

// parseRow parses the columns that are used.
func parseRow(text string) (row [columns]float64, err error) {
	fields := strings.Split(text, ";")
	if len(fields) < columns {
		return row, fmt.Errorf("found %d columns: must be at least %d, separated by semicolons", len(fields), columns)
	}
	for i, column := range [columns]string{"time", "cores", "CPU provisioned", "CPU", "percent", "memory provisioned", "memory"} {
		highest := float64(maxAmount)
		if i == columnTime {
			highest = maxTime
		}
		if row[i], err = parse(column, strings.TrimSpace(fields[i]), highest); err != nil {
			return row, err
		}
	}
	return row, nil
}

// missing is the value of a step without a row.
const missing = -1

// newDay returns a day without values.
func newDay(name string) Day {
	d := Day{Name: name, CPU: make([]float32, PerDay), Memory: make([]float32, PerDay)}
	for i := range PerDay {
		d.CPU[i], d.Memory[i] = missing, missing
	}
	return d
}

// fill replaces missing values with the value before, and at the start with the first value. The day has values.
func (d *Day) fill() {
	for _, values := range [][]float32{d.CPU, d.Memory} {
		previous := values[slices.IndexFunc(values, func(v float32) bool { return v != missing })]
		for i, v := range values {
			if v == missing {
				values[i] = previous
			}
			previous = values[i]
		}
	}
}
