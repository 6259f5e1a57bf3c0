// Command arrivals converts one of two traces of arrivals to a recording for plimsoll compare.
//
//	arrivals FOLDER OUT.ndjson.gz
//
// With the file services.csv.gz, FOLDER has the instances of Alibaba's cluster-trace-gpu-v2025 (services.go). Otherwise it has the virtual
// machines of the Azure public trace of 2017, as processed in huaweicloud/trace_generation_rnn. A machine is a pod, with the cores and the
// memory of its size. A tenant's batch arrives in one second, which is drawn within its 300 s with a fixed seed. Machines run for the
// middle of the bin of their run time, and machines that still ran when the trace ended run on. The first day fills the cluster and is not
// part of the recording: machines of it that still run have a node at the start.
package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

func main() {
	share := flag.Float64("share", 1, "share of the tenants' batches of the Azure trace, drawn with a fixed seed")
	turnover := flag.Float64("turnover", 0, "least number of instances of a service that are created, per instance that runs on average")
	flag.Parse()
	if err := run(flag.Arg(0), flag.Arg(1), *share, *turnover); err != nil {
		fmt.Fprintln(os.Stderr, "arrivals:", err)
		os.Exit(1)
	}
}

// step is the length of a line of the trace, and day the time that fills the cluster, in seconds.
const (
	step = 300
	day  = 24 * 3600
)

// epoch is the instant of second 0 of the trace: its days are counted from a Monday.
var epoch = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

func run(folder, out string, share, turnover float64) error {
	if folder == "" || out == "" {
		return errors.New("usage: arrivals FOLDER OUT.ndjson.gz")
	}
	read := func() (*recording.Recording, error) { return azure(folder, share) }
	if _, err := os.Stat(filepath.Join(folder, servicesFile)); err == nil {
		read = func() (*recording.Recording, error) { return services(folder, turnover) }
	}
	r, err := read()
	if err != nil {
		return err
	}
	r.About.Step = step
	r.About.Missing = []recording.Missing{{What: "usage and nodes", Why: "not in the trace"}}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(r.Write(file), file.Close())
}

// azure returns the recording of the virtual machines.
func azure(folder string, share float64) (*recording.Recording, error) {
	machines, first, last, err := read(folder, share)
	if err != nil {
		return nil, err
	}
	start := first + day
	r := &recording.Recording{About: recording.About{
		From: epoch.Add(time.Duration(start) * time.Second), To: epoch.Add(time.Duration(last+step) * time.Second),
		Sources: []string{"Azure public trace V1 (CC-BY 4.0), as processed in huaweicloud/trace_generation_rnn"},
	}}
	r.Nodes = append(r.Nodes, generate.NewNode(node, resources.Amounts{CPU: 16_000, Memory: 112 << 30}))
	for i := range machines {
		m := &machines[i]
		if m.end <= start {
			continue
		}
		pod := recording.Pod{
			Object: m.pod(i), Created: m.created - start, Scheduled: m.created - start, Started: m.created - start,
			Ended: m.end - start, Node: node,
		}
		if m.end == recording.Never {
			pod.Ended = recording.Never
		}
		r.Pods = append(r.Pods, pod)
	}
	return r, nil
}

// node is the node of all pods of a recording: the what-if schedules them again.
const node = "node-0"

// newPod returns a pod with an owner and requests.
func newPod(namespace, name string, owner metav1.OwnerReference, cores, gib float64) *v1.Pod {
	owner.UID, owner.Controller = "1", new(true)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
			v1.ResourceCPU:    *resource.NewMilliQuantity(int64(cores*1000), resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(int64(gib*(1<<30)), resource.BinarySI),
		}}}}},
	}
}

// machine is a virtual machine. Times are seconds of the trace.
type machine struct {
	created, end int64
	batch        int
	cores, gib   float64
}

// pod returns the pod of a machine.
func (m *machine) pod(number int) *v1.Pod {
	owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: fmt.Sprintf("batch-%d", m.batch)}
	return newPod("azure", fmt.Sprintf("machine-%d", number), owner, m.cores, m.gib)
}

// readArrivals reads the lines of arrivals, and the lines of the run times of the same machines.
func readArrivals(folder string) (created, ended []string, err error) {
	arrivals, err := readZipped(filepath.Join(folder, "v1.dev.txt.gz"))
	if err != nil {
		return nil, nil, err
	}
	times, err := readZipped(filepath.Join(folder, "v1.dev.c2100000.txt.gz"))
	if err != nil {
		return nil, nil, err
	}
	created, ended = strings.Split(arrivals, "\n"), strings.Split(times, "\n")
	if arrivals == "" || len(created) != len(ended) {
		return nil, nil, fmt.Errorf("%s: found %d lines of arrivals and %d of run times: must be equal and more than 0",
			folder, len(created), len(ended))
	}
	return created, ended, nil
}

// read reads the machines of the trace, and its first and last second.
func read(folder string, share float64) (machines []machine, first, last int64, err error) {
	sizes, err := readSizes(filepath.Join(folder, "flav_map.txt"))
	if err != nil {
		return nil, 0, 0, err
	}
	middles, err := readIntervals(filepath.Join(folder, "v1.interval_map.txt"))
	if err != nil {
		return nil, 0, 0, err
	}
	created, ended, err := readArrivals(folder)
	if err != nil {
		return nil, 0, 0, err
	}
	first = math.MaxInt64
	batch := 0
	for i, line := range created {
		second, letters, err := split(line)
		if err != nil {
			return nil, 0, 0, fmt.Errorf("arrivals, line %d: %w", i+1, err)
		}
		_, times, err := split(ended[i])
		if err != nil || len(times) != len(letters) {
			return nil, 0, 0, fmt.Errorf("run times, line %d: found %d, want %d as in the arrivals", i+1, len(times), len(letters))
		}
		first, last = min(first, second), max(last, second)
		offset, drawn := draw(batch, share)
		for j, letter := range letters {
			if letter == "|" {
				batch++
				offset, drawn = draw(batch, share)
				continue
			}
			size, ok := sizes[letter]
			if !ok {
				return nil, 0, 0, fmt.Errorf("arrivals, line %d: unknown size %q", i+1, letter)
			}
			duration, err := durationOf(times[j], middles)
			if err != nil {
				return nil, 0, 0, fmt.Errorf("run times, line %d: %w", i+1, err)
			}
			if !drawn {
				continue
			}
			m := machine{created: second + offset, end: recording.Never, batch: batch, cores: size[0], gib: size[1]}
			if duration >= 0 {
				m.end = m.created + duration
			}
			machines = append(machines, m)
		}
	}
	return machines, first, last, nil
}

// draw returns the second of a batch within its step, and whether it belongs to the share.
func draw(batch int, share float64) (offset int64, drawn bool) {
	hash := fnv.New64a()
	fmt.Fprint(hash, batch)
	random := rand.New(rand.NewPCG(hash.Sum64(), 1)) //nolint:gosec // a fixed seed, no secret
	return random.Int64N(step), random.Float64() < share
}

// durationOf returns the run time of an entry such as U15 or C46 in seconds: the middle of its bin, -1 if it still ran.
func durationOf(text string, middles []int64) (int64, error) {
	bin, err := strconv.Atoi(strings.TrimLeft(text, "UC"))
	switch {
	case err != nil || bin < 0 || bin >= len(middles) && text[0] == 'U':
		return 0, fmt.Errorf("found run time %q: must be U or C and a bin from 0 to %d", text, len(middles)-1)
	case strings.HasPrefix(text, "C"):
		return -1, nil
	}
	return middles[bin], nil
}

// split splits a line into its second and its entries.
func split(line string) (second int64, entries []string, err error) {
	head, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if second, err = strconv.ParseInt(head, 10, 64); err != nil {
		return 0, nil, err
	}
	return second, strings.FieldsFunc(rest, func(r rune) bool { return r == ',' }), nil
}

// readZipped returns the text of a compressed file.
func readZipped(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	raw, err := io.ReadAll(unzipped)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// readSizes returns the cores and GiB of each letter.
func readSizes(path string) (map[string][2]float64, error) {
	sizes := map[string][2]float64{}
	err := eachLine(path, func(line string) error {
		var size [2]float64
		var letter string
		if _, err := fmt.Sscanf(strings.Replace(line, ",", " ", 1), "%g %g %s", &size[0], &size[1], &letter); err != nil {
			return err
		}
		sizes[letter] = size
		return nil
	})
	return sizes, err
}

// readIntervals returns the run time in the middle of each bin. Lines have a multiple of a step, and its bin.
func readIntervals(path string) (middles []int64, err error) {
	first := int64(0)
	err = eachLine(path, func(line string) error {
		var second int64
		var bin int
		if _, err := fmt.Sscan(line, &second, &bin); err != nil {
			return err
		}
		switch bin {
		case len(middles):
			first, middles = second, append(middles, second)
		case len(middles) - 1:
			middles[bin] = (first + second) / 2
		default:
			return fmt.Errorf("found bin %d after bin %d: must be equal or the next", bin, len(middles)-1)
		}
		return nil
	})
	return middles, err
}

// eachLine calls f with each line of a file.
func eachLine(path string, f func(line string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	for n := 1; scanner.Scan(); n++ {
		if err := f(scanner.Text()); err != nil {
			return fmt.Errorf("%s, line %d: %w", path, n, err)
		}
	}
	return scanner.Err()
}
