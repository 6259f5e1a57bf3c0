package record

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/snapshot"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
)

// Options configure how a recording is written.
type Options struct {
	// Redact replaces names by pseudonyms.
	Redact bool
	// Progress, if set, is called after each window.
	Progress func(Progress)
	// Log, if set, is called with lines about queries that were split or repeated, and with warnings.
	Log func(string)
	// Wait waits before a query is sent again; nil for the real time.
	Wait func(context.Context, time.Duration) error
}

// Progress is the progress of a recording.
type Progress struct {
	// Until is the end of the recorded part.
	Until, From, To time.Time
	Nodes, Pods     int
	// Bytes is the size of the file.
	Bytes int64
	// Missing lists the data that the recording lacks so far.
	Missing []recording.Missing
}

const (
	// maxBytes is the size of the largest response.
	maxBytes = 256 << 20
	// maxValues is the largest number of JSON values in a response: 25 for each value of usage by default.
	maxValues = 10_000_000
)

// recorder writes a recording.
type recorder struct {
	Options
	config Config
	client *prometheus.Client
	split  *splitter
	out    *recording.Writer
	// written is the size of the written data.
	written int64
	keys    *labelKeys
	redacts *snapshot.Redactor
	// pods and nodes were seen in the last window.
	pods  map[string]*podState
	nodes map[string]*nodeState
	// seenUntil is the last time at which any pod was exported, in seconds since 1970.
	seenUntil int64
	// objects has the workloads that were written.
	objects map[string]bool
	// series has the names of the series that had data.
	series map[string]bool
	// hasLabels is true once config has the names of the labels that the server uses.
	hasLabels bool
	counts    counts
	// gaps are parts of the time that lack nodes or pods.
	gaps []gap
	// notes are messages of the server.
	notes []recording.Missing
}

// Validate completes a configuration and returns an error that names the field that is invalid.
func (c *Config) Validate() error {
	c.complete()
	if err := c.validate(); err != nil {
		return err
	}
	_, err := newClient(c)
	return err
}

// newClient returns a client whose responses are bounded.
func newClient(c *Config) (*prometheus.Client, error) {
	return prometheus.NewClient(c.Server, endpoint.Options{MaxBytes: maxBytes, MaxValues: maxValues, ResponseTimeout: c.Timeout})
}

// Record writes a recording. If an error is returned, the recording is not complete.
func Record(ctx context.Context, out io.Writer, config Config, options Options) (Progress, error) {
	if err := config.Validate(); err != nil {
		return Progress{}, err
	}
	r := &recorder{
		Options: options, config: config, keys: newLabelKeys(config.LabelKeys),
		pods: map[string]*podState{}, nodes: map[string]*nodeState{},
		objects: map[string]bool{}, series: map[string]bool{}, counts: counts{Classes: map[string]bool{}},
	}
	var err error
	if r.client, err = newClient(&r.config); err != nil {
		return Progress{}, err
	}
	r.split = &splitter{step: config.Step, note: r.log, wait: options.Wait}
	if r.split.wait == nil {
		r.split.wait = sleep
	}
	if r.Redact {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		r.redacts = snapshot.NewRedactor(key)
	}
	if r.out, err = recording.NewWriter(counter{out, &r.written}, r.about(r.config.From)); err != nil {
		return Progress{}, err
	}
	if err := r.windows(ctx); err != nil {
		return Progress{}, err
	}
	err = r.out.Close()
	return r.progress(r.config.To), err
}

// counter counts the bytes that are written.
type counter struct {
	io.Writer
	bytes *int64
}

// Write implements io.Writer.
func (c counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	*c.bytes += int64(n)
	return n, err
}

// log writes a line.
func (r *recorder) log(line string) {
	if r.Log != nil {
		r.Log(line)
	}
}

// warned records warnings of the server.
func (r *recorder) warned(warnings promv1.Warnings) {
	for _, warning := range warnings {
		if r.Redact {
			warning = "(the text is omitted, it may have names)"
		}
		if r.note("data of the server", "it warned: "+warning) {
			r.log("the server warned: " + warning)
		}
	}
}

// query returns the result of a query at a time.
func (r *recorder) query(ctx context.Context, query string, at time.Time) (model.Vector, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	vector, warnings, err := r.client.Query(ctx, query, at, promv1.WithTimeout(r.config.Timeout))
	r.warned(warnings)
	return vector, err
}

// queryRange returns the result of a query at all steps from a time to another.
func (r *recorder) queryRange(ctx context.Context, query string, from, to time.Time) (model.Matrix, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	over := promv1.Range{Start: from, End: to, Step: r.config.Step}
	matrix, warnings, err := r.client.QueryRange(ctx, query, over, promv1.WithTimeout(r.config.Timeout))
	r.warned(warnings)
	return matrix, err
}

// about returns the description of the recording until a time.
func (r *recorder) about(until time.Time) recording.About {
	source := "Prometheus"
	if !r.Redact {
		source = r.client.String()
	}
	return recording.About{
		From: r.config.From, To: until, Step: int(r.config.Step.Seconds()), Redacted: r.Redact, Sources: []string{source},
		Missing: r.missing(),
	}
}

// progress returns the progress of the recording.
func (r *recorder) progress(until time.Time) Progress {
	return Progress{
		Until:   until,
		From:    r.config.From,
		To:      r.config.To,
		Nodes:   r.counts.Nodes,
		Pods:    r.counts.Pods,
		Bytes:   r.written,
		Missing: r.missing(),
	}
}

// windows records all windows.
func (r *recorder) windows(ctx context.Context) error {
	for from := r.config.From; from.Before(r.config.To); from = from.Add(r.config.Window) {
		to := from.Add(r.config.Window)
		last := !to.Before(r.config.To)
		if last {
			to = r.config.To
		}
		if err := r.window(ctx, from, to, last); err != nil {
			return err
		}
		if err := errors.Join(r.out.SetAbout(r.about(to)), r.out.Flush()); err != nil {
			return err
		}
		if r.Progress != nil {
			r.Progress(r.progress(to))
		}
	}
	if r.counts.Pods == 0 && r.counts.Nodes == 0 {
		return fmt.Errorf(
			"no data of %s and %s from %s to %s: check that kube-state-metrics is scraped, and the names of series and labels",
			podInfo,
			nodeInfo,
			r.config.From.Format(time.RFC3339),
			r.config.To.Format(time.RFC3339),
		)
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
	if r.hasLabels {
		return nil
	}
	labels := maps.Clone(r.config.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	found := false
	for _, name := range []string{podInfo, containerInfo} {
		err := r.example(ctx, name, from, to, func(metric model.Metric) {
			found = true
			for _, label := range []string{"namespace", "pod", "uid", "node", "container"} {
				if _, renamed := metric[model.LabelName("exported_"+label)]; renamed && labels[label] == "" {
					labels[label] = "exported_" + label
					r.log(fmt.Sprintf("%s has the label exported_%s: using it in place of %s", name, label, label))
				}
			}
			if metric[model.LabelName(rename(labels, "uid")[0])] == "" {
				r.note(
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
		r.config.Labels, r.hasLabels = labels, true
	}
	return nil
}

// example calls each with the labels of one series with the name, if a window has one.
func (r *recorder) example(ctx context.Context, name string, from, to time.Time, each func(model.Metric)) error {
	selector, ok := r.config.series(name)
	if !ok {
		return nil
	}
	return r.split.run(ctx, name, from, to, func(from, to time.Time) error {
		query := fmt.Sprintf("topk(1, last_over_time(%s[%s]))", selector, promDuration(max(to.Sub(from), r.config.Step)))
		vector, err := r.query(ctx, query, to)
		for _, sample := range vector {
			each(sample.Metric)
		}
		return err
	})
}

// readObjects reads nodes and pods from the series.
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
			func(metric model.Metric, value float64) { setFinished(w, metric, value) })
		if err != nil {
			return err
		}
	}
	for _, s := range described {
		if _, ok := r.config.lastQuery(s, r.config.Step); !ok {
			continue
		}
		err := r.each(ctx, s.name, from, to, func(d time.Duration) string { query, _ := r.config.lastQuery(s, d); return query },
			func(metric model.Metric, value float64) { s.set(w, metric, value) })
		if err != nil {
			return err
		}
	}
	return nil
}

// each runs a query for a window, or for parts of it, and calls set with each series.
func (r *recorder) each(
	ctx context.Context, name string, from, to time.Time, query func(time.Duration) string, set func(model.Metric, float64),
) error {
	return r.split.run(ctx, name, from, to, func(from, to time.Time) error {
		vector, err := r.query(ctx, query(max(to.Sub(from), r.config.Step)), to)
		for _, sample := range vector {
			r.series[name] = true
			set(sample.Metric, float64(sample.Value))
		}
		return err
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
