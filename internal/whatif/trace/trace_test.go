package trace

import (
	"slices"
	"strings"
	"testing"
)

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"openb-pod-0001": true, "c_1": true, "j_3/task_Nzg3ODAw==/0": true, "A.b+c": true, strings.Repeat("a", 253): true,
		"": false, strings.Repeat("a", 254): false, "<script>": false, "a b": false, "a\n": false, "a\x00": false, "é": false,
		"[": false, "@": false, "{": false, "`": false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

func names(c *Cluster) (list []string) {
	for i := range c.Pods {
		list = append(list, c.Pods[i].Name)
	}
	return list
}

func TestSortRebasePack(t *testing.T) {
	c := &Cluster{Pods: []Pod{
		{Name: "b", Arrival: 9, Start: 10, End: Never},
		{Name: "a", Arrival: 7, Start: 7, End: 12},
		{Name: "c", Arrival: 9, Start: 9, End: 9},
	}}
	c.Sort()
	if got := names(c); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the order is %v", got)
	}
	c.Rebase()
	a, b := c.Pods[0], c.Pods[1]
	if a.Arrival != 0 || a.End != 5 || a.Runs() != 5 || b.Arrival != 2 || b.Start != 3 || b.End != Never || b.Runs() != Never {
		t.Errorf("%+v", c.Pods)
	}
	c.Pack(2)
	a, b = c.Pods[0], c.Pods[1]
	if last := c.Pods[2]; a.Arrival != 0 || b.Arrival != 0 || last.Arrival != 1 || a.End != Never || len(c.Assumed) != 1 {
		t.Errorf("%+v, assumed %v", c.Pods, c.Assumed)
	}
	new(Cluster).Rebase()
}

func TestUsedFrom(t *testing.T) {
	p := Pod{Request: Amounts{CPU: 100}}
	if p.UsedFrom() != p.Request {
		t.Errorf("%+v", p.UsedFrom())
	}
	p = Pod{Nominal: Amounts{CPU: 100}}
	if p.UsedFrom() != p.Nominal {
		t.Errorf("%+v", p.UsedFrom())
	}
}
