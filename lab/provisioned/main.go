// Command provisioned converts the virtual machines of Bitbrains in July and August 2013 to a recording for plimsoll recommend, with
// requests as provisioned: a machine is a pod of a StatefulSet of its own.
//
//	provisioned FOLDER OUT.ndjson.gz
//
// FOLDER has the folder rnd. The nodes have 32 cores and 128 GiB; there are as many as first fit by decreasing memory needs, and 5 % more.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/usage"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "provisioned:", err)
		os.Exit(1)
	}
}

var (
	node     = resources.Amounts{CPU: 32_000, Memory: 128 << 30}
	from, to = time.Date(2013, 7, 1, 0, 0, 0, 0, time.UTC), time.Date(2013, 9, 1, 0, 0, 0, 0, time.UTC)
)

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: provisioned FOLDER OUT.ndjson.gz")
	}
	set, err := usage.Open(os.DirFS(args[0]), usage.Bitbrains, func(string) bool { return true })
	if err != nil {
		return err
	}
	r := &recording.Recording{About: recording.About{
		From: from, To: to, Step: usage.Step, Sources: []string{"GWA-T-12 Bitbrains, requests as provisioned"},
		Missing: []recording.Missing{{What: "nodes", Why: "as many as the provisioned amounts need"}},
	}}
	var free []resources.Amounts
	var sum resources.Amounts
	for _, p := range podsOf(set) {
		requests := recording.PodAmounts(p.Object)
		requests.Pods = 0
		sum = sum.Add(requests)
		i := slices.IndexFunc(free, requests.FitsIn)
		if i < 0 {
			i, free = len(free), append(free, node)
		}
		free[i] = free[i].Minus(requests)
		p.Node = name(i)
		r.Pods = append(r.Pods, p)
	}
	for i := range int(math.Ceil(1.05 * float64(len(free)))) {
		r.Nodes = append(r.Nodes, generate.NewNode(name(i), node))
	}
	fmt.Printf("%d machines with %d cores and %d GiB on %d nodes\n", len(r.Pods), sum.CPU/1000, sum.Memory>>30, len(r.Nodes))
	file, err := os.Create(args[1])
	if err != nil {
		return err
	}
	return errors.Join(r.Write(file), file.Close())
}

func name(number int) string { return fmt.Sprintf("node-%02d", number) }

// podsOf returns the machines that fit a node as pods, by decreasing memory.
func podsOf(set *usage.Set) (pods []recording.Pod) {
	for _, w := range set.Workloads {
		m := &w.Machines[0]
		requests := resources.Amounts{CPU: int64(m.Provisioned.Cores * 1000), Memory: max(int64(m.Provisioned.Memory)*1024, 64<<20)}
		if m.Provisioned.CPU == 0 || !requests.FitsIn(node) {
			continue
		}
		p := recording.Pod{Created: -1, Scheduled: -1, Started: -1, Ended: recording.Never, Object: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "bitbrains", Name: w.Name + "-0", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: w.Name, UID: "1", Controller: new(true)},
			}},
			Spec: v1.PodSpec{Containers: []v1.Container{{Name: "machine", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU:    *resource.NewMilliQuantity(requests.CPU, resource.DecimalSI),
				v1.ResourceMemory: *resource.NewQuantity(requests.Memory, resource.BinarySI),
			}}}}},
		}}
		for _, day := range slices.Concat(m.Before, m.Days) {
			at, err := time.Parse(time.DateOnly, day.Name)
			if err != nil || at.Before(from) {
				continue
			}
			first := int(at.Sub(from) / time.Second / usage.Step)
			for i := range usage.PerDay {
				p.CPU.Set(first+i, float64(day.CPU[i])/m.Provisioned.CPU*m.Provisioned.Cores*1000)
				p.Memory.Set(first+i, float64(day.Memory[i])*1024)
			}
		}
		pods = append(pods, p)
	}
	slices.SortStableFunc(pods, func(a, b recording.Pod) int {
		return cmp.Compare(recording.PodAmounts(b.Object).Memory, recording.PodAmounts(a.Object).Memory)
	})
	return pods
}
