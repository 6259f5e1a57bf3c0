package openb

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/trace"
)

const (
	nodeHeader = "sn,cpu_milli,memory_mib,gpu,model\n"
	podHeader  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)

func read(nodes, pods string) (*trace.Cluster, error) {
	return Read("nodes.csv", strings.NewReader(nodes), "pods.csv", strings.NewReader(pods))
}

func TestRead(t *testing.T) {
	got, err := read(
		nodeHeader+"a,32000,1024,0,\nb,96000,2048,8,G2\n",
		podHeader+
			"late,2000,512,0,0,,LS,Running,150,400,160\n"+
			"never-placed,1000,256,1,460,V100M16|V100M32,BE,Pending,100,120,\n"+
			"stays,0,0,2,1000,,Guaranteed,Running,100,,100\n",
	)
	want := &trace.Cluster{
		Nodes: []trace.Node{
			{Name: "a", Capacity: trace.Amounts{CPU: 32000, Memory: 1 << 30}},
			{Name: "b", Capacity: trace.Amounts{CPU: 96000, Memory: 2 << 30, GPU: 8000}, GPUModel: "G2"},
		},
		// By arrival, from second 0.
		Pods: []trace.Pod{
			{
				Name:      "never-placed",
				Group:     "group-00000",
				Batch:     true,
				Request:   trace.Amounts{CPU: 1000, Memory: 256 << 20, GPU: 460},
				Class:     trace.BestEffort,
				GPUModels: []string{"V100M16", "V100M32"},
				End:       20,
			},
			{Name: "stays", Group: "group-00001", Request: trace.Amounts{GPU: 2000}, Class: trace.Guaranteed, End: trace.Never},
			{
				Name: "late", Group: "group-00002", Request: trace.Amounts{CPU: 2000, Memory: 512 << 20}, Class: trace.LatencySensitive,
				Arrival: 50, Start: 60, End: 300,
			},
		},
		Assumed: []string{"the trace names no workloads: equal pods of which each arrives within an hour of the one before are one " +
			"(3 workloads), and those of the class BE are batch jobs"},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestPublished reads a header in another order, with the byte order mark, line ends and fractions of some editors.
func TestPublished(t *testing.T) {
	pods, err := ReadPods("pods.csv", strings.NewReader("\ufeffscheduled_time,name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,"+
		"pod_phase,creation_time,deletion_time\r\n7.0,\"p\",100,1,0,0,,LS,Running,5,9\r\n"))
	if err != nil || len(pods) != 1 || pods[0].Name != "p" || pods[0].Start != 7 || pods[0].End != 9 {
		t.Errorf("%+v, %v", pods, err)
	}
}

// TestSize expects an error for a file that is too large, in one row or in many.
func TestSize(t *testing.T) {
	endless := iotest.DataErrReader(io.LimitReader(zeros{}, maxFile+1))
	if _, err := ReadPods("f", endless); err == nil {
		t.Error("no error")
	}
}

// zeros is a row that does not end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// TestGroups checks that equal pods are in one group while they arrive within an hour of each other.
func TestGroups(t *testing.T) {
	row := func(name, cpu, qos string, arrival int) string {
		return fmt.Sprintf("%s,%s,100,0,0,,%s,Running,%d,,\n", name, cpu, qos, arrival)
	}
	c, err := read(nodeHeader+"n,1000,1024,0,\n", podHeader+row("a", "1", "LS", 0)+row("b", "2", "LS", 10)+row("c", "1", "BE", 20)+
		row("d", "1", "LS", 3600)+row("e", "1", "LS", 7200)+row("f", "1", "LS", 10801))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"group-00000", "group-00001", "group-00002", "group-00000", "group-00000", "group-00003"} {
		if p := c.Pods[i]; p.Group != want || p.Batch != (i == 2) {
			t.Errorf("%s is in %s (batch %t), want %s", p.Name, p.Group, p.Batch, want)
		}
	}
}

func TestErrors(t *testing.T) {
	const node, pod = "a,1000,1024,0,\n", "p,100,100,0,0,,LS,Running,5,9,7\n"
	for name, tc := range map[string]struct{ nodes, pods, want string }{
		"no nodes": {
			nodeHeader, podHeader + pod,
			"nodes.csv: found no nodes: must have at least one",
		},
		"files mixed up": {
			podHeader + pod, nodeHeader + node,
			"nodes.csv, line 1: found no column sn: must have sn, cpu_milli, memory_mib, gpu, model",
		},
		"empty": {
			"", podHeader, "nodes.csv: found an empty file: must have a header with the columns sn, cpu_milli, memory_mib, gpu, model",
		},
		"bare quote": {nodeHeader + "a\"b,1,1,1,\n", podHeader, `nodes.csv: parse error on line 2, column 2: bare " in non-quoted-field`},
		"a fraction": {
			nodeHeader + "a,1.5,1024,0,\n", podHeader,
			`nodes.csv, line 2, column cpu_milli: invalid value "1.5": must be an integer from 1 to 1000000000`,
		},
		"a long value": {
			nodeHeader + "a,1,1,1," + strings.Repeat("#", 100) + "\n", podHeader,
			`nodes.csv, line 2, column model: invalid value "` + strings.Repeat("#", 60) + `": must be a name of 1 to 253 letters, ` +
				`digits and . _ - = + /`,
		},
		"node twice": {
			nodeHeader + node + node, podHeader,
			`nodes.csv, line 3, column sn: invalid value "a": must be unique: it is also in line 2`,
		},
		"node without CPU": {
			nodeHeader + "a,0,1024,0,\n", podHeader,
			`nodes.csv, line 2, column cpu_milli: invalid value "0": must be an integer from 1 to 1000000000`,
		},
		"overflow": {
			nodeHeader + "a,1,9223372036854775807,0,\n", podHeader,
			`nodes.csv, line 2, column memory_mib: invalid value "9223372036854775807": must be an integer from 1 to 1073741824`,
		},
		"script": {
			nodeHeader + "a,1,1,1,<script>\n", podHeader,
			`nodes.csv, line 2, column model: invalid value "<script>": must be a name of 1 to 253 letters, digits and . _ - = + /`,
		},
		"pod twice": {
			nodeHeader + node, podHeader + pod + pod,
			`pods.csv, line 3, column name: invalid value "p": must be unique: it is also in line 2`,
		},
		"cut off": {
			nodeHeader + node, podHeader + pod + "q,100,100,0,0,,LS,Runn",
			"pods.csv: record on line 3: wrong number of fields",
		},
		"negative time": {
			nodeHeader + node, podHeader + "p,100,100,0,0,,LS,Running,-5,9,7\n",
			`pods.csv, line 2, column creation_time: invalid value "-5": must be an integer from 0 to 4294967296`,
		},
		"ends before creation": {
			nodeHeader + node, podHeader + "p,100,100,0,0,,LS,Running,5,4,\n",
			`pods.csv, line 2, column deletion_time: invalid value "4": must be at least 5, the creation_time and the scheduled_time, ` +
				`or empty`,
		},
		"ends before it starts": {
			nodeHeader + node, podHeader + "p,100,100,0,0,,LS,Running,5,6,7\n",
			`pods.csv, line 2, column deletion_time: invalid value "6": must be at least 7, the creation_time and the scheduled_time, ` +
				`or empty`,
		},
		"starts before creation": {
			nodeHeader + node, podHeader + "p,100,100,0,0,,LS,Running,5,9,4\n",
			`pods.csv, line 2, column scheduled_time: invalid value "4": must be at least 5, the creation_time, or empty`,
		},
		"too much of a device": {
			nodeHeader + node, podHeader + "p,100,100,1,1001,,LS,Running,5,9,7\n",
			`pods.csv, line 2, column gpu_milli: invalid value "1001": must be an integer from 0 to 1000`,
		},
		"unknown class": {
			nodeHeader + node, podHeader + "p,100,100,0,0,,XX,Running,5,9,7\n",
			`pods.csv, line 2, column qos: invalid value "XX": must be BE, LS, BestEffort, Burstable, Guaranteed or empty`,
		},
		"unknown phase": {
			nodeHeader + node, podHeader + "p,100,100,0,0,,LS,Walking,5,9,7\n",
			`pods.csv, line 2, column pod_phase: invalid value "Walking": must be Pending, Running, Succeeded, Failed, Unknown or empty`,
		},
		"invalid device": {
			nodeHeader + node, podHeader + "p,100,100,1,100,T4|,LS,Running,5,9,7\n",
			`pods.csv, line 2, column gpu_spec: invalid value "T4|": must be names of GPU models separated by |`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(tc.nodes, tc.pods); err == nil || err.Error() != tc.want {
				t.Errorf("error\n%v, want\n%s", err, tc.want)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(nodeHeader)
	for i := range trace.MaxNodes + 1 {
		fmt.Fprintf(&b, "n%d,1000,1024,0,\n", i)
	}
	if _, err := readNodes("nodes.csv", &b); err == nil ||
		err.Error() != "nodes.csv, line 100002: found more than 100000 nodes: must have at most 100000" {
		t.Errorf("error %v", err)
	}
}

// write returns pods in the format of the file.
func write(pods []trace.Pod) string {
	var b strings.Builder
	b.WriteString(podHeader)
	classes := []string{"", "BE", "Burstable", "Guaranteed", "LS"}
	for _, p := range pods {
		end := ""
		if p.End != trace.Never {
			end = fmt.Sprint(p.End)
		}
		devices, milli := p.Request.GPU/1000, int64(1000)
		if p.Request.GPU%1000 > 0 {
			devices, milli = 1, p.Request.GPU
		}
		fmt.Fprintf(&b, "%s,%d,%d,%d,%d,%s,%s,Running,%d,%s,%d\n", p.Name, p.Request.CPU, p.Request.Memory/mebibyte, devices, milli,
			strings.Join(p.GPUModels, "|"), classes[p.Class], p.Arrival, end, p.Start)
	}
	return b.String()
}

// TestRoundTrip checks that ReadPods returns the pods that were written.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := make([]trace.Pod, rapid.IntRange(1, 20).Draw(t, "pods"))
		for i := range pods {
			p := trace.Pod{
				Name: fmt.Sprintf("pod-%d", i), Class: trace.Class(rapid.IntRange(0, 4).Draw(t, "class")),
				Request: trace.Amounts{
					CPU:    rapid.Int64Range(0, trace.MaxCPU).Draw(t, "cpu"),
					Memory: rapid.Int64Range(0, trace.MaxMemory>>20).Draw(t, "memory") << 20,
					GPU:    rapid.OneOf(rapid.Int64Range(0, 1000), rapid.SampledFrom([]int64{2000, 8000, 1_000_000})).Draw(t, "gpu"),
				},
				GPUModels: rapid.SliceOfN(rapid.SampledFrom([]string{"T4", "V100"}), 0, 3).Draw(t, "models"),
				Arrival:   rapid.Int64Range(0, 1000).Draw(t, "arrival"), End: trace.Never,
			}
			p.Start = p.Arrival + rapid.Int64Range(0, 1000).Draw(t, "wait")
			if rapid.Bool().Draw(t, "ends") {
				p.End = p.Start + rapid.Int64Range(0, 1000).Draw(t, "runs")
			}
			if len(p.GPUModels) == 0 {
				p.GPUModels = nil
			}
			pods[i] = p
		}
		got, err := ReadPods("f", strings.NewReader(write(pods)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(pods, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzReadPods(f *testing.F) {
	f.Add(podHeader + "p,100,100,0,0,,LS,Running,5,9,7\n")
	f.Add(podHeader + "p,100,100,1,460,T4|G2,BE,Pending,5,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		pods, err := ReadPods("f", strings.NewReader(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f") {
				t.Errorf("error %v does not name the file", err)
			}
			return
		}
		for _, p := range pods {
			if p.Arrival < 0 || p.Start < p.Arrival || p.End < p.Start || p.Request.CPU < 0 || p.Request.Memory < 0 ||
				p.Request.GPU < 0 || !trace.ValidName(p.Name) {
				t.Errorf("%+v", p)
			}
		}
	})
}

func FuzzReadNodes(f *testing.F) {
	f.Add(nodeHeader + "a,32000,1024,0,\n")
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := readNodes("f", strings.NewReader(text))
		if (err == nil) != (len(nodes) > 0) {
			t.Errorf("%v, %v", nodes, err)
		}
		for _, n := range nodes {
			if n.Capacity.CPU < 1 || n.Capacity.Memory < 1 || n.Capacity.GPU < 0 {
				t.Errorf("%+v", n)
			}
		}
	})
}

// BenchmarkReadPods reads as many pods as the public trace has.
func BenchmarkReadPods(b *testing.B) {
	pods := make([]trace.Pod, 8152)
	for i := range pods {
		pods[i] = trace.Pod{
			Name: fmt.Sprintf("openb-pod-%04d", i), Class: trace.LatencySensitive,
			Request: trace.Amounts{CPU: 12000, Memory: 16 << 30, GPU: 460},
			Arrival: int64(i) * 1000, Start: int64(i) * 1000, End: int64(i)*1000 + 5000,
		}
	}
	text := write(pods)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadPods("f", strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
