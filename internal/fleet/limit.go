package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// limit has the amounts that the workloads of placements may request in a cluster. No replicas are within it if err is set.
type limit struct {
	text    string
	amounts v1.ResourceList
	err     error
}

// limitOf returns the limit in annotation capacityv1alpha1.AnnotationLimit of a cluster, nil if it has none.
func limitOf(object *clusterv1.ManagedCluster) *limit {
	text, given := object.Annotations[capacityv1alpha1.AnnotationLimit]
	if !given {
		return nil
	}
	amounts, err := parseLimit(text)
	return &limit{text, amounts, err}
}

// equals reports whether two limits, nil for none, have the same text.
func (l *limit) equals(other *limit) bool {
	return l == other || l != nil && other != nil && l.text == other.text
}

// parseLimit returns the amounts in a text. The error names the resource.
func parseLimit(text string) (v1.ResourceList, error) {
	var raw map[v1.ResourceName]json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		return nil, errors.New("must have an amount")
	}
	amounts := v1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		quantity, err := resources.ParseQuantity(strings.Trim(string(raw[name]), `" `))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case quantity.Sign() < 0:
			return nil, fmt.Errorf("%s: found %s: must be at least 0", name, quantity.String())
		case resources.NewResource(name).Index() == resources.Extended && !strings.ContainsAny(string(name), "/-"):
			return nil, fmt.Errorf("%s: must be cpu, memory, ephemeral-storage, pods, or the name of an extended resource", name)
		}
		amounts[name] = quantity
	}
	return amounts, nil
}
