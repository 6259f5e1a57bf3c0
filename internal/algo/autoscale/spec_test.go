package autoscale

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got, err := Parse([]string{"shape=16x64,max=100,boot=90,cost=0.80", "name=gpu,shape=8x32,gpus=4,gpu-model=T4,label=pool=gpu,min=1,max=5,cost=3,interval=30,utilization=0.4"})
	if err != nil {
		t.Fatal(err)
	}
	want := Spec{
		Groups: []GroupSpec{
			{Name: "group-1", Shape: Shape{Cores: 16, GiB: 64}, Max: 100, Boot: 90, Cost: 0.8},
			{Name: "gpu", Shape: Shape{Cores: 8, GiB: 32, GPUs: 4}, GPUModel: "T4", Label: "pool=gpu", Min: 1, Max: 5, Boot: 120, Cost: 3},
		},
		Loop: Loop{Interval: 30, Idle: 600, AfterAdd: 600, Utilization: 0.4, Priced: true},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	again, err := Parse(got.Texts())
	if diff := gocmp.Diff(want, again); err != nil || diff != "" {
		t.Errorf("%v, %v in %q", err, diff, got.Texts())
	}
	bare, err := Parse([]string{""})
	if err != nil || bare.Groups[0].Max != 1000 || bare.Groups[0].Cost != 1 || bare.Loop.Priced || bare.Loop.Interval != 10 {
		t.Errorf("%+v, %v", bare, err)
	}
}

func TestParseErrors(t *testing.T) {
	for texts, want := range map[string]string{
		"shape=16":                    `shape: found "16", allowed: CORESxGIB`,
		"shape=0x4":                   `shape: found "0x4", allowed: CORESxGIB`,
		"max=-1":                      `max: found "-1", allowed: a whole number from 0 to 100000`,
		"min=5,max=4":                 `max: found "4", allowed: at least min, 5`,
		"boot=99999999999999999999":   `boot: found "99999999999999999999", allowed: a whole number from 0 to 86400`,
		"cost=NaN":                    `cost: found "NaN", allowed: a number from 0 to 1e+06`,
		"cost=-1":                     `cost: found "-1", allowed: a number from 0 to 1e+06`,
		"interval=0":                  `interval: found "0", allowed: a whole number from 1 to 86400`,
		"utilization=2":               `utilization: found "2", allowed: a number from 0 to 1`,
		"threshold=0.5":               `threshold: found "0.5", allowed: the keys `,
		"name=<script>":               `name: found "<script>", allowed: up to 40 of a-z`,
		"label=pool":                  `label: found "pool", allowed: KEY=VALUE`,
		"gpus=2":                      `gpus: found "2", allowed: devices of a group with a shape`,
		"shape=1x1,gpu-model=T4":      `gpu-model: found "T4", allowed: the value of a label, with gpus`,
		"name=a|name=a":               `name: found "a", allowed: a name that no other group has`,
		"name=group-2|":               `name: found "group-2", allowed: a name that no other group has`,
		"cost=1|max=4":                `cost: found "", allowed: the cost of all groups or of none`,
		"interval=10|interval=10":     `interval: found "10", allowed: the key in one of the groups`,
		"shape":                       `found "shape", allowed: key=value`,
		strings.Repeat("max=1|", 101): `found 102 groups, allowed: 100`,
	} {
		if _, err := Parse(strings.Split(texts, "|")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", texts, err, want)
		}
	}
}

// Whatever a text is, it is refused, or read the same again from what it is in full.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "shape=16x64,max=100,boot=120,cost=0.80", "cost=-0", "label=a/b=c,min=1", "shape=1x1,gpus=1,gpu-model=T4,idle=0"} {
		f.Add(text, "name=other")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		s, err := Parse([]string{a, b})
		if err != nil {
			return
		}
		again, err := Parse(s.Texts())
		if diff := gocmp.Diff(s, again); err != nil || diff != "" {
			t.Fatalf("%v, %s in %q", err, diff, s.Texts())
		}
	})
}
