package metricsserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// sourceOf returns a source whose response is a body, at noon. TestMetricsServer in test/integration reads a real
// metrics-server.
func sourceOf(t testing.TB, body io.Reader) *PodSource {
	t.Helper()
	source, err := NewPods(func(context.Context) (io.ReadCloser, error) { return io.NopCloser(body), nil })
	must.Succeed(t, err)
	source.now = func() time.Time { return noon }
	return source
}

// item returns the metrics of a pod in namespace default: the text of each container's usage.
func item(name string, at time.Time, window string, usage ...string) string {
	var containers []string
	for _, u := range usage {
		containers = append(containers, `{"name":"c","usage":{`+u+`}}`)
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"default","creationTimestamp":"2026-03-01T12:00:00Z","labels":{"app":"a"}},
		"timestamp":%q,"window":%q,"containers":[%s]}`, name, at.Format(time.RFC3339), window, strings.Join(containers, ","))
}

func listOf(items ...string) string {
	return `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[` + strings.Join(items, ",") + `]}`
}

func pod(name string, cpu, memory float64) load.PodUsage {
	return load.PodUsage{Namespace: "default", Name: name, CPU: cpu, Memory: memory}
}

func TestReadPods(t *testing.T) {
	const quarter = `"cpu":"250m","memory":"1Gi"`
	for name, tc := range map[string]struct {
		body string
		want load.PodReading
		err  string
	}{
		"a pod": {listOf(item("a", noon, "15s", quarter)), load.PodReading{Pods: []load.PodUsage{pod("a", 250, 1<<30)}}, ""},
		// 250 + 1500.000001 millicores, 1 GiB + 500,000 KiB
		"containers are summed": {
			listOf(item("a", noon, "15s", quarter, `"cpu":"1500000001n","memory":"500000Ki"`)),
			load.PodReading{Pods: []load.PodUsage{pod("a", 1750.000001, 1<<30+500_000*1024)}},
			"",
		},
		"sorted, each pod once": {
			listOf(item("b", noon, "15s", quarter), item("a", noon, "15s", quarter), item("b", noon, "15s", `"cpu":"9","memory":"9"`)),
			load.PodReading{Pods: []load.PodUsage{pod("a", 250, 1<<30), pod("b", 250, 1<<30)}},
			"",
		},
		"an idle pod": {
			listOf(item("a", noon, "15s", `"cpu":"0","memory":"0"`)), load.PodReading{Pods: []load.PodUsage{pod("a", 0, 0)}}, "",
		},
		"invalid and old pods are rejected": {
			listOf(item("a", noon, "15s", quarter), item("negative", noon, "15s", `"cpu":"-1","memory":"1"`),
				item("no memory", noon, "15s", `"cpu":"1"`), item("no container", noon, "15s"),
				item("half", noon, "15s", quarter, `"memory":"1"`), item("", noon, "15s", quarter),
				item("huge", noon, "15s", `"cpu":"1e2147483647","memory":"1"`),
				item("tiny", noon, "15s", `"cpu":"1e-2147483647","memory":"1"`),
				item("old", noon.Add(-3*time.Minute-time.Second), "15s", quarter), item("future", noon.Add(2*time.Minute), "15s", quarter)),
			load.PodReading{Pods: []load.PodUsage{pod("a", 250, 1<<30)}, Rejected: 9},
			"",
		},
		"items first": {
			`{"items":[` + item("a", noon, "15s", quarter) + `],"metadata":{"continue":""}}`,
			load.PodReading{Pods: []load.PodUsage{pod("a", 250, 1<<30)}},
			"",
		},
		"no pod":     {listOf(), load.PodReading{}, "no pod has fresh metrics: 0 listed, 0 of them invalid or older than 3m0s"},
		"none fresh": {listOf(item("old", noon.Add(-time.Hour), "15s", quarter)), load.PodReading{}, "1 listed, 1 of them"},
		"no list":    {`{"kind":"Status"}`, load.PodReading{}, "list of pod metrics: no field items"},
		"an array":   {`[]`, load.PodReading{}, "list of pod metrics: json: cannot unmarshal array"},
		"no array":   {`{"items":{}}`, load.PodReading{}, "list of pod metrics: json: cannot unmarshal object"},
		"truncated":  {strings.TrimSuffix(listOf(item("a", noon, "15s", quarter)), "]}"), load.PodReading{}, "list of pod metrics: "},
		"empty":      {"", load.PodReading{}, "list of pod metrics: unexpected end of JSON input"},
		"a number":   {listOf("7"), load.PodReading{}, "list of pod metrics: json: cannot unmarshal number"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sourceOf(t, strings.NewReader(tc.body)).ReadPods(t.Context())
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || got.Pods != nil {
					t.Errorf("%v with %d pods, want %s", err, len(got.Pods), tc.err)
				}
				return
			}
			must.Succeed(t, err)
			tc.want.Source, tc.want.Time, tc.want.Window = "KubernetesMetricsServer", noon, 15*time.Second
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTimeAndWindow checks that a reading has the newest time and the longest window of its pods.
func TestTimeAndWindow(t *testing.T) {
	const usage = `"cpu":"1","memory":"1"`
	got, err := sourceOf(t, strings.NewReader(listOf(item("a", noon.Add(-90*time.Second), "20s", usage),
		item("b", noon.Add(-30*time.Second), "10s", usage), item("old", noon.Add(-time.Hour), "60s", usage)))).ReadPods(t.Context())
	if err != nil || !got.Time.Equal(noon.Add(-30*time.Second)) || got.Window != 20*time.Second {
		t.Errorf("%s over %s, %v; want 11:59:30 over 20s", got.Time, got.Window, err)
	}
}

// endless is a response that repeats a text without end.
type endless struct {
	text string
	at   int
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	e.read += n
	return n, nil
}

// TestBounds checks the bounds of a list.
func TestBounds(t *testing.T) {
	const one = `{"metadata":{"name":"a","namespace":"b"},"timestamp":"2026-03-01T12:00:00Z","containers":[]}`
	body := &endless{text: one + "," + strings.Repeat(" ", 1<<20)}
	for want, in := range map[string]io.Reader{
		"list has more than 200000 pods":  strings.NewReader(listOf(slices.Repeat([]string{one}, load.MaxPods+1)...)),
		"response is larger than 256 MiB": io.MultiReader(strings.NewReader(`{"items":[`), body),
	} {
		_, err := sourceOf(t, in).ReadPods(t.Context())
		if load.ReasonOf(err) != load.TooLarge || !strings.Contains(err.Error(), want) || body.read > 300<<20 {
			t.Errorf("%v after %d bytes, want %s", err, body.read, want)
		}
	}
}

// TestPodErrors checks that errors of the API server have a reason and a likely cause. TestErrors has all of them.
func TestPodErrors(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "metrics.k8s.io", Resource: "pods"}, "", errors.New("no"))
	source, err := NewPods(func(context.Context) (io.ReadCloser, error) { return nil, forbidden })
	must.Succeed(t, err)
	_, err = source.ReadPods(t.Context())
	if load.ReasonOf(err) != load.Denied || !strings.Contains(err.Error(), "list of pods in the group metrics.k8s.io") {
		t.Errorf("%v (%s)", err, load.ReasonOf(err))
	}
	if _, err := NewPods(nil); err == nil {
		t.Error("no error without access to a cluster")
	}
}

// FuzzReadPods checks that any response gives an error or a valid reading.
func FuzzReadPods(f *testing.F) {
	f.Add(listOf(item("a", noon, "15s", `"cpu":"250m","memory":"1Gi"`)))
	f.Add(listOf(item("a", noon, "-1s", `"cpu":"1e9999","memory":"-1"`), item("a", noon.Add(time.Hour), "9999h", `"cpu":""`)))
	f.Add(`{"items":null}`)
	f.Add(`{"items":[{"timestamp":"x"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		reading, err := sourceOf(t, strings.NewReader(text)).ReadPods(t.Context())
		if err != nil {
			if err.Error() == "" || reading.Pods != nil {
				t.Errorf("error %q with %d pods", err, len(reading.Pods))
			}
			return
		}
		if reading.Time.After(noon.Add(load.MaxAhead)) || reading.Window < 0 {
			t.Errorf("at %s over %s", reading.Time, reading.Window)
		}
		seen := map[[2]string]bool{}
		for _, usage := range reading.Pods {
			key := [2]string{usage.Namespace, usage.Name}
			if usage.Namespace == "" || usage.Name == "" || !usage.Valid() || seen[key] {
				t.Errorf("%+v, seen: %t", usage, seen[key])
			}
			seen[key] = true
		}
	})
}
