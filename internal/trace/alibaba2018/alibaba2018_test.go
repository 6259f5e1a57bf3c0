package alibaba2018

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/trace"
	"github.com/plimsoll-k8s/plimsoll/internal/trace/table"
)

const (
	machines   = "m_1,0,2,42,96,100,USING\nm_2,10,3,42,64,50,USING\nm_1,500,2,42,96,100,USING\n"
	containers = "c_1,m_1,0,app_1,started,400,800,1.5625\n" +
		"c_2,m_2,100,app_1,started,50,0,3.125\n" +
		"c_1,m_1,300,app_1,stopped,400,800,1.5625\n" +
		"c_1,m_1,310,app_1,stopped,400,800,1.5625\n"
	tasks     = "M1,2.0,j_1,1,Terminated,200,260,100,0.5\nR2_1,1,j_1,1,Running,400,0,50.0,0.25\nM1,1,j_2,1,Failed,210,220,,\n"
	instances = "ins_1,M1,j_1,1,Terminated,200,230,m_1,1,2,,,,\n" +
		"ins_1,M1,j_1,1,Terminated,235,260,m_2,2,2,,,,\n" +
		"ins_2,R2_1,j_1,1,Running,400,0,,1,1,,,,\n" +
		"ins_9,M9,j_9,1,Failed,5,6,m_1,1,1,,,,\n"
)

// files returns files with the given contents. Files without content are absent.
func files(machines, containers, tasks, instances string) Files {
	f := Files{Machines: File{"machine_meta.csv", strings.NewReader(machines)}}
	if containers != "" {
		f.Containers = &File{"container_meta.csv", strings.NewReader(containers)}
	}
	if tasks != "" {
		f.Tasks = &File{"batch_task.csv", strings.NewReader(tasks)}
	}
	if instances != "" {
		f.Instances = &File{"batch_instance.csv", strings.NewReader(instances)}
	}
	return f
}

const gib = 1 << 30

var (
	nodes = []trace.Node{
		{Name: "m_1", Capacity: trace.Amounts{CPU: 96000, Memory: 512 * gib}, Zone: "2"},
		{Name: "m_2", Capacity: trace.Amounts{CPU: 64000, Memory: 256 * gib}, Zone: "3"},
	}
	// 1.5625 hundredths of 512 GiB are 8 GiB, 400 hundredths of a core are four cores.
	c1 = trace.Pod{
		Name: "c_1", Group: "app_1", Node: "m_1", Class: trace.LatencySensitive, HasLimit: true, End: 300,
		Request: trace.Amounts{CPU: 4000, Memory: 8 * gib}, Limit: trace.Amounts{CPU: 8000, Memory: 8 * gib},
	}
	c2 = trace.Pod{
		Name: "c_2", Group: "app_1", Node: "m_2", Class: trace.LatencySensitive, HasLimit: true, Arrival: 100, Start: 100, End: trace.Never,
		Request: trace.Amounts{CPU: 500, Memory: 16 * gib}, Limit: trace.Amounts{Memory: 16 * gib},
	}
)

// job returns a pod of a task: M1 requests a core and 2.56 GiB, R2_1 half of that.
func job(task, pod string, start, end int64, node string) trace.Pod {
	p := trace.Pod{
		Name: "j_1/" + task + "/" + pod, Group: "j_1/" + task, Batch: true, Class: trace.BestEffort, Arrival: start, Start: start, End: end,
		Node: node,
	}
	if p.Request = (trace.Amounts{CPU: 1000, Memory: 2748779069}); task == "R2_1" {
		p.Request = trace.Amounts{CPU: 500, Memory: 1374389535}
	}
	return p
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		files   Files
		options Options
		pods    []trace.Pod
		skipped map[string]int
	}{
		"containers": {files(machines, containers, "", ""), Options{}, []trace.Pod{c1, c2}, map[string]int{skipState: 1}},
		"tasks without instances": {
			files(machines, "", tasks, ""),
			Options{},
			// All times are shifted by 200.
			[]trace.Pod{job("M1", "0", 0, 60, ""), job("M1", "1", 0, 60, ""), job("R2_1", "0", 200, trace.Never, "")},
			map[string]int{skipPlan: 1},
		},
		"instances": {
			files(machines, "", tasks, instances),
			Options{},
			[]trace.Pod{
				job("M1", "ins_1/1", 0, 30, "m_1"), job("M1", "ins_1/2", 35, 60, "m_2"),
				job("R2_1", "ins_2/1", 200, trace.Never, ""),
			},
			map[string]int{skipPlan: 1, skipTask: 1},
		},
		// From 230 to 400: the first container ends 70 s after the start of the window, the task 30 s
		// after; the second task starts after the window, the failed one ends before.
		"a window": {
			files(machines, containers, tasks, ""),
			Options{From: 230, To: 400},
			func() []trace.Pod {
				a, b := c1, c2
				a.End, b.Arrival, b.Start = 70, 0, 0
				return []trace.Pod{a, b, job("M1", "0", 0, 30, ""), job("M1", "1", 0, 30, "")}
			}(),
			map[string]int{skipState: 1, skipWindow: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(tc.files, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			want := &trace.Cluster{
				Nodes: nodes, Pods: tc.pods, Skipped: tc.skipped,
				Assumed: []string{"the largest machine has 512 GiB of memory, which is not in the trace"},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		files   Files
		options Options
		want    string
	}{
		"no machine": {files("", "", "", ""), Options{}, "machine_meta.csv: found no machines: must have at least one"},
		"cut off": {
			files("m_1,0,2,42", "", "", ""),
			Options{},
			"machine_meta.csv, line 1: found 4 columns: must have 7: machine_id, time_stamp, failure_domain_1, failure_domain_2, " +
				"cpu_num, mem_size, status",
		},
		"an invalid value": {
			files("m_1,0,2,42,96,101,USING\n", "", "", ""),
			Options{},
			`machine_meta.csv, line 1, column mem_size: invalid value "101": must be a number from 0 to 100`,
		},
		"no memory": {
			files("m_1,0,2,42,96,0,USING\n", "", "", ""),
			Options{},
			`machine_meta.csv, line 1, column mem_size: invalid value "0": must be a number above 0 and up to 100`,
		},
		"unknown status": {
			files(machines, "c_1,m_1,0,app_1,resting,400,800,1\n", "", ""),
			Options{},
			`container_meta.csv, line 1, column status: invalid value "resting": must be started, allocated, unknown or stopped`,
		},
		"limit under request": {
			files(machines, "c_1,m_1,0,app_1,started,400,200,1\n", "", ""),
			Options{},
			`container_meta.csv, line 1, column cpu_limit: invalid value "200": must be at least cpu_request, or 0`,
		},
		"ends before arrival": {
			files(machines, "c_1,m_1,9,app_1,started,400,800,1\nc_1,m_1,5,app_1,stopped,400,800,1\n", "", ""),
			Options{},
			`container_meta.csv, line 2, column time_stamp: invalid value "5": must be at least 9, the arrival of the container, or 0`,
		},
		"ends before start": {
			files(machines, "", "M1,1,j_1,1,Failed,200,199,100,1\n", ""),
			Options{},
			`batch_task.csv, line 1, column end_time: invalid value "199": must be at least 200, the start_time, or 0`,
		},
		"task twice": {
			files(machines, "", "M1,1,j_1,1,Failed,1,2,100,1\nM1,1,j_1,1,Failed,1,2,100,1\n", ""),
			Options{},
			`batch_task.csv, line 2, column task_name: invalid value "M1": must be unique within the job`,
		},
		"instance twice": {
			files(machines, "", tasks, "i,M1,j_1,1,Failed,1,2,m_1,1,1,,,,\ni,M1,j_1,1,Failed,1,2,m_1,1,1,,,,\n"),
			Options{},
			`batch_instance.csv, line 2, column instance_name: invalid value "i": must be unique for each attempt of an instance of a task`,
		},
		"too many pods": {
			files(machines, "", "M1,1000000000,j_1,1,Failed,1,2,100,1\n", ""),
			Options{},
			"batch_task.csv, line 1: found 1000000000 pods after 0: must have at most 1000000 in total: select a smaller window",
		},
		"more than MaxPods": {
			files(machines, "", tasks, ""),
			Options{MaxPods: 1},
			"batch_task.csv, line 1: found 2 pods after 0: must have at most 1 in total: select a smaller window",
		},
		"empty window": {
			files(machines, "", "", ""),
			Options{From: 5, To: 5},
			"alibaba2018: invalid options {From:5 To:5 MachineMemory:549755813888 MaxPods:1000000}: must have 0 <= From < To, " +
				"MachineMemory from 1 to 1125899906842624, MaxPods at least 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(tc.files, tc.options); err == nil || err.Error() != tc.want {
				t.Errorf("error\n%v, want\n%s", err, tc.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(machines, containers, tasks, instances)
	f.Add(machines, "", "M1,3,j_1,1,Failed,1,0,100,1\n", "")
	f.Fuzz(func(t *testing.T, machines, containers, tasks, instances string) {
		c, err := Read(files(machines, containers, tasks, instances), Options{MaxPods: 1000})
		if err != nil {
			if problem := (*table.Error)(nil); !errors.As(err, &problem) {
				t.Errorf("error %T", err)
			}
			return
		}
		names := map[string]bool{}
		for i, p := range c.Pods {
			unordered := i > 0 && p.Arrival < c.Pods[i-1].Arrival
			if p.Arrival < 0 || p.Start < p.Arrival || p.End < p.Start || p.Request.CPU < 0 || p.Request.Memory < 0 || unordered {
				t.Errorf("%+v", p)
			}
			names[p.Name] = true
		}
		if len(names) != len(c.Pods) {
			t.Errorf("%d names for %d pods", len(names), len(c.Pods))
		}
	})
}
