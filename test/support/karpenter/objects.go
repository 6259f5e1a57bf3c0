package karpenter

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// nodeClass is a node class with a boot time.
const nodeClass = `apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: general}
spec: {nodeRegistrationDelay: %s}
`

// nodePool is a node pool from which Karpenter removes empty nodes at once.
const nodePool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    metadata: {labels: {pool: general}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: general}
      expireAfter: Never
      requirements:
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.kwok.sh/instance-cpu, operator: In, values: [%q]}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 1s, budgets: [{nodes: 100%%}]}
`

// Pool returns the objects of a node pool with nodes of this many CPUs and a boot time in whole seconds.
// The nodes have the label pool=general.
func Pool(cpu string, bootTime time.Duration) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, text := range []string{fmt.Sprintf(nodeClass, bootTime.Truncate(time.Second)), fmt.Sprintf(nodePool, cpu)} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}

// instanceType is a file with one instance type.
const instanceType = `[{
  "name": "general", "architecture": "amd64", "operatingSystems": ["linux"],
  "resources": {"cpu": %q, "memory": %q, "pods": "110"},
  "offerings": [{"Price": 1, "Requirements": [
    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}
  ]}]
}]
`

// InstanceTypes returns the content of a file with one instance type. Karpenter subtracts an overhead of
// 100m CPU and 10Mi memory.
func InstanceTypes(cpu, memory string) []byte { return fmt.Appendf(nil, instanceType, cpu, memory) }
