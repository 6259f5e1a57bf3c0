package scaling

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestParse(t *testing.T) {
	got, err := Parse([]string{
		"shape=16x64,max=100,boot=90,cost=0.80",
		"name=gpu,shape=8x32,gpus=4,gpu-model=T4,label=pool=gpu,min=1,max=5,cost=3,interval=30,utilization=0.4",
	})
	must.Succeed(t, err)
	want := Spec{
		Groups: []GroupSpec{
			{Name: "group-1", Shape: generate.NodeShape{Cores: 16, GiB: 64}, Max: 100, Boot: 90, Cost: 0.8},
			{
				Name: "gpu", Shape: generate.NodeShape{Cores: 8, GiB: 32, GPUs: 4}, GPUModel: "T4", Label: "pool=gpu",
				Min: 1, Max: 5, Boot: 120, Cost: 3,
			},
		},
		Loop:     autoscaler.Loop{Interval: 30, Idle: 600, AfterAdd: 600, Utilization: 0.4},
		IsPriced: true,
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	second, err := Parse(got.Texts())
	if diff := gocmp.Diff(want, second); err != nil || diff != "" {
		t.Errorf("%v, %v in %q", err, diff, got.Texts())
	}
	bare, err := Parse([]string{""})
	if err != nil || bare.Groups[0].Max != 1000 || bare.Groups[0].Cost != 1 || bare.IsPriced || bare.Loop.Interval != 10 {
		t.Errorf("%+v, %v", bare, err)
	}
}

func TestParseErrors(t *testing.T) {
	for texts, want := range map[string]string{
		"shape=16":                    `shape: invalid value "16": must be CORESxGIB`,
		"max=-1":                      `max: invalid value -1: must be from 0 to 100000`,
		"min=5,max=4":                 `max: invalid value 4: must be at least min, 5`,
		"interval=0":                  `interval: invalid value 0: must be from 1 to 86400`,
		"threshold=0.5":               `unknown field "threshold"`,
		"adoptOthers=true":            `adoptOthers: json: cannot unmarshal string`,
		"name=<script>":               `name: invalid value "<script>": must be up to 40 characters a-z`,
		"label=pool":                  `label: invalid value "pool": must be a label KEY=VALUE`,
		"gpus=2":                      `gpus: invalid value 2: must be 0 without a shape`,
		"shape=1x1x2,gpus=2":          `gpus: invalid value 2: must be 0 without a shape, or with a shape that has GPUs`,
		"shape=1x1,gpu-model=T4":      `gpu-model: invalid value "T4": must be a label value, together with gpus`,
		"name=a|name=a":               `name: invalid value "a": must be unique among the groups`,
		"name=group-2|":               `name: invalid value "group-2": must be unique among the groups`,
		"cost=1|max=4":                `cost: must be set for all groups or for none`,
		"interval=10|interval=10":     `interval: invalid value 10: must be set in one of the groups only`,
		strings.Repeat("max=1|", 101): `found 102 groups: must be at most 100`,
	} {
		if _, err := Parse(strings.Split(texts, "|")); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", texts, err, want)
		}
	}
}

// FuzzParse verifies that a text is rejected, or that parsing the complete specification returns an
// equal specification.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "shape=16x64,max=100,boot=120,cost=0.80", "cost=-0", "label=a/b=c,min=1",
		"shape=1x1,gpus=1,gpu-model=T4,idle=0",
	} {
		f.Add(text, "name=other")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		s, err := Parse([]string{a, b})
		if err != nil {
			return
		}
		second, err := Parse(s.Texts())
		if diff := gocmp.Diff(s, second); err != nil || diff != "" {
			t.Fatalf("%v, %s in %q", err, diff, s.Texts())
		}
	})
}

// A node that is in no group costs as much as the nodes of a group of its size or, if there is none, in proportion to the first group:
// 16 of its 4 CPUs, or 128 of its 16 GiB. Without costs each node costs 1.
func TestInputCost(t *testing.T) {
	for name, tc := range map[string]struct {
		specs, label     string
		cores, gibibytes int64
		want             float64
	}{
		"in the group":           {"shape=4x16,label=pool=a,cost=0.5", "a", 16, 64, 0.5},
		"as large as a group":    {"shape=4x16,label=pool=a,cost=0.5;shape=8x32,name=b,cost=1.1", "", 8, 32, 1.1},
		"four times the CPU":     {"shape=4x16,cost=0.5", "", 16, 32, 2},
		"eight times the memory": {"shape=4x16,cost=0.5", "", 4, 128, 4},
		"without costs":          {"shape=4x16", "", 16, 64, 1},
	} {
		spec, err := Parse(strings.Split(tc.specs, ";"))
		must.Succeed(t, err)
		node := generate.NewNode("n", resources.Amounts{CPU: tc.cores * 1000, Memory: tc.gibibytes << 30}).Object
		node.Labels = map[string]string{"pool": tc.label}
		groups, err := newGroups(spec, []recording.Node{{Object: node}})
		must.Succeed(t, err)
		if got := spec.inputCost(groups, groupOf(groups, node), node); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
