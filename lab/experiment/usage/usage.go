// Package usage reads public series of the usage of real machines in their original formats.
//
//   - PlanetLab: the CPU of virtual machines on five days of 2011. The virtual machines of a slice run one service.
//   - Google: the CPU and memory of jobs of a Google cell on days of May 2011.
//   - Bitbrains: the CPU and memory of business virtual machines in July and August 2013.
//
// All values are one per five minutes. Errors name the file and the line, what was found and what is allowed.
package usage

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// Step is the time between two values in seconds, PerDay the number of values of a day.
const (
	Step   = 300
	PerDay = 24 * 3600 / Step
)

// Names of the data sets.
const (
	PlanetLab = "planetlab"
	Google    = "google"
	Bitbrains = "bitbrains"
)

// Sets are the names of all data sets.
var Sets = []string{Google, PlanetLab, Bitbrains}

// Set is a data set.
type Set struct {
	// Name is one of Sets.
	Name string
	// Workloads are ordered by name.
	Workloads []Workload
}

// Workload is a service, a job or a virtual machine that is a workload of its own.
type Workload struct {
	Name string
	// Machines are ordered by name. There is at least one.
	Machines []Machine
}

// Machine is a virtual machine, or a job as a whole.
type Machine struct {
	Name string
	// Days are the days with usage in the order of time, not necessarily consecutive. There is at least one.
	Days []Day
	// Before are the days of the month before, if they are known.
	Before []Day
	// Provisioned are the CPU and memory of the machine in the unit of its usage, and its number of cores, 0 if unknown.
	Provisioned struct{ CPU, Memory, Cores float64 }
}

// Day is the usage of a day. CPU and Memory have PerDay values of at least 0, in a unit that is the same for all days of a
// machine. Memory is nil if it is unknown.
type Day struct {
	// Name orders days by time. Days of the same name are the same day, except in the set Google, where it is the day of the job.
	Name        string
	CPU, Memory []float32
}

// Sources are the public repositories that have the files, in the folders that Open reads.
const Sources = "PlanetLab (folders DATE) from github.com/beloglazov/planetlab-workload-traces, Google (folder GCD_VMs) from " +
	"github.com/HiPro-IT/CPU-and-Memory-resource-usage-from-Google-Cluster-Data, Bitbrains (folder rnd) from " +
	"github.com/JessieRayeBauer/Time-Series-Forecasting-"

// Open reads the data set with a name from a folder with the files of all sets. It keeps the workloads whose names keep accepts.
func Open(folder fs.FS, name string, keep func(workload string) bool) (set *Set, err error) {
	set = &Set{Name: name}
	switch name {
	case PlanetLab:
		set.Workloads, err = readPlanetLab(folder, keep)
	case Google:
		set.Workloads, err = readGoogle(folder, keep)
	case Bitbrains:
		set.Workloads, err = readBitbrains(folder, keep)
	default:
		return nil, fmt.Errorf("invalid data set %q: must be one of %s", name, strings.Join(Sets, ", "))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(set.Workloads) == 0:
		return nil, fmt.Errorf("found no files of %s: the public files are %s", name, Sources)
	case err != nil:
		return nil, err
	}
	return set, nil
}

// Half returns 0 or 1, a fixed hash of a name.
func Half(name string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	sum := h.Sum64()
	return int((sum ^ sum>>32) & 1)
}

const (
	// maxFiles is the largest number of files of a folder.
	maxFiles = 10_000
	// maxBytes is the largest size of a file.
	maxBytes = 16 << 20
)

// names returns the names of the files of a folder.
func names(folder fs.FS, name string) ([]string, error) {
	entries, err := fs.ReadDir(folder, name)
	if err != nil {
		return nil, err
	}
	if len(entries) > maxFiles {
		return nil, fmt.Errorf("%s: found %d files: must be at most %d", name, len(entries), maxFiles)
	}
	var files []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && !strings.HasPrefix(entry.Name(), ".") {
			files = append(files, entry.Name())
		}
	}
	return files, nil
}

// eachLine calls read with each line of a file and its number, from 1 on, without the end of the line.
func eachLine(folder fs.FS, name string, read func(line int, text string) error) error {
	file, err := folder.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(content) > maxBytes {
		return fmt.Errorf("%s: found more than %d bytes: must be at most %d", name, maxBytes, maxBytes)
	}
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		if err := read(number, strings.TrimRight(line, "\r\n")); err != nil {
			return fmt.Errorf("%s: line %d: %w", name, number, err)
		}
	}
	return nil
}

// parse parses a number from 0 to highest.
func parse(column, text string, highest float64) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= 0 && value <= highest) {
		return 0, fmt.Errorf("%s: found %q: must be a number from 0 to %v", column, text, highest)
	}
	return value, nil
}
