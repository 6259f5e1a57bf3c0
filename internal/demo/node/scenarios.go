package node

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// Scenario is a small cluster and a sequence of steps.
type Scenario struct {
	Name string
	// Shows is the outcome with the profile of the scenario in a few words.
	Shows string
	// Profile is the scheduler profile that is compared with the default one.
	Profile string
	Nodes   []demo.Node
	// Running are the pods that run from the start.
	Running []demo.Pod
	Steps   []scenarioStep
}

// scenarioStep is one step of a scenario. Exactly one field is set.
type scenarioStep struct {
	// Create is a pod that is created, and scheduled before the next step.
	Create *arrival
	// Delete is the name of a pod that is deleted.
	Delete string
	// Load is the load that the load source reports from now on: mean and standard deviation of CPU.
	Load map[string][2]float64
	// StopLoad makes the load source fail from now on. The step ends when the last load is too old
	// to be used.
	StopLoad bool
}

// arrival is a pod that is created and the nodes it is expected on with the default profile and
// with the profile of the scenario.
type arrival struct {
	demo.Pod
	WantDefault, Want string
}

// Measurements are the load of nodes by name.
type Measurements map[string]load.Node

// measurements returns the load of a step, nil with StopLoad. The memory load is the same on all nodes, so that CPU decides.
func (s *scenarioStep) measurements() Measurements {
	if s.StopLoad {
		return nil
	}
	m := Measurements{}
	for node, cpu := range s.Load {
		m[node] = load.Node{
			CPU: load.Utilization{Mean: cpu[0], StdDev: cpu[1]}, HasCPU: true,
			Memory: load.Utilization{Mean: 0.2, StdDev: 0.01}, HasMemory: true,
		}
	}
	return m
}

//go:embed scenarios.yaml
var scenarios []byte

// Scenarios are the scenarios of the demo, and playground is the cluster that remains after them.
var Scenarios, playground = readScenarios()

// readScenarios reads scenarios.yaml.
func readScenarios() ([]Scenario, Scenario) {
	var file struct {
		Scenarios  []Scenario
		Playground Scenario
	}
	if err := yaml.UnmarshalStrict(scenarios, &file); err != nil {
		panic(err) // the file is part of the program
	}
	return file.Scenarios, file.Playground
}

// Names returns the names of the scenarios.
func Names() (names []string) {
	for i := range Scenarios {
		names = append(names, Scenarios[i].Name)
	}
	return names
}

// Find returns the scenario of this name, which must be one of Names.
func Find(name string) Scenario { return Scenarios[slices.Index(Names(), name)] }

// Play adds the playground to the cluster.
func (d *Demo) Play(ctx context.Context) error {
	if _, err := d.run(ctx, playground, playground.Profile); err != nil {
		return fmt.Errorf("setting up the playground: %w", err)
	}
	return nil
}
