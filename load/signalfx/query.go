package signalfx

import (
	"strings"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
)

// escaper escapes the characters that would end a quoted value.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// query returns the search query for the series of a metric:
//
//	sf_metric:"cpu.utilization" AND host:* AND (kubernetes_cluster:"prod")
//
// The name of the metric is quoted, so that it cannot contain operators.
func query(c *metricprovider.Config, metric string) string {
	terms := `sf_metric:"` + escaper.Replace(metric) + `" AND ` + c.HostDimension + `:*`
	if c.Filter != "" {
		terms += " AND (" + c.Filter + ")"
	}
	return terms
}
