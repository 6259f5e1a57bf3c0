package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Extension is the extension of the names of recordings.
const Extension = ".ndjson.gz"

// openFolder reads the recordings of a folder, as plimsoll record --follow and plimsoll shadow write them, as one.
func openFolder(folder string) (*Recording, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*"+Extension))
	if err != nil {
		return nil, err
	}
	var parts []*Recording
	for _, name := range names {
		r, err := openFile(name, 0, 0)
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
func Open(name string) (*Recording, error) { return open(name, 0, 0) }

// open reads the recording in a file, with usage from one second until another at least, all if until is 0, or the recordings in a folder.
func open(name string, from, until int64) (*Recording, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return openFolder(name)
	}
	return openFile(name, from, until)
}

// joiner joins recordings. A map has the indexes of nodes and pods in the joined recording, and seen those that the last recording has.
type joiner struct {
	*Recording
	nodes               map[string]int
	pods                map[PodKey]int
	seenNodes, seenPods map[int]bool
}

// Gap describes the time from one view of a cluster to the next as missing if it is longer than two steps.
func Gap(from, to time.Time, step int) (Missing, bool) {
	return Missing{
		What: fmt.Sprintf("the time from %s to %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)),
		Why:  "nothing was recorded: pods that came and went are missing, others ended when they were seen last, usage has a gap",
	}, to.Sub(from) > 2*time.Duration(step)*time.Second
}

// Join joins recordings of one cluster with the same step. Nodes and pods that one recording has at its end and the next at its start are
// the same if their names and the UIDs of nodes or the times of creation of pods are. Between recordings, usage has a gap, which is missing
// if it is longer than two steps. Where recordings overlap, the later one decides.
func Join(parts []*Recording) (*Recording, error) {
	slices.SortStableFunc(parts, func(a, b *Recording) int { return a.About.From.Compare(b.About.From) })
	j := joiner{Recording: &Recording{About: parts[0].About}, nodes: map[string]int{}, pods: map[PodKey]int{}}
	j.About.Kills, j.About.Missing = nil, nil
	for _, r := range parts {
		if r.About.Step != j.About.Step {
			return nil, fmt.Errorf("found recordings with steps of %d s and %d s: must be the same", j.About.Step, r.About.Step)
		}
		j.add(r, int64(r.About.From.Sub(j.About.From).Seconds()))
	}
	if err := j.About.check(); err != nil {
		return nil, err
	}
	j.finish()
	return j.Recording, nil
}

// add adds a recording that starts an offset in seconds after the first.
func (j *joiner) add(r *Recording, offset int64) {
	if gap, ok := Gap(j.About.To, r.About.From, j.About.Step); ok {
		j.About.Missing = append(j.About.Missing, gap)
	}
	last := j.About.Seconds()
	j.seenNodes, j.seenPods = map[int]bool{}, map[int]bool{}
	for _, n := range r.Nodes {
		j.addNode(n, offset)
	}
	for i := range r.Pods {
		j.addPod(r.Pods[i], offset, offset+r.About.Seconds())
	}
	j.endMissing(last)
	for _, kill := range r.About.Kills {
		if len(j.About.Kills) < MaxKills && !slices.Contains(j.About.Kills, kill) {
			j.About.Kills = append(j.About.Kills, kill)
		}
	}
	for _, missing := range r.About.Missing {
		if !slices.Contains(j.About.Missing, missing) {
			j.About.Missing = append(j.About.Missing, missing)
		}
	}
	j.About.Redacted = j.About.Redacted || r.About.Redacted
	if r.About.To.After(j.About.To) {
		j.About.To = r.About.To
	}
	j.Objects, j.About.HasAutoscalers = r.Objects, r.About.HasAutoscalers // the newest
}

// endMissing ends what the newest recording lacks: it was seen last at the end of those before.
func (j *joiner) endMissing(last int64) {
	for i := range j.Nodes {
		if n := &j.Nodes[i]; n.Gone == Never && !j.seenNodes[i] {
			n.Gone = last
		}
	}
	for i := range j.Pods {
		if p := &j.Pods[i]; p.Ended == Never && !j.seenPods[i] {
			p.Ended = last
		}
	}
}

// later returns a time an offset later, Never for Never.
func later(second, offset int64) int64 {
	if second == Never {
		return Never
	}
	return second + offset
}

func (j *joiner) addNode(n Node, offset int64) {
	if i, known := j.nodes[n.Object.Name]; known && j.Nodes[i].Gone == Never && j.Nodes[i].Object.UID == n.Object.UID {
		j.Nodes[i].Object, j.Nodes[i].Gone, j.seenNodes[i] = n.Object, later(n.Gone, offset), true
		return
	}
	j.nodes[n.Object.Name], j.seenNodes[len(j.Nodes)] = len(j.Nodes), true
	n.Appeared, n.Gone = later(n.Appeared, offset), later(n.Gone, offset)
	j.Nodes = append(j.Nodes, n)
}

// addPod adds a pod of a recording that starts an offset in seconds after the first and has an end.
func (j *joiner) addPod(p Pod, offset, end int64) {
	p.Created, p.Scheduled = later(p.Created, offset), later(p.Scheduled, offset)
	p.Started, p.Ended = later(p.Started, offset), later(p.Ended, offset)
	shift := int(offset) / j.About.Step
	p.CPU.First += shift
	p.Memory.First += shift
	key := p.Key()
	if number, known := j.pods[key]; known {
		j.Pods[number].continueWith(&p, end)
		j.seenPods[number] = true
		return
	}
	j.pods[key], j.seenPods[len(j.Pods)] = len(j.Pods), true
	j.Pods = append(j.Pods, p)
}

// continueWith adds what a later recording until an end knows of the pod.
func (p *Pod) continueWith(later *Pod, end int64) {
	if p.Scheduled == Never {
		p.Scheduled, p.Node = later.Scheduled, later.Node
	}
	if p.Started == Never {
		p.Started = later.Started
	}
	if p.Object = later.Object; later.Ended != Never || p.Ended <= end {
		p.Ended = later.Ended
	}
	p.CPU.put(later.CPU.First, later.CPU.codes)
	p.Memory.put(later.Memory.First, later.Memory.codes)
}
