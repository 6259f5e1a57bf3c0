package prometheus

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot"
)

// Options are how a recording is written.
type Options struct {
	// Redact replaces names by pseudonyms.
	Redact bool
	// Now is the time at which the recording is started.
	Now time.Time
	// Progress, if set, is called after each window.
	Progress func(Progress)
	// Log, if set, is called with lines about queries that were split or repeated, and with warnings.
	Log func(string)
	// Wait waits before a query is sent again; nil for the real time.
	Wait func(context.Context, time.Duration) error
}

// Progress is how far a recording is.
type Progress struct {
	// Until is the end of the part that is recorded.
	Until, From, To time.Time
	Nodes, Pods     int
	// Bytes is the size of the file.
	Bytes int64
	// Missing is what the recording lacks so far.
	Missing []recording.Missing
}

// recorder writes a recording.
type recorder struct {
	Options
	config  Config
	client  *client
	split   *splitter
	file    *recording.File
	state   *state
	keys    *labelKeys
	redacts *snapshot.Redactor
}

// Validate completes a configuration and returns an error that names the field that is invalid.
func (c *Config) Validate() error {
	c.complete()
	if err := c.validate(); err != nil {
		return err
	}
	_, err := newClient(c, nil)
	return err
}

// Record writes a recording to a file. If the file is an unfinished recording, it is continued; the configuration must then be the
// same, except the server's credentials. If an error is returned, the recording is complete until the last window and can be
// continued.
func Record(ctx context.Context, path string, config Config, options Options) (Progress, error) {
	if err := config.Validate(); err != nil {
		return Progress{}, err
	}
	r := &recorder{Options: options, config: config}
	var err error
	if r.client, err = newClient(&r.config, r.warned); err != nil {
		return Progress{}, err
	}
	r.split = &splitter{step: config.Step, note: r.log, wait: options.Wait}
	if r.split.wait == nil {
		r.split.wait = sleep
	}
	if err := r.open(path); err != nil {
		return Progress{}, err
	}
	r.keys = newLabelKeys(r.state.Config.LabelKeys)
	for _, key := range r.state.Counts.Doubtful {
		r.keys.doubtful[key] = true
	}
	if r.state.Key != nil {
		r.redacts = snapshot.NewRedactor(r.state.Key)
	}
	if err := r.windows(ctx); err != nil {
		return r.progress(), errors.Join(err, r.file.Abandon())
	}
	return r.progress(), r.file.Finish()
}

// log writes a line.
func (r *recorder) log(line string) {
	if r.Log != nil {
		r.Log(line)
	}
}

// warned records a warning of the server.
func (r *recorder) warned(warning string) {
	if r.Redact {
		warning = "(the text is omitted, it may have names)"
	}
	if r.state.note("data of the server", "it warned: "+warning) {
		r.log("the server warned: " + warning)
	}
}

// open starts or continues the recording.
func (r *recorder) open(path string) error {
	_, unfinished, err := recording.Exists(path)
	if err != nil {
		return err
	}
	r.state = &state{}
	if unfinished {
		if r.file, err = recording.Continue(path, r.state); err != nil {
			return err
		}
		if err := r.sameConfig(path); err != nil {
			return errors.Join(err, r.file.Abandon())
		}
		r.config.Labels, r.config.UsageLabels = r.state.Config.Labels, r.state.Config.UsageLabels
		r.log(fmt.Sprintf("continuing %s at %s", path, r.state.Next.Format(time.RFC3339)))
		return nil
	}
	r.state = &state{
		Config: r.config, Next: r.config.From, Pods: map[string]*podState{}, Nodes: map[string]*nodeState{},
		Objects: map[string]bool{}, Series: map[string]bool{}, Counts: counts{Classes: map[string]bool{}},
	}
	r.state.Config.Server = metricprovider.Config{} // it has credentials
	if r.Redact {
		r.state.Key = make([]byte, 32)
		_, _ = rand.Read(r.state.Key) // never fails
	}
	if r.file, err = recording.Create(path, r.Now, r.about(r.config.From)); err != nil {
		return err
	}
	return r.file.Commit(r.state)
}

// sameConfig returns an error if the configuration is not that of the recording that is continued.
func (r *recorder) sameConfig(path string) error {
	old, now := r.state.Config, r.config
	now.Server = old.Server
	if r.state.Checked { // the names of labels were found out
		old.Labels, old.UsageLabels = now.Labels, now.UsageLabels
	}
	if !reflect.DeepEqual(normal(old), normal(now)) || r.Redact != (r.state.Key != nil) {
		return fmt.Errorf(
			"%s is an unfinished recording from %s to %s with other options: repeat its options to continue it, or replace it with --force",
			path,
			old.From.Format(time.RFC3339),
			old.To.Format(time.RFC3339),
		)
	}
	return nil
}

// normal returns a configuration as it is after encoding and decoding.
func normal(c Config) Config {
	raw, _ := json.Marshal(c)
	var out Config
	_ = json.Unmarshal(raw, &out)
	return out
}

// about returns the description of the recording until a time.
func (r *recorder) about(until time.Time) recording.About {
	source := "Prometheus"
	if !r.Redact {
		source += " at " + r.client.server.URL.String()
	}
	return recording.About{
		From: r.config.From, To: until, Step: int(r.config.Step.Seconds()), Redacted: r.Redact, Sources: []string{source},
		Missing: r.state.missing(),
	}
}

// progress returns how far the recording is.
func (r *recorder) progress() Progress {
	return Progress{
		Until: r.state.Next, From: r.config.From, To: r.config.To, Nodes: r.state.Counts.Nodes, Pods: r.state.Counts.Pods,
		Bytes: r.file.Size(), Missing: r.state.missing(),
	}
}

// windows records all windows that are left.
func (r *recorder) windows(ctx context.Context) error {
	for r.state.Next.Before(r.config.To) {
		from := r.state.Next
		to := from.Add(r.config.Window)
		last := !to.Before(r.config.To)
		if last {
			to = r.config.To
		}
		if err := r.window(ctx, from, to, last); err != nil {
			return err
		}
		r.state.Next = to
		r.state.Counts.Doubtful = slices.Sorted(maps.Keys(r.keys.doubtful))
		if last && r.state.Counts.Pods == 0 && r.state.Counts.Nodes == 0 {
			return fmt.Errorf(
				"no data of %s and %s from %s to %s: check that kube-state-metrics is scraped, and the names of series and labels",
				podInfo,
				nodeInfo,
				r.config.From.Format(time.RFC3339),
				r.config.To.Format(time.RFC3339),
			)
		}
		if err := r.file.SetAbout(r.about(to)); err != nil {
			return err
		}
		if err := r.file.Commit(r.state); err != nil {
			return err
		}
		if r.Progress != nil {
			r.Progress(r.progress())
		}
	}
	return nil
}

// window records a window.
func (r *recorder) window(ctx context.Context, from, to time.Time, last bool) error {
	if err := r.findLabels(ctx, from, to); err != nil {
		return err
	}
	w := newWindow(&r.config, r.keys)
	if err := r.readObjects(ctx, w, from, to); err != nil {
		return err
	}
	if err := r.updateNodes(w, from, to, last); err != nil {
		return err
	}
	if err := r.updatePods(w, from, to, last); err != nil {
		return err
	}
	return r.readUsage(ctx, from, to, last)
}

// findLabels finds out whether the server has renamed the labels of kube-state-metrics, as it does when a target has labels of
// the same names and honor_labels is not set.
func (r *recorder) findLabels(ctx context.Context, from, to time.Time) error {
	if r.state.Checked {
		return nil
	}
	labels := maps.Clone(r.config.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	found := false
	for _, name := range []string{podInfo, containerInfo} {
		err := r.example(ctx, name, from, to, func(metric map[string]string) {
			found = true
			for _, label := range []string{"namespace", "pod", "uid", "node", "container"} {
				if _, renamed := metric["exported_"+label]; renamed && labels[label] == "" {
					labels[label] = "exported_" + label
					r.log(fmt.Sprintf("%s has the label exported_%s: using it in place of %s", name, label, label))
				}
			}
			if metric[rename(labels, "uid")[0]] == "" {
				r.state.note(
					"UIDs of pods",
					"the series have no label uid: a pod that replaces one of the same name within a window is taken as the same",
				)
			}
		})
		if err != nil {
			return err
		}
	}
	if found {
		r.config.Labels, r.state.Config.Labels, r.state.Checked = labels, labels, true
	}
	return nil
}

// example calls each with the labels of one series of a name, if there is one in a window.
func (r *recorder) example(ctx context.Context, name string, from, to time.Time, each func(map[string]string)) error {
	selector, ok := r.config.series(name)
	if !ok {
		return nil
	}
	return r.split.run(ctx, name, from, to, func(from, to time.Time) error {
		query := fmt.Sprintf("topk(1, last_over_time(%s[%s]))", selector, promDuration(max(to.Sub(from), r.config.Step)))
		return r.client.instant(ctx, query, to, func(e *element) error {
			each(e.Metric)
			return nil
		})
	})
}

// readObjects reads what the series say about nodes and pods.
func (r *recorder) readObjects(ctx context.Context, w *window, from, to time.Time) error {
	by := append(slices.Clone(podIdentity), "node", "created_by_kind", "created_by_name", "priority_class", "host_network")
	err := r.each(ctx, podInfo, from, to, func(d time.Duration) string { return r.config.seenQuery(podInfo, by, d) }, w.addPod)
	if err != nil {
		return err
	}
	nodes := func(d time.Duration) string { return r.config.seenQuery(nodeInfo, []string{"node"}, d) }
	err = r.each(ctx, nodeInfo, from, to, nodes, w.addNode)
	if err != nil {
		return err
	}
	if len(w.pods) == 0 && len(w.nodes) == 0 {
		return nil
	}
	if _, ok := r.config.finishedQuery(r.config.Step); ok {
		err := r.each(ctx, podPhase, from, to, func(d time.Duration) string { query, _ := r.config.finishedQuery(d); return query },
			func(metric map[string]string, value float64) { setFinished(w, metric, value) })
		if err != nil {
			return err
		}
	}
	for _, s := range described {
		if _, ok := r.config.lastQuery(s, r.config.Step); !ok {
			continue
		}
		err := r.each(ctx, s.name, from, to, func(d time.Duration) string { query, _ := r.config.lastQuery(s, d); return query },
			func(metric map[string]string, value float64) { s.set(w, metric, value) })
		if err != nil {
			return err
		}
	}
	return nil
}

// each runs a query for a window, or for parts of it, and calls set with each series.
func (r *recorder) each(
	ctx context.Context, name string, from, to time.Time, query func(time.Duration) string, set func(map[string]string, float64),
) error {
	return r.split.run(ctx, name, from, to, func(from, to time.Time) error {
		return r.client.instant(ctx, query(max(to.Sub(from), r.config.Step)), to, func(e *element) error {
			r.state.Series[name] = true
			set(e.Metric, e.Value.value)
			return nil
		})
	})
}

// since returns a time in seconds since the start of the recording, Never if it is unknown.
func (r *recorder) since(at int64) int64 {
	if at == 0 {
		return recording.Never
	}
	return at - r.config.From.Unix()
}

// hash returns a hash of an object.
func hash(object any) uint64 {
	raw, _ := json.Marshal(object)
	h := fnv.New64a()
	_, _ = h.Write(raw)
	return h.Sum64()
}

// redactNode returns the node for the file.
func (r *recorder) redactNode(node *v1.Node) (*v1.Node, error) {
	if r.redacts == nil {
		return node, nil
	}
	out := &v1.Node{}
	return out, r.redacts.Object("nodes", node, out)
}

// redactPod returns the pod for the file.
func (r *recorder) redactPod(pod *v1.Pod) (*v1.Pod, error) {
	if r.redacts == nil {
		return pod, nil
	}
	out := &v1.Pod{}
	return out, r.redacts.Object("pods", pod, out)
}

// nodeName returns the name of a node for the file.
func (r *recorder) nodeName(name string) string {
	if r.redacts == nil || name == "" {
		return name
	}
	return r.redacts.Name("node", name)
}
