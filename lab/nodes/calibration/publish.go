package main

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
)

// publish writes the part of a recording from one time until another, in seconds since its start, with pseudonyms of a key that is not
// stored.
func publish(r *recording.Recording, file string, from, to int64) error {
	redactor := kinds.NewRedactor([]byte(rand.Text()))
	out := recording.Recording{About: r.About}
	out.About.Redacted = true
	out.About.To = r.About.From.Add(time.Duration(to) * time.Second)
	for _, object := range r.Objects {
		if object.Kind == nil || object.HasExpression() {
			continue
		}
		redacted, err := redactor.Redact(object)
		if err != nil {
			return err
		}
		out.Objects = append(out.Objects, redacted)
	}
	for _, n := range r.Nodes {
		object := &v1.Node{}
		if err := redactor.Object("nodes", n.Object, object); err != nil {
			return err
		}
		n.Object = object
		out.Nodes = append(out.Nodes, n)
	}
	for _, p := range r.Pods {
		if p.Created >= to {
			continue
		}
		object := &v1.Pod{}
		if err := redactor.Object("pods", p.Object, object); err != nil {
			return err
		}
		if p.Object, p.Node = object, redactor.Name(p.Node); p.Ended > to {
			p.Ended = recording.Never
		}
		out.Pods = append(out.Pods, p)
	}
	_, err := out.WriteSpan(file, from, to)
	return err
}

// publishPairs writes the recording of each pair of neighboring runs with one seed of a folder of results, redacted, to a folder.
func publishPairs(dir, into string) error {
	runs, r, err := read(dir)
	if err != nil {
		return err
	}
	for pair := range slices.Chunk(runs, 2) {
		if len(pair) < 2 || pair[0].Seed != pair[1].Seed {
			continue
		}
		from := int64(pair[0].Start.Sub(r.About.From).Seconds())
		to := r.About.Seconds()
		if i := slices.Index(runs, pair[1]); i+1 < len(runs) {
			to = int64(runs[i+1].Start.Sub(r.About.From).Seconds())
		}
		file := filepath.Join(into, fmt.Sprintf("pair-%02d%s", pair[0].Seed, recording.Extension))
		if err := publish(r, file, from, to); err != nil {
			return err
		}
	}
	return nil
}
