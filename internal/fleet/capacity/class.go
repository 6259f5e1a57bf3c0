package capacity

import (
	"encoding/json"
	"unique"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
)

// class is a NodeClass as JSON, so that equal classes of all clusters are one value.
type class = unique.Handle[string]

// classOf returns a NodeClass as a class.
func classOf(c *v1alpha1.NodeClass) class {
	text, _ := json.Marshal(c) // of strings
	return unique.Make(string(text))
}

// parseClass returns the NodeClass of a class.
func parseClass(c class) (out v1alpha1.NodeClass) {
	_ = json.Unmarshal([]byte(c.Value()), &out) // of classOf
	return out
}
