// Package alibaba2018 reads traces in the format of Alibaba's cluster-trace-v2018: machines, containers
// of services, and batch tasks with, optionally, their instances.
//
// The published files are large (14 million tasks, more than a billion instances). Only a time window
// is read, and tasks and instances outside of it take no memory. Pods that start before the window
// arrive at its start. CPU is in hundredths of a core. Memory is in hundredths of that of the largest
// machine, whose size the trace does not have and which is an option.
package alibaba2018

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/trace"
	"github.com/plimsoll-k8s/plimsoll/internal/trace/table"
)

// DefaultMachineMemory is the default memory of the largest machine: 512 GiB, typical for machines of
// the same age with 96 cores.
const DefaultMachineMemory = 512 << 30

// File is a file and its name in errors.
type File struct {
	Name   string
	Source io.Reader
}

// Files are the files of a trace. Machines are required, and so are containers or tasks. Without
// instances, a task is read as the number of pods that it counts. With instances, these are the pods,
// with their own times and the requests of their task.
type Files struct {
	Machines                     File
	Containers, Tasks, Instances *File
}

// Options select what is read.
type Options struct {
	// From and To are the window in seconds: pods that end at From or earlier, or that arrive at To
	// or later, are skipped. A To of 0 is the end of the trace.
	From, To int64
	// MachineMemory is the memory of the largest machine in bytes. 0 is DefaultMachineMemory.
	MachineMemory int64
	// MaxPods limits the number of pods. 0 is trace.MaxPods, the largest value.
	MaxPods int
}

// reader is the state of a call of Read.
type reader struct {
	options Options
	cluster *trace.Cluster
	// tasks has the requests of the tasks.
	tasks map[string]trace.Amounts
}

// Read reads a trace.
func Read(files Files, options Options) (*trace.Cluster, error) {
	if options.To == 0 {
		options.To = math.MaxInt64
	}
	if options.MachineMemory == 0 {
		options.MachineMemory = DefaultMachineMemory
	}
	if options.MaxPods == 0 || options.MaxPods > trace.MaxPods {
		options.MaxPods = trace.MaxPods
	}
	validMemory := options.MachineMemory >= 1 && options.MachineMemory <= trace.MaxMemory
	if options.From < 0 || options.From >= options.To || !validMemory || options.MaxPods < 0 {
		return nil, fmt.Errorf("alibaba2018: invalid options %+v: must have 0 <= From < To, MachineMemory from 1 to %d, MaxPods at least 0",
			options, int64(trace.MaxMemory))
	}
	d := &reader{options: options, cluster: &trace.Cluster{}, tasks: map[string]trace.Amounts{}}
	steps := []struct {
		file *File
		read func(File) error
	}{
		{&files.Machines, d.readMachines},
		{files.Containers, d.readContainers},
		{files.Tasks, func(f File) error { return d.readTasks(f, files.Instances == nil) }},
		{files.Instances, d.readInstances},
	}
	for _, step := range steps {
		if step.file == nil {
			continue
		}
		if err := step.read(*step.file); err != nil {
			return nil, err
		}
	}
	c := d.cluster
	for i := range c.Pods {
		p := &c.Pods[i]
		p.Arrival, p.Start = max(p.Arrival, options.From), max(p.Start, options.From)
	}
	c.Sort()
	c.Rebase()
	c.Assumed = append(
		c.Assumed, fmt.Sprintf("the largest machine has %d GiB of memory, which is not in the trace", options.MachineMemory>>30),
	)
	return c, nil
}

// cpu returns a column in hundredths of a core as millicores.
func cpu(r *table.Reader, column int) int64 {
	return int64(math.Round(r.Number(column, 0, trace.MaxCPU/10) * 10))
}

// memory returns a column in hundredths of the largest machine's memory as bytes.
func (d *reader) memory(r *table.Reader, column int) int64 {
	return int64(math.Round(r.Number(column, 0, 100) / 100 * float64(d.options.MachineMemory)))
}

// readMachines reads the first row of each machine. Further rows are events in the life of the machine.
func (d *reader) readMachines(file File) error {
	r, seen := table.New(file.Name, file.Source, machineColumns), map[string]bool{}
	for r.Next() {
		name := r.Name(machineID)
		r.Second(machineTime, 0, "")
		if seen[name] {
			continue
		}
		seen[name] = true
		node := trace.Node{
			Name:     name,
			Capacity: trace.Amounts{CPU: r.Int(machineCPU, 1, trace.MaxCPU/1000) * 1000, Memory: d.memory(r, machineMemory)},
		}
		if r.Text(machineDomain1) != "" {
			node.Zone = r.Name(machineDomain1)
		}
		if node.Capacity.Memory == 0 {
			r.Fail(machineMemory, "a number above 0 and up to 100")
		}
		if len(d.cluster.Nodes) == trace.MaxNodes {
			return table.TooMany(r, "machines", trace.MaxNodes)
		}
		d.cluster.Nodes = append(d.cluster.Nodes, node)
	}
	if r.Err() == nil && len(d.cluster.Nodes) == 0 {
		return &table.Error{File: file.Name, Found: "no machines", Allowed: "at least one"}
	}
	return r.Err()
}

// Why things are left out.
const (
	skipWindow = "outside the window"
	skipPlan   = "without a planned request"
	skipTask   = "an instance of a task that is not in the file"
	skipState  = "a row of a container that had stopped"
)

// add adds a pod.
func (d *reader) add(r *table.Reader, file string, p trace.Pod) error {
	if err := d.checkPods(r, file, 1); err != nil {
		return err
	}
	d.cluster.Pods = append(d.cluster.Pods, p)
	return nil
}

// checkPods returns an error if a number of further pods exceeds the limit.
func (d *reader) checkPods(r *table.Reader, file string, count int64) error {
	if count > int64(d.options.MaxPods-len(d.cluster.Pods)) {
		return &table.Error{
			File: file, Line: r.Line(), Found: fmt.Sprintf("%d pods after %d", count, len(d.cluster.Pods)),
			Allowed: fmt.Sprintf("at most %d in total: select a smaller window", d.options.MaxPods),
		}
	}
	return nil
}

// outside reports whether an interval is outside of the window.
func (d *reader) outside(start, end int64) bool {
	return end <= d.options.From && end > start || start >= d.options.To
}

// readContainers reads containers. The first row of a container has its arrival and its resources, a
// later row with the status stopped has its end.
func (d *reader) readContainers(file File) error {
	r, pods := table.New(file.Name, file.Source, containerColumns), map[string]int{}
	first := len(d.cluster.Pods)
	for r.Next() {
		name, second := r.Name(containerID), r.Second(containerTime, 0, "")
		status := r.Text(containerStatus)
		switch status {
		case "started", "allocated", "unknown", "stopped":
		default:
			r.Fail(containerStatus, "started, allocated, unknown or stopped")
		}
		if i, ok := pods[name]; ok {
			d.updateContainer(r, i, second, status)
			continue
		}
		p := trace.Pod{
			Name: name, Arrival: second, Start: second, End: trace.Never, Class: trace.LatencySensitive, HasLimit: true,
			Group: r.Name(containerApp), Node: r.Name(containerMachine),
			Request: trace.Amounts{CPU: cpu(r, containerCPURequest), Memory: d.memory(r, containerMemory)},
			Limit:   trace.Amounts{CPU: cpu(r, containerCPULimit), Memory: d.memory(r, containerMemory)},
		}
		if p.Limit.CPU != 0 && p.Limit.CPU < p.Request.CPU {
			r.Fail(containerCPULimit, "at least cpu_request, or 0")
		}
		if status == "stopped" {
			p.End = second
		}
		pods[name] = len(d.cluster.Pods)
		if err := d.add(r, file.Name, p); err != nil && r.Err() == nil {
			return err
		}
	}
	d.prune(first)
	return r.Err()
}

// updateContainer processes a later row of a container.
func (d *reader) updateContainer(r *table.Reader, i int, second int64, status string) {
	p := &d.cluster.Pods[i]
	switch {
	case p.End != trace.Never:
		d.cluster.Skip(skipState)
	case second < p.Arrival && second != 0: // 0 is a time outside of the trace.
		r.Fail(containerTime, fmt.Sprintf("at least %d, the arrival of the container, or 0", p.Arrival))
	case status == "stopped" && second != 0:
		p.End = second
	}
}

// prune removes the pods from an index on that are outside of the window.
func (d *reader) prune(first int) {
	kept := d.cluster.Pods[:first]
	for _, p := range d.cluster.Pods[first:] {
		if d.outside(p.Arrival, p.End) {
			d.cluster.Skip(skipWindow)
			continue
		}
		kept = append(kept, p)
	}
	d.cluster.Pods = kept
}

// readTasks reads the requests of tasks and, if asPods is set, a pod for each instance that a task
// counts.
func (d *reader) readTasks(file File, asPods bool) error {
	r := table.New(file.Name, file.Source, taskColumns)
	for r.Next() {
		name := key(r.Name(taskJob), r.Name(taskName))
		start, end := times(r, taskStart, taskEnd)
		count := r.Int(taskInstances, 0, 1e9)
		planned := r.Text(taskCPU) != "" && r.Text(taskMemory) != ""
		switch {
		case d.outside(start, end):
			d.cluster.Skip(skipWindow)
			continue
		case !planned:
			d.cluster.Skip(skipPlan)
			continue
		}
		request := trace.Amounts{CPU: cpu(r, taskCPU), Memory: d.memory(r, taskMemory)}
		if r.Err() != nil {
			break
		}
		if _, ok := d.tasks[name]; ok {
			r.Fail(taskName, "unique within the job")
			break
		}
		if len(d.tasks) == trace.MaxPods {
			return table.TooMany(r, "tasks in the window", trace.MaxPods)
		}
		d.tasks[name] = request
		if asPods {
			if err := d.checkPods(r, file.Name, count); err != nil {
				return err
			}
		}
		for i := int64(0); asPods && i < count; i++ {
			p := trace.Pod{
				Name: fmt.Sprintf("%s/%d", name, i), Group: name, Batch: true, Request: request,
				Class: trace.BestEffort, Arrival: start, Start: start, End: end,
			}
			if err := d.add(r, file.Name, p); err != nil {
				return err
			}
		}
	}
	return r.Err()
}

// readInstances reads the instances of tasks as pods.
func (d *reader) readInstances(file File) error {
	r, names := table.New(file.Name, file.Source, instanceColumns), map[string]bool{}
	for r.Next() {
		task := key(r.Name(instanceJob), r.Name(instanceTask))
		start, end := times(r, instanceStart, instanceEnd)
		if d.outside(start, end) {
			d.cluster.Skip(skipWindow)
			continue
		}
		request, ok := d.tasks[task]
		if !ok {
			d.cluster.Skip(skipTask)
			continue
		}
		// A retried instance has a row for each attempt.
		name := fmt.Sprintf("%s/%s/%d", task, r.Name(instanceName), r.Int(instanceSeq, 0, math.MaxInt32))
		if names[name] {
			r.Fail(instanceName, "unique for each attempt of an instance of a task")
		}
		names[name] = true
		p := trace.Pod{
			Name: name, Group: strings.Clone(task), Batch: true, Request: request, Class: trace.BestEffort,
			Arrival: start, Start: start, End: end,
		}
		if r.Text(instanceMachine) != "" {
			p.Node = r.Name(instanceMachine)
		}
		if err := d.add(r, file.Name, p); err != nil && r.Err() == nil {
			return err
		}
	}
	return r.Err()
}

// times returns the start and the end of a task or an instance. An end that is 0 or empty is after the
// end of the trace.
func times(r *table.Reader, startColumn, endColumn int) (start, end int64) {
	start = r.Second(startColumn, 0, "")
	if text := r.Text(endColumn); text == "" || text == "0" {
		return start, trace.Never
	}
	return start, r.Second(endColumn, start, "the start_time, or 0")
}

// key returns the key of a task. Its name is unique within its job.
func key(job, task string) string { return job + "/" + task }
