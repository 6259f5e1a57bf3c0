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
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
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
	// retryDelay is the wait before the second attempt of a query, a second by default; each further attempt doubles it.
	retryDelay time.Duration
}

// Progress is the progress of a recording.
type Progress struct {
	// Until is the end of the recorded part.
	Until       time.Time
	Nodes, Pods int
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
	out    *recording.Writer
	keys   *labelKeys
	redact *kinds.Redactor
	// pods and nodes were seen in the last window.
	pods  map[string]*podState
	nodes map[string]*nodeState
	// seenUntil is the last time at which any pod was exported, in seconds since 1970.
	seenUntil int64
	// objects has the other objects that were written.
	objects map[string]bool
	// series has the names of the series that had data.
	series map[string]bool
	// hasLabels is true once config has the names of the labels that the server uses.
	hasLabels bool
	counts    counts
	// connected is true after the first response of the server.
	connected bool
	// gaps are parts of the time that lack nodes or pods.
	gaps []gap
	// notes are messages of the server.
	notes notes
}

// Validate completes a configuration and returns an error that names the field that is invalid.
func (c *Config) Validate() error {
	_, err := c.client()
	return err
}

// client completes and validates a configuration, and returns a client whose responses are bounded.
func (c *Config) client() (*prometheus.Client, error) {
	c.complete()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return prometheus.NewClient(c.Server, endpoint.Options{MaxBytes: maxBytes, MaxValues: maxValues, ResponseTimeout: c.Timeout})
}

// Record writes a recording. If an error is returned, the recording is not complete.
func Record(ctx context.Context, out io.Writer, config Config, options Options) (Progress, error) {
	client, err := config.client()
	if err != nil {
		return Progress{}, err
	}
	r := &recorder{
		Options: options, config: config, client: client, keys: newLabelKeys(config.LabelKeys),
		redact: kinds.NewRedactor(newKey(options.Redact)), pods: map[string]*podState{}, nodes: map[string]*nodeState{},
		objects: map[string]bool{}, series: map[string]bool{}, counts: counts{Classes: map[string]bool{}},
	}
	if r.out, err = recording.NewWriter(out, r.description(r.config.From)); err != nil {
		return Progress{}, err
	}
	if err := r.windows(ctx); err != nil {
		return Progress{}, err
	}
	err = r.out.Close()
	return r.progress(r.config.To), err
}

// keyBytes is the length of a key of pseudonyms.
const keyBytes = 32

// newKey returns a random key of pseudonyms, nil if names are kept.
func newKey(redact bool) []byte {
	if !redact {
		return nil
	}
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	return key
}

// log writes a line.
func (r *recorder) log(line string) {
	if r.Log != nil {
		r.Log(line)
	}
}

// withoutText replaces texts of servers in recordings with pseudonyms.
const withoutText = "(the text is omitted, it may have names)"

// warned records warnings of the server.
func (r *recorder) warned(warnings promv1.Warnings) {
	for _, warning := range warnings {
		if r.Redact {
			warning = withoutText
		}
		if r.notes.add("data of the server", "it warned: "+warning) {
			r.log("the server warned: " + warning)
		}
	}
}

// description returns the description of the recording until a time.
func (r *recorder) description(until time.Time) recording.About {
	source := "Prometheus"
	if !r.Redact {
		source = r.client.String()
	}
	return recording.About{
		From: r.config.From, To: until, Step: int(r.config.Step.Seconds()), Redacted: r.Redact, Sources: []string{source},
		Missing: r.missing(), HasAutoscalers: r.series[scalerInfo],
	}
}

// progress returns the progress of the recording.
func (r *recorder) progress(until time.Time) Progress {
	return Progress{Until: until, Nodes: r.counts.Nodes, Pods: r.counts.Pods, Bytes: r.out.Size(), Missing: r.missing()}
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
		if err := errors.Join(r.out.SetAbout(r.description(to)), r.out.Flush()); err != nil {
			return err
		}
		if r.Progress != nil && r.counts.Pods+r.counts.Nodes > 0 { // a server without kube-state-metrics has neither
			r.Progress(r.progress(to))
		}
	}
	if r.counts.Pods == 0 && r.counts.Nodes == 0 {
		return fmt.Errorf("no data of %s and %s from %s to %s: check that kube-state-metrics is scraped, and the names of series and "+
			"labels", podInfo, nodeInfo, r.config.From.Format(time.RFC3339), r.config.To.Format(time.RFC3339))
	}
	return nil
}

// window records a window.
func (r *recorder) window(ctx context.Context, from, to time.Time, last bool) error {
	if err := r.findLabels(ctx, from, to); err != nil {
		return err
	}
	w := &window{
		labels: r.config.Labels, keys: r.keys, pods: map[string]*podState{}, nodes: map[string]*nodeState{},
		replicaSets: map[string]metav1.OwnerReference{}, objects: map[string]runtime.Object{},
	}
	if err := r.readObjects(ctx, w, from, to); err != nil {
		return err
	}
	if err := r.addObjects(w); err != nil {
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

// findLabels finds out whether the server has renamed the labels of kube-state-metrics or cAdvisor, as it does when a target has labels
// of the same names and honor_labels is not set. It looks for a series with each renamed label, since not all series have all labels.
func (r *recorder) findLabels(ctx context.Context, from, to time.Time) error {
	if r.hasLabels {
		return nil
	}
	found := false
	for _, name := range []string{podInfo, containerInfo, containerMemory} {
		labels := &r.config.Labels
		if name == containerMemory {
			labels = &r.config.UsageLabels
		}
		names := maps.Clone(*labels)
		if names == nil {
			names = map[string]string{}
		}
		for _, label := range []string{"", "namespace", "pod", "uid", "node", "container"} {
			renamed, matchers := "exported_"+label, []string{}
			if label != "" {
				matchers = append(matchers, renamed+`!=""`)
			}
			selector, _ := r.config.series(name, matchers...)
			query := func(d time.Duration) string {
				return fmt.Sprintf("topk(1, last_over_time(%s[%s]))", selector, promDuration(d))
			}
			err := r.queryEach(ctx, name, from, to, query, func(metric model.Metric, _ float64) {
				found = true
				if metric[model.LabelName(renamed)] != "" && names[label] == "" {
					names[label] = renamed
					r.log(fmt.Sprintf("%s has the label %s: using it in place of %s", name, renamed, label))
				}
				if label == "" && name == podInfo && metric["uid"] == "" && metric["exported_uid"] == "" && names["uid"] == "" {
					r.notes.add("UIDs of pods",
						"the series have no label uid: a pod that replaces one of the same name within a window is taken as the same")
				}
			})
			if err != nil {
				return err
			}
		}
		*labels = names
	}
	r.hasLabels = found
	return r.findClusters(ctx, from, to)
}

// findClusters warns if the server has nodes of several clusters, which a recording merges if they have the same name.
func (r *recorder) findClusters(ctx context.Context, from, to time.Time) error {
	selector, _ := r.config.series(nodeInfo)
	query := func(d time.Duration) string {
		return fmt.Sprintf("count by (cluster) (last_over_time(%s[%s]))", selector, promDuration(d))
	}
	clusters := map[string]bool{}
	err := r.queryEach(ctx, nodeInfo, from, to, query, func(metric model.Metric, _ float64) { clusters[string(metric["cluster"])] = true })
	if len(clusters) > 1 {
		name := slices.Sorted(maps.Keys(clusters))[0]
		if r.Redact {
			name = "(omitted)"
		}
		why := fmt.Sprintf("the server has %d values of the label cluster, such as %s: objects of the same name are merged; record one "+
			"cluster with --selector 'cluster=\"NAME\"'", len(clusters), name)
		if r.notes.add("which cluster objects are from", why) {
			r.log("warning: " + why)
		}
	}
	return err
}

// readObjects reads nodes, pods and what acts on requests from the series.
func (r *recorder) readObjects(ctx context.Context, w *window, from, to time.Time) error {
	for _, s := range slices.Concat(described, firstSeen) {
		if lists := s.name == podInfo || s.name == nodeInfo; !lists && len(w.pods) == 0 && len(w.nodes) == 0 {
			return nil
		}
		if s.aspect == firstTime && r.series[strings.TrimSuffix(s.name, "info")+"created"] {
			continue
		}
		err := r.queryEach(ctx, s.name, from, to,
			func(d time.Duration) string { return r.config.query(s, d) },
			func(metric model.Metric, value float64) { s.set(sample{w, metric, value}) })
		if err != nil {
			return err
		}
	}
	return nil
}

// queryEach runs a query for a window, or for parts of it, and calls set with each series. It ignores series that are omitted.
func (r *recorder) queryEach(
	ctx context.Context, name string, from, to time.Time, query func(time.Duration) string, set func(model.Metric, float64),
) error {
	if _, ok := r.config.series(name); !ok {
		return nil
	}
	return r.run(ctx, name, from, to, func(ctx context.Context, from, to time.Time) (promv1.Warnings, error) {
		text := query(max(to.Sub(from), r.config.Step))
		vector, warnings, err := r.client.Query(ctx, text, to, promv1.WithTimeout(r.config.Timeout))
		for _, sample := range vector {
			r.series[name] = true
			set(sample.Metric, float64(sample.Value))
		}
		return warnings, err
	})
}

// secondOf returns a time in seconds since the start of the recording, Never if it is unknown.
func (r *recorder) secondOf(at int64) int64 {
	if at == 0 {
		return recording.Never
	}
	return at - r.config.From.Unix()
}

// hash returns a hash of values.
func hash(values ...any) uint64 {
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(values)
	return h.Sum64()
}
