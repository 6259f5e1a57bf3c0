// Package alibaba2018 reads traces in the layout of Alibaba's cluster-trace-v2018:
// machines, the containers of services, and batch tasks with, where they are
// given, their instances.
//
// The published files are large (fourteen million tasks, over a thousand million
// instances), so that a window of time is read; tasks and instances outside
// of it take no memory. What was there before the window is there when it opens. CPU is in hundredths of a core. Memory is in hundredths of the largest
// machine's, whose size the trace does not say: it has to be supposed.
package alibaba2018

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/trace"
	"github.com/plimsoll-k8s/plimsoll/internal/trace/table"
)

// DefaultMachineMemory is what the largest machine is supposed to have: 512 GiB,
// about what others of that time with 96 cores had.
const DefaultMachineMemory = 512 << 30

// File is a file and what to call it in errors.
type File struct {
	Name   string
	Source io.Reader
}

// Files are those of a trace. Machines are needed, and containers or tasks.
// Instances, if given, are the pods in place of one for each that a task counts:
// with times of their own and the requests of their task.
type Files struct {
	Machines                     File
	Containers, Tasks, Instances *File
}

// Options say what to read.
type Options struct {
	// From and To are the window, in seconds: what ends by From or comes at To or
	// later is left out. A To of 0 is the end.
	From, To int64
	// MachineMemory is what the largest machine has, in bytes; 0 is
	// DefaultMachineMemory.
	MachineMemory int64
	// MaxPods bounds how many pods are read, at most trace.MaxPods; 0 is that.
	MaxPods int
}

// reading is the state of one Read.
type reading struct {
	Options
	cluster *trace.Cluster
	// tasks are the requests of the tasks, for their instances.
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
	if options.From < 0 || options.From >= options.To || options.MachineMemory < 1 || options.MachineMemory > trace.MaxMemory || options.MaxPods < 0 {
		return nil, fmt.Errorf("alibaba2018: %+v: allowed: 0 <= From < To, MachineMemory from 1 to %d, MaxPods at least 0", options, int64(trace.MaxMemory))
	}
	d := &reading{Options: options, cluster: &trace.Cluster{}, tasks: map[string]trace.Amounts{}}
	steps := []struct {
		file *File
		read func(File) error
	}{{&files.Machines, d.machines}, {files.Containers, d.containers}, {files.Tasks, func(f File) error { return d.readTasks(f, files.Instances == nil) }}, {files.Instances, d.instances}}
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
		p.Arrival, p.Start = max(p.Arrival, d.From), max(p.Start, d.From)
	}
	c.Sort()
	c.Rebase()
	c.Assumed = append(c.Assumed, fmt.Sprintf("the largest machine has %d GiB of memory, which the trace does not say", d.MachineMemory>>30))
	return c, nil
}

// cpu turns hundredths of a core into millicores.
func cpu(r *table.Reader, column int) int64 {
	return int64(math.Round(r.Number(column, 0, trace.MaxCPU/10) * 10))
}

// memory turns hundredths of the largest machine into bytes.
func (d *reading) memory(r *table.Reader, column int) int64 {
	return int64(math.Round(r.Number(column, 0, 100) / 100 * float64(d.MachineMemory)))
}

// machines reads each machine once: what its first row says. The others of it are
// events of its life.
func (d *reading) machines(file File) error {
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
			Capacity: trace.Amounts{CPU: r.Whole(machineCPU, 1, trace.MaxCPU/1000) * 1000, Memory: d.memory(r, machineMemory)},
		}
		if r.Text(machineDomain1) != "" {
			node.Zone = r.Name(machineDomain1)
		}
		if node.Capacity.Memory == 0 {
			r.Fail(machineMemory, "a number above 0 and up to 100")
		}
		if len(d.cluster.Nodes) == trace.MaxNodes {
			return &table.Error{File: file.Name, Line: r.Line(), Found: "one more machine", Allowed: fmt.Sprintf("at most %d", trace.MaxNodes)}
		}
		d.cluster.Nodes = append(d.cluster.Nodes, node)
	}
	if r.Err() == nil && len(d.cluster.Nodes) == 0 {
		return &table.Error{File: file.Name, Found: "no machine", Allowed: "at least one"}
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

// add takes a pod in.
func (d *reading) add(r *table.Reader, file string, p trace.Pod) error {
	if err := d.room(r, file, 1); err != nil {
		return err
	}
	d.cluster.Pods = append(d.cluster.Pods, p)
	return nil
}

// room is an error if there is none for so many pods more.
func (d *reading) room(r *table.Reader, file string, count int64) error {
	if count > int64(d.MaxPods-len(d.cluster.Pods)) {
		return &table.Error{
			File: file, Line: r.Line(), Found: fmt.Sprintf("%d pods after %d", count, len(d.cluster.Pods)),
			Allowed: fmt.Sprintf("at most %d in all: choose a smaller window", d.MaxPods),
		}
	}
	return nil
}

// outside reports whether something lies outside of the window.
func (d *reading) outside(start, end int64) bool {
	return end <= d.From && end > start || start >= d.To
}

// containers reads each container once. Its first row says when it comes and what
// it requests; a later one with the status stopped says when it goes.
func (d *reading) containers(file File) error {
	r, at := table.New(file.Name, file.Source, containerColumns), map[string]int{}
	first := len(d.cluster.Pods)
	for r.Next() {
		name, second := r.Name(containerID), r.Second(containerTime, 0, "")
		status := r.Text(containerStatus)
		switch status {
		case "started", "allocated", "unknown", "stopped":
		default:
			r.Fail(containerStatus, "started, allocated, unknown or stopped")
		}
		if i, ok := at[name]; ok {
			d.follow(r, i, second, status)
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
		at[name] = len(d.cluster.Pods)
		if err := d.add(r, file.Name, p); err != nil && r.Err() == nil {
			return err
		}
	}
	d.prune(first)
	return r.Err()
}

// follow takes in a later row of a container.
func (d *reading) follow(r *table.Reader, i int, second int64, status string) {
	p := &d.cluster.Pods[i]
	switch {
	case p.End != trace.Never:
		d.cluster.Skip(skipState)
	case second < p.Arrival && second != 0: // 0: some time outside of the trace
		r.Fail(containerTime, fmt.Sprintf("at least %d, when the container came, or 0", p.Arrival))
	case status == "stopped" && second != 0:
		p.End = second
	}
}

// prune drops what turned out to lie outside of the window.
func (d *reading) prune(first int) {
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

// readTasks reads tasks: as pods, one for each instance that they count, or only
// for what their instances request.
func (d *reading) readTasks(file File, asPods bool) error {
	r := table.New(file.Name, file.Source, taskColumns)
	for r.Next() {
		name := key(r.Name(taskJob), r.Name(taskName))
		start, end := times(r, taskStart, taskEnd)
		count := r.Whole(taskInstances, 0, 1e9)
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
			r.Fail(taskName, "each task of a job once")
			break
		}
		if len(d.tasks) == trace.MaxPods {
			return &table.Error{File: file.Name, Line: r.Line(), Found: "one more task", Allowed: fmt.Sprintf("at most %d: a smaller window", trace.MaxPods)}
		}
		d.tasks[name] = request
		if asPods {
			if err := d.room(r, file.Name, count); err != nil {
				return err
			}
		}
		for i := int64(0); asPods && i < count; i++ {
			p := trace.Pod{
				Name: fmt.Sprintf("%s/%d", name, i), Group: name, Request: request,
				Class: trace.BestEffort, Arrival: start, Start: start, End: end,
			}
			if err := d.add(r, file.Name, p); err != nil {
				return err
			}
		}
	}
	return r.Err()
}

// instances reads what the tasks were made of.
func (d *reading) instances(file File) error {
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
		// An instance that was tried again has a row for each try.
		name := fmt.Sprintf("%s/%s/%d", task, r.Name(instanceName), r.Whole(instanceSeq, 0, math.MaxInt32))
		if names[name] {
			r.Fail(instanceName, "each try of an instance of a task once")
		}
		names[name] = true
		p := trace.Pod{Name: name, Group: strings.Clone(task), Request: request, Class: trace.BestEffort, Arrival: start, Start: start, End: end}
		if r.Text(instanceMachine) != "" {
			p.Node = r.Name(instanceMachine)
		}
		if err := d.add(r, file.Name, p); err != nil && r.Err() == nil {
			return err
		}
	}
	return r.Err()
}

// times returns when something starts and ends. An end of 0 or nothing is after
// the time of the trace.
func times(r *table.Reader, startColumn, endColumn int) (start, end int64) {
	start = r.Second(startColumn, 0, "")
	if text := r.Text(endColumn); text == "" || text == "0" {
		return start, trace.Never
	}
	return start, r.Second(endColumn, start, "the start_time, or 0")
}

// key names a task: its name is unique within its job.
func key(job, task string) string { return job + "/" + task }
