package fleet

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// absurdQuantities are quantities whose decoding or arithmetic takes hours.
var absurdQuantities = []string{
	`"1e-2147483647"`, `1e-2147483647`, `"1e2147483647"`, `"123456789e2147483647"`, `"0e2147483647"`, `"-1e2147483647"`,
}

// TestManagedClusterDecoding decodes a list as a client does. Amounts out of bounds are missing, which delays neither decisions
// nor expressions; everything else is decoded as in Open Cluster Management.
func TestManagedClusterDecoding(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Succeed(t, InstallHub(scheme))
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	s := hub("a", "b")
	s.SetPlacement(newPlacement(t, "p", "prioritizerPolicy: {configurations: [{name: ResourceAllocatableCPU}]}"))
	s.SetPlacement(newPlacement(t, "q", celPredicate(`quantity(managedCluster.status.allocatable.cpu).isGreaterThan(quantity("1"))`)))
	const cluster = `{"metadata":{"name":%q,"labels":{"set":"web"}},"spec":{"hubAcceptsClient":true},"status":{
		"conditions":[{"type":"Ready","status":"True"}],"version":{"kubernetes":"v1.37.1"},"clusterClaims":[{"name":"c","value":"v"}],
		"allocatable":{"cpu":%s,"memory":"1Gi","example.com/n":3},"capacity":{"cpu":%[2]s}}}`
	start := time.Now()
	for _, cpu := range absurdQuantities {
		text := fmt.Sprintf(`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedClusterList","items":[%s,%s]}`,
			fmt.Sprintf(cluster, "a", cpu), fmt.Sprintf(cluster, "b", `"4"`))
		object, _, err := decoder.Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", cpu, err)
		}
		list := object.DeepCopyObject().(*ManagedClusterList)
		for i := range list.Items {
			s.SetCluster(&list.Items[i].ManagedCluster)
		}
		if v := decideNow(t, s, "p"); clustersOf(v) != "a b" {
			t.Errorf("%s: chosen %q", cpu, clustersOf(v))
		}
		if v := decideNow(t, s, "q"); clustersOf(v) != "b" {
			t.Errorf("%s: chosen %q by an expression", cpu, clustersOf(v))
		}
		if got := clusterOf(&list.Items[0].ManagedCluster).Allocatable; got[resources.CPU] != decide.Missing ||
			got[resources.Memory] != 1<<30 {
			t.Errorf("%s: %v", cpu, got)
		}
		var want clusterv1.ManagedCluster
		must.Succeed(t, json.Unmarshal(fmt.Appendf(nil, cluster, "b", `"4"`), &want))
		if diff := cmp.Diff(want, list.Items[1].ManagedCluster); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %s", took)
	}
}

// FuzzManagedCluster decodes any text. Decoding must end, and a decoded object must survive encoding and decoding.
func FuzzManagedCluster(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a"},"status":{"allocatable":{"cpu":"1e-2147483647","memory":"1Gi"},"capacity":{"cpu":2}}}`))
	f.Add([]byte(`{"status":null}`))
	f.Add([]byte(`{"status":{"allocatable":{"cpu":[1]},"capacity":"x"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var got ManagedCluster
		if json.Unmarshal(text, &got) != nil {
			return
		}
		encoded, err := json.Marshal(got.ManagedCluster)
		must.Succeed(t, err)
		var again ManagedCluster
		must.Succeed(t, json.Unmarshal(encoded, &again))
		if encodedAgain, err := json.Marshal(again.ManagedCluster); err != nil || string(encodedAgain) != string(encoded) {
			t.Errorf("%s became %s, %v", encoded, encodedAgain, err)
		}
	})
}
