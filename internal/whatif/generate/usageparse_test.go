package generate

import (
	"slices"
	"strings"
	"testing"
)

func TestParseUsage(t *testing.T) {
	const cpu, memory = "max=4,between=0.5,together=0,hold=5", "max=2,between=0.97,together=0.01,hold=60"
	for text, want := range map[string][2]string{
		"beta":                 {"beta:mean=0.4," + cpu + ",cv=0.6", "beta:mean=0.49," + memory + ",cv=0.56"},
		"beta:mean=0.2,cv=0.5": {"beta:mean=0.2," + cpu + ",cv=0.5", "beta:mean=0.2," + memory + ",cv=0.5"},
		// Missing keys have their defaults.
		"memory=constant:mean=1": {"beta:mean=0.4," + cpu + ",cv=0.6", "constant:mean=1," + memory},
		// The workload of 0.8 limits the default of between to 1 - 0.8, and the default of together for memory to 1 - 0.8 - 0.2.
		"cpu=diurnal:workload=0.8,workload-phases=0.5;memory=beta:workload=0.8": {
			"diurnal:mean=0.4,max=4,between=0.19999999999999996,together=0,hold=5,cv=0.6,amplitude=0.5,period=1440,phases=0.1," +
				"workload=0.8,workload-phases=0.5",
			"beta:mean=0.49,max=2,between=0.19999999999999996,together=0,hold=60,cv=0.56,workload=0.8",
		},
		// The default of together is at most 1 - between.
		" memory=constant ; cpu=bursts:between=0.75": {
			"bursts:mean=0.4,max=4,between=0.75,together=0.25,hold=10,cv=0.8,share=0.05", "constant:mean=0.49," + memory,
		},
		// Bursts of a high mean need no max: their high level is 1.2 + 1.05 x 0.8 x 1.2 / sqrt(0.0475 + 0.00333) = 5.671.
		"bursts:mean=120%": {
			"bursts:mean=1.2,max=6,between=0,together=0.8,hold=10,cv=0.8,share=0.05",
			"bursts:mean=1.2,max=6,between=0,together=0.8,hold=10,cv=0.8,share=0.05",
		},
	} {
		s, err := ParseUsage(text)
		got := [2]string{s[usageCPU].String(), s[usageMemory].String()}
		if err != nil || got != want {
			t.Errorf("%s: %v, error %v, want %v", text, got, err, want)
		}
	}
}

func TestParseUsageErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                              `usage of cpu: shape: invalid value "": must be one of constant, beta, bursts, diurnal`,
		"beta:mean=-1":                  `usage of cpu: mean: invalid value -1: must be from 0 to 10`,
		"beta:tail=2":                   `usage of cpu: unknown field "tail"`,
		"beta:share=0.5":                `usage of cpu: unknown field "share" of beta`,
		"constant:cv=0.5":               `usage of cpu: unknown field "cv" of constant`,
		"beta:kind=bursts":              `usage of cpu: unknown field "kind" of beta`,
		"beta:between=0.7,together=0.4": `usage of cpu: beta: between: invalid value 0.7: must be at most 1 in total with together, 0.4`,
		"beta:workload=0.3,between=0.5,together=0.3": `usage of cpu: beta: workload: invalid value 0.3: must be at most 1 in total with ` +
			`between, 0.5, and together, 0.3`,
		"bursts,mean=0.7":    `usage of cpu: shape: invalid value "bursts,mean=0.7": must be one of constant, beta, bursts, diurnal`,
		"memory=beta:mean=3": `usage of memory: beta: mean: invalid value 3: must be at most max, 2`,
		"beta;beta":          `usage: invalid value "beta": must be one shape for both resources, or cpu=SHAPE;memory=SHAPE`,
		"beta;cpu=beta":      `usage: invalid value "cpu=beta": must be one shape for both resources, or cpu=SHAPE;memory=SHAPE`,
		// mean 0.5 of 1: values of 0 or max have a deviation of 0.5, equal to the mean
		"cpu=beta:mean=0.5,max=1,cv=1.2": `usage of cpu: beta: cv: invalid value 1.2: must be less than 1, at which all values are 0 or max`,
		// gap = 0.5 cv / sqrt(0.1875 + 0.00333) = 1.1446 cv; low = 0.5 - 0.35 gap is 0 at cv 1.248
		"cpu=bursts:share=0.25,mean=0.5,cv=2":           `usage of cpu: bursts: cv: invalid value 2: must be at most 1.248 for a share of 0.25`,
		"cpu=bursts:share=0.25,mean=0.5,cv=0.6,max=0.6": `usage of cpu: bursts: max: invalid value 0.6: must be at least the high level, 1.084`,
		// the sine alone has 0.8/sqrt(2) = 0.566
		"diurnal:cv=0.5,amplitude=0.8": `usage of cpu: diurnal: cv: invalid value 0.5: must be at least 0.5657, the coefficient of ` +
			`variation of the amplitude 0.8 alone`,
		"diurnal:mean=3,cv=1": `usage of cpu: diurnal: mean: invalid value 3: must be at most 2.667`,
	} {
		if _, err := ParseUsage(text); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
	if _, err := ParseUsage(strings.Repeat("beta;", 10_000)); err == nil {
		t.Error("a text with many shapes is accepted")
	}
}

func TestValidateLimits(t *testing.T) {
	for want, limits := range map[string]Limits{
		"": DefaultLimits, "unlimited: invalid value 1.1: must be a number from 0 to 1": {2, 2, 1.1},
		"cpu: invalid value 0.5: must be a number from 1 to 100":  {0.5, 2, 0},
		"memory: invalid value 0: must be a number from 1 to 100": {2, 0, 0.5},
	} {
		if err := limits.Validate(); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%+v: %v, want %q", limits, err, want)
		}
	}
	if err := (Limits{Unlimited: 1}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestForPod(t *testing.T) {
	// 1.5 x 1001 = 1501.5, rounded up
	if cpu, memory := (Limits{CPU: 1.5, Memory: 1}).forPod(1, 1, 1001, 4096); cpu != 1502 || memory != 4096 {
		t.Errorf("limits %d and %d", cpu, memory)
	}
	if cpu, memory := (Limits{CPU: 2, Memory: 2}).forPod(1, 1, 0, 1<<62); cpu != 0 || memory != 1<<63-1 {
		t.Errorf("limits %d and %d", cpu, memory)
	}
	// An amount that float64 cannot represent is not reduced.
	if cpu, _ := (Limits{CPU: 1, Memory: 1}).forPod(1, 1, 1<<53+1, 1); cpu < 1<<53+1 {
		t.Errorf("limit %d", cpu)
	}
	few, more, count := Limits{2, 2, 0.1}, Limits{4, 4, 0.3}, 0
	for pod := range uint64(10_000) {
		a, _ := few.forPod(9, pod, 100, 100)
		b, _ := more.forPod(9, pod, 100, 100)
		if a == 0 && b != 0 {
			t.Fatalf("pod %d has limits with a share of 0.3 without, but none with 0.1", pod)
		}
		if b == 0 {
			count++
		}
	}
	if count < 2800 || count > 3200 {
		t.Errorf("%d of 10000 pods without limits, want 3000", count)
	}
}

// FuzzParseUsage verifies that the defaults of every kind are valid, that newUsageModel accepts every parsed specification, and that its values
// are in range.
func FuzzParseUsage(f *testing.F) {
	for _, kind := range UsageKinds {
		f.Add(kind)
		f.Add(kind + ":mean=0.3")
	}
	f.Add("cpu=bursts:mean=0.3,share=0.02;memory=beta:mean=0.6,cv=0.01,max=700")
	f.Add("cpu=diurnal:workload-phases=1,workload=0.5,between=0.2;memory=beta:workload=1")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseUsage(text)
		if err != nil && slices.Contains(UsageKinds, text) {
			t.Fatal(err)
		} else if err != nil {
			return
		}
		m, err := newUsageModel(s, 1)
		if err != nil {
			t.Fatalf("%q is parsed but rejected by New: %v", text, err)
		}
		for step := range int64(20) {
			cpu, memory := m.At(1, 2, step*step*step)
			if !(cpu >= 0 && cpu <= maxMultiple*1.01) || !(memory >= 0 && memory <= maxMultiple*1.01) {
				t.Fatalf("%q: %v, %v", text, cpu, memory)
			}
		}
		if second, err := ParseUsage(s.String()); err != nil || second != s {
			t.Errorf("%s is parsed as %+v, %v", s, second, err)
		}
	})
}
