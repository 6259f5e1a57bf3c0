package fleet

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

func TestAmountsOf(t *testing.T) {
	const none = decide.Missing
	for name, tc := range map[string]struct {
		list        string
		cpu, memory int64
	}{
		"no resources":     {`{}`, none, none},
		"fractional cores": {`{cpu: "3920m", memory: 16Gi}`, 3920, 16 << 30},
		// Rounded up as in Kubernetes: 0.5m is 1m.
		"less than the unit": {`{cpu: 500u, memory: 500m}`, 1, 1},
		"zero":               {`{cpu: "0", memory: "0"}`, 0, 0},
		"memory only":        {`{memory: 1k}`, none, 1000},
		"negative":           {`{cpu: "-1", memory: -1Gi}`, none, none},
		// (2^63 - 1) / 1000 = 9223372036854775.807 cores is the largest amount whose
		// millicores fit int64; 8E is 8 x 10^18 < 2^63 = 9.22 x 10^18 < 10E.
		"highest that are believed": {`{cpu: "100000000", memory: 4Ei}`, 100_000_000_000, 1 << 62},
		"higher":                    {`{cpu: "100000001", memory: "4611686018427387905"}`, decide.Missing, decide.Missing},
		"too large for int64":       {`{cpu: "9223372036854776", memory: 10E}`, decide.Missing, decide.Missing},
		// resource.Quantity stores these as big decimals.
		"too large for int64 in cores": {`{cpu: "99999999999999999999", memory: 99999E}`, decide.Missing, decide.Missing},
	} {
		t.Run(name, func(t *testing.T) {
			got := amountsOf(new(decide.Cluster), "capacity", *read[clusterv1.ResourceList](t, tc.list))
			if got[resources.CPU] != tc.cpu || got[resources.Memory] != tc.memory {
				t.Errorf("%v, want %d and %d", got, tc.cpu, tc.memory)
			}
		})
	}
}

func TestClusterOf(t *testing.T) {
	got := clusterOf(read[clusterv1.ManagedCluster](t, `
metadata: {name: a, labels: {zone: "1"}}
spec:
  hubAcceptsClient: true
  taints:
  - {key: k, value: v, effect: NoSelect, timeAdded: "2026-11-21T05:44:46Z"}
  - {key: p, effect: PreferNoSelect, timeAdded: null}
  - {key: new, effect: NoSelectIfNew, timeAdded: null}
  - {key: u, effect: Unknown, timeAdded: null}
status:
  conditions: []
  allocatable: {cpu: "1"}
  clusterClaims: [{name: platform, value: AWS}, {name: region, value: x}]
`))
	want := &decide.Cluster{
		Name: "a", Labels: map[string]string{"zone": "1"}, Claims: map[string]string{"platform": "AWS", "region": "x"},
		Taints: []clusterv1.Taint{
			{Key: "k", Value: "v", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.Unix(1_795_239_886, 0)},
			{Key: "p", Effect: clusterv1.TaintEffectPreferNoSelect},
			{Key: "new", Effect: clusterv1.TaintEffectNoSelectIfNew},
			// An unknown effect excludes the cluster as NoSelect does.
			{Key: "u", Effect: "Unknown"},
		},
		Allocatable: decide.Amounts{1000, decide.Missing}, Capacity: decide.Amounts{decide.Missing, decide.Missing},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestChangedFields(t *testing.T) {
	base := func() *decide.Cluster {
		return &decide.Cluster{
			Name:        "a",
			Labels:      map[string]string{"a": "1"},
			Claims:      map[string]string{"c": "1"},
			Allocatable: decide.Amounts{1, 2},
			Capacity:    decide.Amounts{3, 4},
		}
	}
	for name, tc := range map[string]struct {
		change func(*decide.Cluster)
		want   fieldMask
	}{
		"no change":   {func(*decide.Cluster) {}, 0},
		"label":       {func(c *decide.Cluster) { c.Labels = map[string]string{"a": "2"} }, labelFields},
		"claim":       {func(c *decide.Cluster) { c.Claims = nil }, labelFields},
		"ignored":     {func(c *decide.Cluster) { c.Ignored = []string{"status.capacity.cpu"} }, amountFields},
		"taint":       {func(c *decide.Cluster) { c.Taints = []clusterv1.Taint{{Key: "k"}} }, taintFields},
		"allocatable": {func(c *decide.Cluster) { c.Allocatable[resources.CPU] = 9 }, amountFields},
		"capacity":    {func(c *decide.Cluster) { c.Capacity[resources.Memory] = 9 }, amountFields},
	} {
		other := base()
		tc.change(other)
		if got := changedFields(base(), other); got != tc.want {
			t.Errorf("%s: %b, want %b", name, got, tc.want)
		}
	}
}

// An amount that is not credible is ignored. Placements that use amounts have a warning, which
// goes with the amount.
func TestIgnoredAmounts(t *testing.T) {
	s := hub("b")
	s.SetPlacement(newPlacement(t, "p", "prioritizerPolicy: {configurations: [{name: ResourceAllocatableCPU}]}"))
	s.SetPlacement(newPlacement(t, "q", "{}"))
	for _, tc := range []struct{ cpu, warning string }{
		{"4", ""},
		{"100000001", "ManagedCluster a: status.allocatable.cpu, status.capacity.cpu: ignored, must be at least 0"},
		{"-1", "ManagedCluster a: status.allocatable.cpu, status.capacity.cpu: ignored"},
		{"8", ""},
	} {
		affected := s.SetCluster(withAmounts(managed("a", "set=web"), tc.cpu, "1Gi"))
		if !slices.Contains(affected, keyOf("p")) && tc.cpu != "-1" {
			t.Errorf("%s affects %v", tc.cpu, affected)
		}
		r := decideNow(t, s, "p")
		warnings := strings.Join(r.Warnings, "; ")
		if (warnings == "") != (tc.warning == "") || !strings.HasPrefix(warnings, tc.warning) ||
			!strings.HasSuffix(r.Conditions[0].Message, warnings) && warnings != "" {
			t.Errorf("%s: %q, want %q; %s", tc.cpu, warnings, tc.warning, r.Conditions[0].Message)
		}
		if r := decideNow(t, s, "q"); len(r.Warnings) > 0 {
			t.Errorf("%s: %q for a placement that uses no amounts", tc.cpu, r.Warnings)
		}
	}
}
