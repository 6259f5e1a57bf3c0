package usage

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxPercent is the largest usage in a file of a day. A few jobs of Google use more than 100 %.
const maxPercent = 1000

// readDay reads a file with a line of one or more percentages for every five minutes of a day.
func readDay(folder fs.FS, name string, columns []string) ([][]float32, error) {
	values := make([][]float32, len(columns))
	lines := 0
	err := eachLine(folder, name, func(line int, text string) error {
		lines = line
		if line > PerDay {
			return fmt.Errorf("found more than %d lines: must be one for every %d s of a day", PerDay, Step)
		}
		fields := strings.Fields(text)
		if len(fields) != len(columns) {
			return fmt.Errorf("found %d numbers: must be %s", len(fields), strings.Join(columns, " and "))
		}
		for i, field := range fields {
			value, err := parse(columns[i], field, maxPercent)
			if err != nil {
				return err
			}
			values[i] = append(values[i], float32(value))
		}
		return nil
	})
	if err == nil && lines < PerDay {
		err = fmt.Errorf("%s: found %d lines: must be %d, one for every %d s of a day", name, lines, PerDay, Step)
	}
	return values, err
}

// date matches the name of a folder of PlanetLab.
var date = regexp.MustCompile(`^\d{8}$`)

// readPlanetLab reads the files DATE/HOST_SLICE. A slice is a workload, its virtual machines are the machines.
func readPlanetLab(folder fs.FS, keep func(string) bool) ([]Workload, error) {
	folders, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, err
	}
	c := collection{}
	for _, entry := range folders {
		if !date.MatchString(entry.Name()) {
			continue
		}
		files, err := names(folder, entry.Name())
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			slice := sliceOf(file)
			if !keep(slice) {
				continue
			}
			values, err := readDay(folder, path.Join(entry.Name(), file), []string{"CPU"})
			if err != nil {
				return nil, err
			}
			c.add(slice, file, Day{Name: entry.Name(), CPU: values[0]})
		}
	}
	return c.workloads(), nil
}

// sliceOf returns the slice of a virtual machine HOST_SLICE: root, or its last two parts, the site and the name. Hosts contain
// underscores as well.
func sliceOf(file string) string {
	parts := strings.Split(file, "_")
	if n := len(parts); n > 2 && parts[n-1] != "root" {
		return parts[n-2] + "_" + parts[n-1]
	}
	return parts[len(parts)-1]
}

// readGoogle reads the files GCD_VMs/vm_JOB_DAY. A job is a workload with one machine, whose days are the days of the job.
func readGoogle(folder fs.FS, keep func(string) bool) ([]Workload, error) {
	const parent = "GCD_VMs"
	files, err := names(folder, parent)
	if err != nil {
		return nil, err
	}
	c := collection{}
	for _, file := range files {
		job, day, ok := jobAndDay(file)
		if !ok {
			return nil, fmt.Errorf(
				"%s/%s: found %q: must be vm_JOB_DAY with a number of the job and of the day up to 999",
				parent,
				file,
				file,
			)
		}
		if !keep(job) {
			continue
		}
		values, err := readDay(folder, path.Join(parent, file), []string{"CPU", "memory"})
		if err != nil {
			return nil, err
		}
		c.add(job, job, Day{Name: fmt.Sprintf("%03d", day), CPU: values[0], Memory: values[1]})
	}
	return c.workloads(), nil
}

// jobAndDay parses vm_JOB_DAY.
func jobAndDay(file string) (job string, day uint64, ok bool) {
	parts := strings.Split(file, "_")
	if len(parts) != 3 || parts[0] != "vm" {
		return "", 0, false
	}
	_, err := strconv.ParseUint(parts[1], 10, 64)
	day, dayErr := strconv.ParseUint(parts[2], 10, 64)
	return parts[1], day, err == nil && dayErr == nil && day < 1000
}

// collection has the days of machines by workload and machine.
type collection map[string]map[string][]Day

func (c collection) add(workload, machine string, day Day) {
	if c[workload] == nil {
		c[workload] = map[string][]Day{}
	}
	c[workload][machine] = append(c[workload][machine], day)
}

// workloads returns the workloads in order.
func (c collection) workloads() []Workload {
	var all []Workload
	for name, machines := range c {
		w := Workload{Name: name}
		for machine, days := range machines {
			slices.SortFunc(days, func(a, b Day) int { return cmp.Compare(a.Name, b.Name) })
			w.Machines = append(w.Machines, Machine{Name: machine, Days: days})
		}
		slices.SortFunc(w.Machines, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b Workload) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
