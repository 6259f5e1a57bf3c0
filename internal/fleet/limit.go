package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// limit has the amounts that the workloads of placements may request in a cluster, and the percentage that the placements of one namespace
// may have of them and of the free capacity, 0 for the default. No replicas are within it if err is set.
type limit struct {
	text    string
	amounts v1.ResourceList
	share   int64
	err     error
}

// shareKey is the key of the percentage in the annotation.
const shareKey = "namespaceShare"

// limitOf returns the limit in annotation capacityv1alpha1.AnnotationLimit of a cluster, nil if it has none.
func limitOf(object *clusterv1.ManagedCluster) *limit {
	text, given := object.Annotations[capacityv1alpha1.AnnotationLimit]
	if !given {
		return nil
	}
	amounts, share, err := parseLimit(text)
	return &limit{text, amounts, share, err}
}

// equals reports whether two limits, nil for none, have the same text.
func (l *limit) equals(other *limit) bool {
	return l == other || l != nil && other != nil && l.text == other.text
}

// parseLimit returns the amounts and the percentage in a text. The error names the resource.
func parseLimit(text string) (amounts v1.ResourceList, share int64, err error) {
	var raw map[v1.ResourceName]json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, 0, fmt.Errorf(`must be an object such as {"cpu": "100"}: %w`, err)
	}
	if len(raw) == 0 {
		return nil, 0, errors.New("must have an amount")
	}
	amounts = v1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		value := strings.Trim(string(raw[name]), `" `)
		if name == shareKey {
			number, isPercentage := strings.CutSuffix(value, "%")
			if share, err = strconv.ParseInt(number, 10, 64); err != nil || !isPercentage || share < 1 || share > 100 {
				return nil, 0, fmt.Errorf("%s: invalid value %s: must be from 1%% to 100%%", name, value)
			}
			continue
		}
		quantity, err := resources.ParseQuantity(value)
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("%s: %w", name, err)
		case quantity.Sign() < 0:
			return nil, 0, fmt.Errorf("%s: invalid value %s: must be at least 0", name, quantity.String())
		case resources.NewResource(name).Index() == resources.Extended && !strings.ContainsAny(string(name), "/-"):
			return nil, 0, fmt.Errorf("%s: must be cpu, memory, ephemeral-storage, pods, %s, or the name of an extended resource", name,
				shareKey)
		}
		amounts[name] = quantity
	}
	return amounts, share, nil
}
