package record

import "testing"

func TestResourceName(t *testing.T) {
	for name, want := range map[string]string{
		"cpu": "cpu", "memory": "memory", "pods": "pods", "ephemeral_storage": "ephemeral-storage", "hugepages_2Mi": "hugepages-2Mi",
		"nvidia_com_gpu": "nvidia.com/gpu", "example_org_fast_disk": "example.org/fast-disk", "strange": "strange",
	} {
		if got := resourceName(name); string(got) != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestLabelKeys(t *testing.T) {
	k := newLabelKeys([]string{"example.com/costCenter"})
	for name, want := range map[string]string{
		"topology_kubernetes_io_zone": "topology.kubernetes.io/zone", "app": "app", "pod_template_hash": "pod-template-hash",
		"example_com_cost_center": "example.com/costCenter", "eks_amazonaws_com_capacity_type": "eks.amazonaws.com/capacityType",
		"some_thing": "some_thing",
	} {
		if got := k.restore(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if len(k.doubtful) != 1 || !k.doubtful["some_thing"] {
		t.Errorf("doubtful: %v", k.doubtful)
	}
}
