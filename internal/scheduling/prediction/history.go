package prediction

import (
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/load"
)

var _ Learner = &Keeper{}

// Replay learns from past usage of pods: from a reading in which the load of all nodes is unknown.
func (k *Keeper) Replay(reading *load.PodReading) {
	k.keepUsage(reading)
	k.learn(load.Reading{Time: reading.Time})
}

// Workloads returns the history of the usage of all workloads.
func (k *Keeper) Workloads() []Workload {
	k.mu.Lock()
	defer k.mu.Unlock()
	exported := k.learner.Export()
	workloads := make([]Workload, 0, len(exported))
	for i := range exported {
		e := &exported[i]
		if e.Workload.Namespace != "" && e.Workload.Kind != "" && e.Workload.Name != "" {
			workloads = append(workloads, Workload{
				Namespace: e.Workload.Namespace, Kind: e.Workload.Kind, Name: e.Workload.Name,
				CPU: Usage(e.Usage[predict.CPU]), Memory: Usage(e.Usage[predict.Memory]),
			})
		}
	}
	return workloads
}

// Restore adds a history that was saved at an earlier time. Predictions use it before the first reading.
func (k *Keeper) Restore(workloads []Workload, saved time.Time) {
	imported := make([]predict.Past, 0, len(workloads))
	for i := range workloads {
		w := &workloads[i]
		imported = append(imported, predict.Past{
			Workload: resources.Workload{Namespace: w.Namespace, Kind: w.Kind, Name: w.Name},
			Usage: [predict.Resources]predict.PastUsage{
				predict.CPU:    predict.PastUsage(w.CPU),
				predict.Memory: predict.PastUsage(w.Memory),
			},
		})
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.model.Store(k.learner.Import(imported, time.Since(saved).Seconds()))
}
