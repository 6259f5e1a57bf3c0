package record

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// Config is the configuration of a recording.
type Config struct {
	// Server is the server: its address, credentials and certificates. All series must match its Selector. RateWindow must contain at
	// least two samples of a container. The results of its queries for pods have the labels of UsageLabels for namespace and pod.
	Server metricprovider.Config
	// From and To are the first and the last time, in whole seconds.
	From time.Time
	To   time.Time
	// Step is the time between two samples of usage, at least 1 s and in whole seconds.
	Step time.Duration
	// Window is the time that is read and written at once, a multiple of Step. It bounds the memory.
	Window time.Duration
	// Series replaces names of series, by their names in kube-state-metrics and cAdvisor. An empty name omits the series.
	Series map[string]string
	// Labels replaces names of labels of kube-state-metrics, UsageLabels names of labels of cAdvisor.
	Labels      map[string]string
	UsageLabels map[string]string
	// LabelKeys are keys of labels of nodes and pods. They are needed for keys that cannot be derived from the names of Prometheus labels.
	LabelKeys []string
	// Timeout bounds a query.
	Timeout time.Duration
}

// The defaults of the configuration.
const (
	DefaultStep    = time.Minute
	DefaultWindow  = 2 * time.Hour
	DefaultTimeout = 2 * time.Minute
)

// complete sets the defaults.
func (c *Config) complete() {
	c.Step = cmp.Or(c.Step, DefaultStep)
	rateWindow := &c.Server.RateWindow.Duration
	*rateWindow = cmp.Or(*rateWindow, max(2*c.Step, 2*time.Minute))
	c.Window = cmp.Or(c.Window, DefaultWindow)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.From, c.To = c.From.UTC().Truncate(time.Second), c.To.UTC().Truncate(time.Second)
	if c.Step > 0 && c.Window > c.Step {
		c.Window = c.Window.Truncate(c.Step)
	}
}

var (
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	seriesName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
)

// validate returns an error that names the field. Call complete first.
func (c *Config) validate() error {
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"step", c.Step}, {"window", c.Window}, {"rateWindow", c.Server.RateWindow.Duration}} {
		if d.value < time.Second || d.value%time.Second != 0 {
			return fmt.Errorf("%s: invalid value %s: must be whole seconds, at least 1s", d.field, d.value)
		}
	}
	if c.Window < c.Step {
		return fmt.Errorf("window: invalid value %s: must be at least the step, %s", c.Window, c.Step)
	}
	if c.Timeout < time.Second {
		return fmt.Errorf("timeout: invalid value %s: must be at least 1s", c.Timeout)
	}
	if !c.To.After(c.From) {
		return fmt.Errorf("to: invalid value %s: must be after from, %s", c.To.Format(time.RFC3339), c.From.Format(time.RFC3339))
	}
	if span := c.To.Sub(c.From); c.Step > span {
		return fmt.Errorf("step: invalid value %s: must be at most the time to record, %s", c.Step, span)
	}
	if c.To.Sub(c.From)/c.Step >= recording.MaxSteps {
		return fmt.Errorf("step: invalid value %s: must be more than %s, so that there are at most %d steps from %s to %s", c.Step,
			c.To.Sub(c.From)/recording.MaxSteps, recording.MaxSteps, c.From.Format(time.RFC3339), c.To.Format(time.RFC3339))
	}
	return c.validateNames()
}

// validateNames returns an error if a name of a series or a label is invalid.
func (c *Config) validateNames() error {
	for _, name := range slices.Sorted(maps.Keys(c.Series)) {
		if !slices.Contains(SeriesNames(), name) {
			return fmt.Errorf("series: unknown name %q: must be one of %s", name, strings.Join(SeriesNames(), ", "))
		}
		if c.Series[name] == "" && (name == podInfo || name == nodeInfo) {
			return fmt.Errorf("series: %s: required: it lists the objects", name)
		}
		if other := c.Series[name]; other != "" && !seriesName.MatchString(other) {
			return fmt.Errorf("series: invalid name %q for %s: must be the name of a series", other, name)
		}
	}
	for field, labels := range map[string]map[string]string{"label": c.Labels, "usageLabel": c.UsageLabels} {
		known := usageLabels
		if field == "label" {
			known = labelNames()
		}
		for name, other := range labels {
			if !slices.Contains(known, name) {
				return fmt.Errorf(
					"%s: unknown name %q: must be one of %s%s",
					field,
					name,
					strings.Join(known, ", "),
					format.Suggestion(name, known),
				)
			}
			if !labelName.MatchString(name) || !labelName.MatchString(other) {
				return fmt.Errorf("%s: invalid value %s=%s: must be two names of labels, such as pod=exported_pod", field, name, other)
			}
		}
	}
	return nil
}

// series returns the selector of a series with matchers, and false if the series is omitted.
func (c *Config) series(name string, matchers ...string) (string, bool) {
	if other, replaced := c.Series[name]; replaced {
		name = other
	}
	if c.Server.Selector != "" {
		matchers = append(matchers, c.Server.Selector)
	}
	return name + "{" + strings.Join(matchers, ",") + "}", name != ""
}

// rename returns the names of labels in the server.
func rename(labels map[string]string, names ...string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = name
		if other := labels[name]; other != "" {
			out[i] = other
		}
	}
	return out
}
