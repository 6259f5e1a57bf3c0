package whatif

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// scenario is the content of the file in --scenario: a generated cluster.
type scenario struct {
	// Generate has the keys of --generate.
	Generate map[string]json.RawMessage `json:"generate"`
	// Usage has values of --usage, and is ignored if the flag is set.
	Usage []string `json:"usage"`
	// Limits are the limits of pods; each entry is a scenario of the result.
	Limits []recording.Limits `json:"limits"`
	// Metrics is how the load is measured.
	Metrics result.Metrics `json:"metrics"`
}

// readScenario sets the options that a scenario file has. Unknown fields are errors.
func (o *whatIfOptions) readScenario(usageIsSet bool) error {
	raw, err := os.ReadFile(o.scenario)
	if err != nil {
		return err
	}
	s := scenario{Metrics: replay.DefaultMetrics}
	if err := yaml.UnmarshalStrict(raw, &s); err != nil {
		return err
	}
	if err := replay.ValidateMetrics(s.Metrics); err != nil {
		return fmt.Errorf("metrics.%w", err)
	}
	for i, limits := range s.Limits {
		if err := limits.Validate(); err != nil {
			return fmt.Errorf("limits[%d].%w", i, err)
		}
	}
	o.Metrics = s.Metrics
	if len(s.Limits) > 0 {
		o.Limits = s.Limits
	}
	if len(s.Usage) > 0 && !usageIsSet {
		o.usage = s.Usage
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(s.Generate)) {
		value := strings.NewReplacer(`"`, "", "[", "", "]", "", ",", "+").Replace(string(s.Generate[key]))
		pairs = append(pairs, key+"="+value)
	}
	o.Source.Generate = strings.Join(pairs, ",")
	return nil
}
