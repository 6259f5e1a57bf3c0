package trace

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

const (
	nodeHeader = "sn,cpu_milli,memory_mib,gpu,model\n"
	podHeader  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)

// readOpenbText reads the files of a trace, and arranges the pods.
func readOpenbText(nodes, pods string) (in generate.NewCluster, read []pod, err error) {
	if in.Nodes, err = readNodes(strings.NewReader(nodes)); err == nil {
		read, err = readPods(strings.NewReader(pods))
	}
	arrange(read)
	return in, read, err
}

// withRequests returns a pod of the trace with GPUs in thousandths, memory in MiB and a workload.
func withRequests(name string, cpu, memory, gpu int64, workload string) pod {
	requests := resources.Amounts{CPU: cpu, Memory: memory * mebibyte, Extended: devices(gpu)}
	return pod{NewPod: generate.NewPod{
		Name: name, Requests: requests, Duration: recording.Never, Owner: &generate.Owner{Name: workload},
	}}
}

func TestReadOpenb(t *testing.T) {
	in, pods, err := readOpenbText(
		nodeHeader+"a,32000,1024,0,\nb,96000,2048,8,G2\n",
		podHeader+
			"late,2000,512,0,0,,LS,Running,150,400,160\n"+
			"never-placed,1000,256,1,460,V100M16|V100M32,BE,Pending,100,120,\n"+
			"stays,0,0,2,1000,,Guaranteed,Running,100,,100\n",
	)
	if err != nil {
		t.Fatal(err)
	}
	a := generate.NewNode("a", resources.Amounts{CPU: 32000, Memory: 1 << 30})
	b := generate.NewNode("b", resources.Amounts{CPU: 96000, Memory: 2 << 30, Extended: devices(8000)})
	b.Object.Labels[generate.GPUModelLabel] = "G2"
	if diff := cmp.Diff([]recording.Node{a, b}, in.Nodes); diff != "" {
		t.Error(diff)
	}
	// By arrival, from second 0.
	first, second, third := withRequests("never-placed", 1000, 256, 460, "group-00000"), withRequests("stays", 0, 0, 2000, "group-00001"),
		withRequests("late", 2000, 512, 0, "group-00002")
	first.Duration, first.class, first.models, first.Owner.IsJob = 20, "BE", "V100M16|V100M32", true
	requireGPUModels(&first.Spec, []string{"V100M16", "V100M32"}, first.Requests)
	second.class = "Guaranteed"
	third.class, third.Arrival, third.start, third.Duration = "LS", 50, 60, 240
	if diff := cmp.Diff([]pod{first, second, third}, pods, cmp.AllowUnexported(pod{})); diff != "" {
		t.Error(diff)
	}
}

// podOf returns a pod of a trace that starts when the pod arrives.
func podOf(name string, requests resources.Amounts, arrival, duration int64) pod {
	return pod{NewPod: generate.NewPod{Name: name, Requests: requests, Arrival: arrival, Duration: duration}, start: arrival}
}

// TestAddPods adds three pods with the times of the trace, and with two arrivals per second.
func TestAddPods(t *testing.T) {
	none := resources.Amounts{}
	pods := []pod{podOf("a", none, 0, 5), podOf("b", none, 2, 9), podOf("c", none, 7, 9)}
	var unpacked, packed generate.NewCluster
	addPods(&unpacked, pods, 0)
	addPods(&packed, pods, 2)
	if p := unpacked.Pods[1]; p.Arrival != 2 || p.Duration != 9 {
		t.Errorf("%+v", unpacked)
	}
	if b, c := packed.Pods[1], packed.Pods[2]; b.Arrival != 0 || c.Arrival != 1 || c.Duration != recording.Never {
		t.Errorf("%+v", packed)
	}
}

// TestPublished reads a header in another order, with the byte order mark, line ends and fractions of some editors.
func TestPublished(t *testing.T) {
	pods, err := readPods(strings.NewReader("\ufeffscheduled_time,name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos," +
		"pod_phase,creation_time,deletion_time\r\n7.0,\"p\",100,1,0,0,,LS,Running,5,9\r\n"))
	if err != nil || len(pods) != 1 || pods[0].Name != "p" || pods[0].start != 7 || pods[0].Duration != 2 {
		t.Errorf("%+v, %v", pods, err)
	}
}

// TestOpenbSize expects an error for a file that is too large, in one row or in many.
func TestOpenbSize(t *testing.T) {
	endless := iotest.DataErrReader(io.LimitReader(zeros{}, maxFile+1))
	if _, err := readPods(endless); err == nil {
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
	_, pods, err := readOpenbText(
		nodeHeader+"n,1000,1024,0,\n",
		podHeader+row("a", "1", "LS", 0)+row("b", "2", "LS", 10)+row("c", "1", "BE", 20)+
			row("d", "1", "LS", 3600)+row("e", "1", "LS", 7200)+row("f", "1", "LS", 10801),
	)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"group-00000", "group-00001", "group-00002", "group-00000", "group-00000", "group-00003"} {
		if p := pods[i]; p.Owner.Name != want || p.Owner.IsJob != (i == 2) {
			t.Errorf("%s is in %+v, want %s", p.Name, p.Owner, want)
		}
	}
}

func TestOpenbErrors(t *testing.T) {
	const node, pod = "a,1000,1024,0,\n", "p,100,100,0,0,,LS,Running,5,9,7\n"
	for name, tc := range map[string]struct{ nodes, pods, want string }{
		"no nodes": {
			nodeHeader, podHeader + pod,
			"found no nodes: must have at least one",
		},
		"files mixed up": {
			podHeader + pod, nodeHeader + node,
			"line 1: found no column sn: must have sn, cpu_milli, memory_mib, gpu, model",
		},
		"empty": {
			"", podHeader, "found an empty file: must have a header with the columns sn, cpu_milli, memory_mib, gpu, model",
		},
		"bare quote": {nodeHeader + "a\"b,1,1,1,\n", podHeader, `parse error on line 2, column 2: bare " in non-quoted-field`},
		"a fraction": {
			nodeHeader + "a,1.5,1024,0,\n", podHeader,
			`line 2, column cpu_milli: invalid value "1.5": must be an integer from 1 to 1000000000`,
		},
		"a long value": {
			nodeHeader + "a,1,1,1," + strings.Repeat("#", 100) + "\n", podHeader,
			`line 2, column model: invalid value "` + strings.Repeat("#", 60) + `": must be a name of 1 to 253 letters, ` +
				`digits and . _ - = + /`,
		},
		"node twice": {
			nodeHeader + node + node, podHeader,
			`line 3, column sn: invalid value "a": must be unique: it is also in line 2`,
		},
		"node without CPU": {
			nodeHeader + "a,0,1024,0,\n", podHeader,
			`line 2, column cpu_milli: invalid value "0": must be an integer from 1 to 1000000000`,
		},
		"overflow": {
			nodeHeader + "a,1,9223372036854775807,0,\n", podHeader,
			`line 2, column memory_mib: invalid value "9223372036854775807": must be an integer from 1 to 1073741824`,
		},
		"script": {
			nodeHeader + "a,1,1,1,<script>\n", podHeader,
			`line 2, column model: invalid value "<script>": must be a name of 1 to 253 letters, digits and . _ - = + /`,
		},
		"pod twice": {
			nodeHeader + node, podHeader + pod + pod,
			`line 3, column name: invalid value "p": must be unique: it is also in line 2`,
		},
		"cut off": {
			nodeHeader + node, podHeader + pod + "q,100,100,0,0,,LS,Runn",
			"record on line 3: wrong number of fields",
		},
		"negative time": {
			nodeHeader + node, podHeader + "p,100,100,0,0,,LS,Running,-5,9,7\n",
			`line 2, column creation_time: invalid value "-5": must be an integer from 0 to 4294967296`,
		},
		"ends before creation": {
			nodeHeader + node, podHeader + "p,100,100,0,0,,LS,Running,5,4,\n",
			`line 2, column deletion_time: invalid value "4": must be at least 5, the creation_time and the scheduled_time, ` +
				`or empty`,
		},
		"ends before it starts": {
			nodeHeader + node, podHeader + "p,100,100,0,0,,LS,Running,5,6,7\n",
			`line 2, column deletion_time: invalid value "6": must be at least 7, the creation_time and the scheduled_time, ` +
				`or empty`,
		},
		"starts before creation": {
			nodeHeader + node, podHeader + "p,100,100,0,0,,LS,Running,5,9,4\n",
			`line 2, column scheduled_time: invalid value "4": must be at least 5, the creation_time, or empty`,
		},
		"too much of a device": {
			nodeHeader + node, podHeader + "p,100,100,1,1001,,LS,Running,5,9,7\n",
			`line 2, column gpu_milli: invalid value "1001": must be an integer from 0 to 1000`,
		},
		"unknown class": {
			nodeHeader + node, podHeader + "p,100,100,0,0,,XX,Running,5,9,7\n",
			`line 2, column qos: invalid value "XX": must be BE, LS, BestEffort, Burstable, Guaranteed or empty`,
		},
		"invalid device": {
			nodeHeader + node, podHeader + "p,100,100,1,100,T4|,LS,Running,5,9,7\n",
			`line 2, column gpu_spec: invalid value "T4|": must be names of GPU models separated by |`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := readOpenbText(tc.nodes, tc.pods); err == nil || err.Error() != tc.want {
				t.Errorf("error\n%v, want\n%s", err, tc.want)
			}
		})
	}
}

func TestOpenbBounds(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(nodeHeader)
	for i := range maxNodes + 1 {
		fmt.Fprintf(&b, "n%d,1000,1024,0,\n", i)
	}
	if _, err := readNodes(&b); err == nil ||
		err.Error() != "line 100002: found more than 100000 nodes: must have at most 100000" {
		t.Errorf("error %v", err)
	}
}

// writeOpenb returns pods in the format of the file.
func writeOpenb(pods []pod) string {
	var b strings.Builder
	b.WriteString(podHeader)
	for _, p := range pods {
		end := ""
		if p.Duration != recording.Never {
			end = fmt.Sprint(p.start + p.Duration)
		}
		gpu := p.Requests.Extended.Get(OpenbGPU)
		devices, milli := gpu/1000, int64(1000)
		if gpu%1000 > 0 {
			devices, milli = 1, gpu
		}
		fmt.Fprintf(&b, "%s,%d,%d,%d,%d,%s,%s,Running,%d,%s,%d\n", p.Name, p.Requests.CPU,
			p.Requests.Memory/mebibyte, devices, milli, p.models, p.class, p.Arrival, end, p.start)
	}
	return b.String()
}

// TestOpenbRoundTrip checks that readPods returns the pods that were written.
func TestOpenbRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := make([]pod, rapid.IntRange(1, 20).Draw(t, "pods"))
		for i := range pods {
			p := podOf(fmt.Sprintf("pod-%d", i), resources.Amounts{
				CPU:    rapid.Int64Range(0, maxCPU).Draw(t, "cpu"),
				Memory: rapid.Int64Range(0, maxMemory>>20).Draw(t, "memory") << 20,
				Extended: devices(rapid.OneOf(
					rapid.Int64Range(0, 1000),
					rapid.SampledFrom([]int64{2000, 8000, 1_000_000}),
				).Draw(t, "gpu")),
			}, rapid.Int64Range(0, 1000).Draw(t, "arrival"), recording.Never)
			p.class = rapid.SampledFrom([]string{"", "BE", "Burstable", "Guaranteed", "LS"}).Draw(t, "class")
			models := rapid.SliceOfN(rapid.SampledFrom([]string{"T4", "V100"}), 0, 3).Draw(t, "models")
			if p.models = strings.Join(models, "|"); p.models != "" {
				requireGPUModels(&p.Spec, models, p.Requests)
			}
			p.start += rapid.Int64Range(0, 1000).Draw(t, "wait")
			if rapid.Bool().Draw(t, "ends") {
				p.Duration = rapid.Int64Range(0, 1000).Draw(t, "runs")
			}
			pods[i] = p
		}
		got, err := readPods(strings.NewReader(writeOpenb(pods)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(pods, got, cmp.AllowUnexported(pod{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzReadPods(f *testing.F) {
	f.Add(podHeader + "p,100,100,0,0,,LS,Running,5,9,7\n")
	f.Add(podHeader + "p,100,100,1,460,T4|G2,BE,Pending,5,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		pods, err := readPods(strings.NewReader(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f") {
				t.Errorf("error %v does not name the file", err)
			}
			return
		}
		for _, p := range pods {
			r := p.Requests
			if p.Arrival < 0 || p.start < p.Arrival || p.Duration < 0 || r.CPU < 0 || r.Memory < 0 ||
				r.Extended.Get(OpenbGPU) < 0 || !validName.MatchString(p.Name) {
				t.Errorf("%+v", p)
			}
		}
	})
}

func FuzzReadNodes(f *testing.F) {
	f.Add(nodeHeader + "a,32000,1024,0,\n")
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := readNodes(strings.NewReader(text))
		if (err == nil) != (len(nodes) > 0) {
			t.Errorf("%v, %v", nodes, err)
		}
		for _, n := range nodes {
			a := recording.Amounts(n.Object.Status.Allocatable)
			if a.CPU < 1 || a.Memory < 1 || a.Extended.Get(OpenbGPU) < 0 {
				t.Errorf("%+v", n)
			}
		}
	})
}

// BenchmarkReadPods reads as many pods as the public trace has.
func BenchmarkReadPods(b *testing.B) {
	pods := make([]pod, 8152)
	requests := resources.Amounts{CPU: 12000, Memory: 16 << 30, Extended: devices(460)}
	for i := range pods {
		pods[i] = podOf(fmt.Sprintf("openb-pod-%04d", i), requests, int64(i)*1000, 5000)
	}
	text := writeOpenb(pods)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readPods(strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

// TestConvert converts two pods, one of which requires a model of GPU, in the times of the trace and packed, and reads the recording.
func TestConvert(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nodes := file("nodes.csv", nodeHeader+"n1,32000,65536,0,\nn2,16000,65536,2,G1\n")
	pods := file("pods.csv", podHeader+"p1,1000,1024,1,500,G1,LS,Running,100,200,110\np2,1000,1024,0,0,,BE,Running,300,400,300\n")
	for perSecond, want := range map[int][2]int64{0: {200, 100}, 1: {1, recording.Never}} {
		out := filepath.Join(folder, fmt.Sprint(perSecond, ".ndjson.gz"))
		if err := Convert(nodes, pods, out, Options{PerSecond: perSecond, Limits: generate.Limits{CPU: 2, Memory: 2}}); err != nil {
			t.Fatal(err)
		}
		in, err := recording.Source{Recording: out}.Input()
		if err != nil || len(in.Nodes) != 2 || len(in.Pods) != 2 || in.Pods[0].Recorded.Node != "n2" || in.Pods[1].Recorded.Node != "n1" {
			t.Fatalf("%+v, %v", in, err)
		}
		if p := in.Pods[1]; p.Arrival != want[0] || p.Duration != want[1] || in.Pods[0].Resources.CPULimit != 2000 {
			t.Errorf("%d pods per second: arrival %d, duration %d, %+v", perSecond, p.Arrival, p.Duration, in.Pods[0].Resources)
		}
	}
}
