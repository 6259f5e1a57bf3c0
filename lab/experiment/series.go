package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/plimsoll-k8s/plimsoll/lab/experiment/cluster"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/usage"
)

// series has the data set that was read last: scenarios of one set follow each other.
type series struct {
	folder string
	part   scenarios.Part
	set    *usage.Set
}

// checkFolder returns an error if a folder of real usage does not exist.
func checkFolder(folder string) error {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("-usage: found no folder %q: must be a folder with the public files, %s", folder, usage.Sources)
	}
	return nil
}

// read returns the workloads of a data set that belong to a part, by the hash of their names: the halves have none in common.
func (s *series) read(name string, part scenarios.Part) (*usage.Set, error) {
	if s.set != nil && s.set.Name == name && s.part == part {
		return s.set, nil
	}
	half := 0
	if part == scenarios.Published {
		half = 1
	}
	set, err := usage.Open(os.DirFS(s.folder), name, func(workload string) bool { return usage.Half(workload) == half })
	if err != nil {
		return nil, fmt.Errorf("-usage %s: %w", s.folder, err)
	}
	s.set, s.part = set, part
	return set, nil
}

// record writes the recordings of the scenarios, for plimsoll recommend.
func record(o options, chosen []scenarios.Scenario) error {
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return err
	}
	s := &series{folder: o.usage}
	for i := range chosen {
		file, err := s.draw(&chosen[i], uint64(o.seed), o.folder)
		if err != nil {
			return err
		}
		fmt.Println(file)
	}
	return nil
}

// draw writes the recording of a scenario and a seed, and returns its file.
func (s *series) draw(scenario *scenarios.Scenario, seed uint64, temporary string) (file string, err error) {
	set, err := s.read(scenario.Cluster.Set, scenario.Part)
	if err != nil {
		return "", err
	}
	drawn, err := cluster.Draw(set, scenario.Cluster, seed)
	if err != nil {
		return "", err
	}
	out, err := os.Create(filepath.Join(temporary, fmt.Sprintf("%s-%d.ndjson.gz", scenario.Name, seed)))
	if err != nil {
		return "", err
	}
	if err := drawn.Write(out); err != nil {
		return "", err
	}
	return out.Name(), out.Close()
}
