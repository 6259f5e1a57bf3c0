package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Extension is the extension of the names of recordings.
const Extension = ".plrec"

// openFolder reads the recordings of a folder, as plimsoll record --follow and plimsoll shadow write them, as one.
func openFolder(folder string) (*Recording, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*"+Extension))
	if err != nil {
		return nil, err
	}
	var parts []*Recording
	for _, name := range names {
		r, err := openFile(name)
		if err != nil {
			return nil, err
		}
		if !r.About.isSnapshot() {
			parts = append(parts, r)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%s: found no recording: must be a file, or a folder with files NAME%s", folder, Extension)
	}
	joined, err := Join(parts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return joined, nil
}

// Open reads the recording in a file, or the recordings in a folder as one. Errors name the file.
func Open(name string) (*Recording, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return openFolder(name)
	}
	return openFile(name)
}

// Join joins recordings of one cluster with the same step that follow each other. Nodes and pods that one recording has at its end and the
// next at its start are the same if their names and, of pods, their times of creation are. Between recordings, usage has a gap.
func Join(parts []*Recording) (*Recording, error) {
	slices.SortStableFunc(parts, func(a, b *Recording) int { return a.About.From.Compare(b.About.From) })
	joined := &Recording{About: parts[0].About}
	joined.About.Kills, joined.About.Missing = nil, nil
	type podKey struct {
		namespace, name string
		created         int64
	}
	nodes, pods := map[string]int{}, map[podKey]int{}
	for _, r := range parts {
		if r.About.Step != joined.About.Step {
			return nil, fmt.Errorf("found recordings with steps of %d s and %d s: must be the same", joined.About.Step, r.About.Step)
		}
		offset := int64(r.About.From.Sub(joined.About.From).Seconds())
		at := func(second int64) int64 {
			if second == Never {
				return Never
			}
			return second + offset
		}
		seenNodes, seenPods := map[int]bool{}, map[int]bool{}
		for _, n := range r.Nodes {
			if i, known := nodes[n.Object.Name]; known && joined.Nodes[i].Gone == Never {
				joined.Nodes[i].Object, joined.Nodes[i].Gone, seenNodes[i] = n.Object, at(n.Gone), true
				continue
			}
			seenNodes[len(joined.Nodes)] = true
			nodes[n.Object.Name] = len(joined.Nodes)
			n.Appeared, n.Gone = at(n.Appeared), at(n.Gone)
			joined.Nodes = append(joined.Nodes, n)
		}
		for i := range r.Pods {
			p := r.Pods[i]
			p.Created, p.Scheduled, p.Started, p.Ended = at(p.Created), at(p.Scheduled), at(p.Started), at(p.Ended)
			shift := int(offset) / joined.About.Step
			p.CPU.First += shift
			p.Memory.First += shift
			key := podKey{p.Object.Namespace, p.Object.Name, p.Created}
			if number, known := pods[key]; known {
				joined.Pods[number].continueWith(&p)
				seenPods[number] = true
				continue
			}
			seenPods[len(joined.Pods)] = true
			pods[key] = len(joined.Pods)
			joined.Pods = append(joined.Pods, p)
		}
		// What is not in the recording went between the recordings.
		for i := range joined.Nodes {
			if n := &joined.Nodes[i]; n.Gone == Never && !seenNodes[i] {
				n.Gone = offset
			}
		}
		for i := range joined.Pods {
			if p := &joined.Pods[i]; p.Ended == Never && !seenPods[i] {
				p.Ended = offset
			}
		}
		for _, kill := range r.About.Kills[:min(len(r.About.Kills), MaxKills-len(joined.About.Kills))] {
			kill.Second = at(kill.Second)
			joined.About.Kills = append(joined.About.Kills, kill)
		}
		for _, missing := range r.About.Missing {
			if !slices.Contains(joined.About.Missing, missing) {
				joined.About.Missing = append(joined.About.Missing, missing)
			}
		}
		joined.About.To, joined.About.Redacted = r.About.To, joined.About.Redacted || r.About.Redacted
		joined.Objects = r.Objects // the newest
	}
	if err := joined.About.check(); err != nil {
		return nil, err
	}
	joined.finish()
	return joined, nil
}

// continueWith adds what a later recording knows of the pod.
func (p *Pod) continueWith(later *Pod) {
	if p.Scheduled == Never {
		p.Scheduled, p.Node = later.Scheduled, later.Node
	}
	if p.Started == Never {
		p.Started = later.Started
	}
	p.Object, p.Ended = later.Object, later.Ended
	p.CPU.put(later.CPU.First, later.CPU.codes)
	p.Memory.put(later.Memory.First, later.Memory.codes)
}
