package whatif

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// scenario is the content of the file in --scenario: a generated cluster.
type scenario struct {
	// Generate has the keys of --generate.
	Generate map[string]json.RawMessage `json:"generate"`
	// Usage is a value of --usage, and is ignored if the flag is set.
	Usage string `json:"usage"`
	// Limits are the limits of pods.
	Limits *generate.Limits `json:"limits"`
	// Metrics is how the load is measured.
	Metrics result.Metrics `json:"metrics"`
}

// readScenario sets the options that a scenario file has. Errors in it name the file.
func (o *whatIfOptions) readScenario(usageIsSet bool) error {
	raw, err := os.ReadFile(o.scenario)
	if err != nil {
		return err
	}
	if err := o.setScenario(raw, usageIsSet); err != nil {
		return fmt.Errorf("%s: %w", o.scenario, err)
	}
	return nil
}

// setScenario sets the options that the content of a scenario file has. Unknown fields are errors.
func (o *whatIfOptions) setScenario(raw []byte, usageIsSet bool) error {
	s := scenario{Metrics: replay.DefaultMetrics}
	if err := resources.DecodeStrict(raw, &s); err != nil {
		return err
	}
	if err := replay.ValidateMetrics(s.Metrics); err != nil {
		return fmt.Errorf("metrics.%w", err)
	}
	if s.Limits != nil {
		if err := s.Limits.Validate(); err != nil {
			return fmt.Errorf("limits.%w", err)
		}
		o.Source.Limits = *s.Limits
	}
	o.Metrics = s.Metrics
	if s.Usage != "" && !usageIsSet {
		if _, err := generate.ParseUsage(s.Usage); err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		o.Source.Usage = s.Usage
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(s.Generate)) {
		value := strings.NewReplacer(`"`, "", "[", "", "]", "", ",", "+").Replace(string(s.Generate[key]))
		pairs = append(pairs, key+"="+value)
	}
	o.Source.Generate = strings.Join(pairs, ",")
	if _, err := generate.ParseGenerated(o.Source.Generate); err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	return nil
}
