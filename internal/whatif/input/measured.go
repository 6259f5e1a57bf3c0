package input

import (
	"fmt"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// constantUsage is the usage of a pod that was measured once.
type constantUsage struct{ cpu, memory float64 }

// At implements Usage.
func (u constantUsage) At(int64) (cpu, memory float64) { return u.cpu, u.memory }

// SetUsage sets what pods use to what was measured of them. The usage of other pods remains generated.
func (in *Cluster) SetUsage(reading *load.PodReading) {
	used := make(map[string]load.PodUsage, len(reading.Pods))
	for _, pod := range reading.Pods {
		used[pod.Namespace+"/"+pod.Name] = pod
	}
	measured := 0
	for i := range in.Pods {
		object := in.Pods[i].Object
		if u, ok := used[object.Namespace+"/"+object.Name]; ok {
			in.Pods[i].Usage = constantUsage{u.CPU, u.Memory}
			measured++
		}
	}
	in.Assumptions = append(in.Assumptions, fmt.Sprintf(
		"the usage of %s is what %s measured until %s over %s, and does not change",
		format.Part(measured, len(in.Pods), "pod"), reading.Source, reading.Time.UTC().Format(time.RFC3339), reading.Window))
}
