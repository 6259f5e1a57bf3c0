package signalfx

import (
	"strings"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
)

// escaper puts a backslash before what would end a quoted value.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// query returns the words that the series of a metric are searched with:
//
//	sf_metric:"cpu.utilization" AND host:* AND (kubernetes_cluster:"prod")
//
// Names are in quotes, so that nothing in them is taken for a word of the query.
func query(c *metricprovider.Config, metric string) string {
	terms := `sf_metric:"` + escaper.Replace(metric) + `" AND ` + c.HostDimension + `:*`
	if c.Filter != "" {
		terms += " AND (" + c.Filter + ")"
	}
	return terms
}
