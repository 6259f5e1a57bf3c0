package expression

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
)

// hostileExpressions are expressions that take hours or more memory than a machine has
// unless their compilation and each of their calls is bounded.
var hostileExpressions = map[string]string{
	"replace": `"` + strings.Repeat("a", 1000) + `"` + strings.Repeat(`.replace("a", "`+strings.Repeat("a", 1000)+`")`, 4) + `.size() > 0`,
	"replace of a label": `managedCluster.metadata.name` +
		strings.Repeat(`.replace("a", "`+strings.Repeat("a", 500)+`")`, 9) + `.size() > 0`,
	"join":                   `[` + strings.Repeat(`"a",`, 500) + `"a"].join("` + strings.Repeat("b", 5000) + `").size() > 0`,
	"precision":              `"%.999999999f".format([1.5]).size() > 0`,
	"format of nested lists": nested(11, "[a, a, a, a, a, a, a, a]", `"%s".format([x]).size() > 0`),
	"strings are doubled":    nested(11, "a + a + a + a", "x.size() > 0"),
	"lists are doubled":      nested(11, "a + a + a + a + a + a + a + a", "x.size() > 0"),
	"equal nested lists":     nested(11, "[a, a, a, a, a, a, a, a]", "x == x"),
	"unequal nested lists":   nested(11, "[a, a, a, a, a, a, a, a]", "x != x"),
	"nested list in a list":  nested(11, "[a, a, a, a, a, a, a, a]", "x in [x, x]"),
	"nested list as a key":   nested(11, "[a, a, a, a, a, a, a, a]", "managedCluster[dyn(x)] == 1"),
	"nested maps":            nested(11, `{"a": a, "b": a, "c": a, "d": a, "e": a, "f": a}`, "x == x"),
	"sets of nested lists":   nested(11, "[a, a, a, a, a, a, a, a]", "sets.contains(x, x)"),
	"sets":                   `[` + strings.Repeat("1,", 3000) + `1].all(i, sets.contains([` + strings.Repeat("2,", 900) + `1], [1, 2]))`,
	"loops":                  strings.Repeat("[1,2,3,4,5,6,7,8,9,10].all(a, ", 11) + "true" + strings.Repeat(")", 11),
	"filters":                strings.Repeat("[1,2,3,4,5,6,7,8,9,10].filter(a, ", 11) + "true" + strings.Repeat(").size() > 0", 11),
	"size of a string in loops": `"` + strings.Repeat("a", 7000) +
		`".split("").all(a, "abc".split("").all(b, managedCluster.status.text.size() > 0))`,
	"comparison in loops":       `managedCluster.status.text.split("").all(a, managedCluster.status.text < managedCluster.status.text + "b")`,
	"repeated pattern":          `managedCluster.status.text.matches("((a{30}){30}){30}")`,
	"repeated pattern in loops": `managedCluster.status.text.split("").all(a, managedCluster.status.text.matches("^(.{900})*b$"))`,
	"computed pattern":          `managedCluster.status.text.split("").all(a, managedCluster.status.text.find("(.{900})*" + a) != "")`,
	"time zones":                `managedCluster.status.text.split("").all(a, timestamp("2026-01-01T00:00:00Z").getHours("America/New_York") >= 0)`,
	"JSON":                      `managedCluster.status.text.split("").all(a, ("[" + managedCluster.status.text.replace("a", "1,") + "1]").parseJSON() != 1)`,
	"quantity":                  `quantity("1e2147483647").isGreaterThan(quantity("1"))`,
	"small quantity":            `quantity("1e-2147483000").isGreaterThan(quantity("1"))`,
	"whole numbers":             `quantity("1e999999999").asInteger() > 1`,
	// Checking the types of these expressions takes hours.
	"map keys":      nested(40, "{a: a}", "x.size() > 0"),
	"optional":      "optional.of(1)" + strings.Repeat(".optMap(a, a)", 60) + ".hasValue()",
	"optional flat": "optional.of(1)" + strings.Repeat(".optFlatMap(a, optional.of(a))", 60) + ".hasValue()",
	"nested types":  nested(200, "[a, a]", "x.size() > 0"),
	"map literals":  strings.Repeat("{'a':", 200) + "1" + strings.Repeat("}", 200) + ".size() > 0",
	"macros":        "true" + strings.Repeat(" && [1].map(a, [[[a]]]).map(a, [[[a]]]).size() > 0", 150),
	"parentheses":   strings.Repeat("(", 8000),
	"negations":     strings.Repeat("!", 8001) + "1",
	"long":          strings.Repeat("true && ", 100_000) + "true",
	// CEL reads the text again for each match.
	"findAll": `"` + strings.Repeat("a", 1000) + `".replace("a", "` +
		strings.Repeat("a", 8) + `").findAll("a.*b|a").size() > 0`,
	"findAll of an annotation":        `managedCluster.status.text.findAll("a.*b|a").size() > 0`,
	"findAll with a computed pattern": `managedCluster.status.text.findAll("a.*" + managedCluster.metadata.name + "b|a").size() > 0`,
	"findAll in loops": `"` + strings.Repeat("a", 1000) + `".split("").all(x, ("` + strings.Repeat("a", 1000) +
		`" + x).findAll("a.*b|a").size() > 0)`,
	"indexOf": `("` + strings.Repeat("a", 1000) + `".replace("a", "` + strings.Repeat("a", 1000) + `")).indexOf("` +
		strings.Repeat("a", 1000) + `".replace("a", "` + strings.Repeat("a", 500) + `") + "b") > 0`,
	"indexOf in an annotation": `managedCluster.status.text.indexOf(managedCluster.status.text + "b") > 0`,
	"lastIndexOf in loops": `managedCluster.status.text.split("").all(a, managedCluster.status.text.lastIndexOf("` +
		strings.Repeat("a", 1000) + `b" + a) < 0)`,
	"indexOf in loops": `"` + strings.Repeat("a", 1000) + `".split("").all(x, managedCluster.status.text.indexOf("` +
		strings.Repeat("a", 2000) + `b" + x) < 0)`,
	"replace of an annotation": `managedCluster.status.text.replace("", managedCluster.status.text).size() > 0`,
	"constructors in loops": `"` + strings.Repeat("a", 3000) +
		`".split("").all(x, [managedCluster.status.text.findAll("a")].size() > 0)`,
	"empty lists are doubled":    nested(11, "[]"+strings.Repeat(" + []", 7), "x.size() > 0"),
	"maps are doubled":           nested(11, `{"a": a, "b": a, "c": a, "d": a, "e": a, "f": a}`, "[x].min() == x"),
	"maps with computed keys":    nested(11, `{"a": a, string(a.size()): a}`, "dyn([[x]]).isSorted()"),
	"lists of lists have no sum": nested(11, "[a, a, a, a, a, a, a, a]", "dyn([x]).sum() == x"),
	"optional lists are doubled": nested(11, "[optional.of(a), optional.of(a), optional.of(a), optional.of(a)]", "[x] == [x]"),
	"optional elements":          nested(11, "[?optional.of(a), ?optional.of(a), ?optional.of(a), ?optional.of(a)]", "[x] == [x]"),
	"maps in loops": `"` + strings.Repeat("a", 5000) + `".split("").map(a, "` + strings.Repeat("a", 5000) +
		`".split("")).all(b, {"a": b, "b": b}.size() > 0)`,
	"dyn in loops": `"` + strings.Repeat("a", 3000) +
		`".split("").all(x, dyn(managedCluster.status.text.substring(0, 40000).split("")).size() > 0)`,
}

// nested returns an expression that replaces a list of one value n times by a
// combination of a, and then evaluates a condition on each x of the last list.
func nested(n int, combination, condition string) string {
	return "[[1]]" + strings.Repeat(".map(a, "+combination+")", n) + ".all(x, " + condition + ")"
}

// hostileCluster returns a cluster with a long text.
func hostileCluster() ref.Val {
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]string{"zone": "1"}},
		"status":   map[string]any{"text": strings.Repeat("a", 100_000)},
	})
}

// Any hostile expression takes little CPU time and memory to compile, and to evaluate
// for a cluster, and ends in an error.
func TestHostileExpressions(t *testing.T) {
	const maxDuration, maxMemory = time.Second, 300 << 20
	cluster := hostileCluster()
	for name, text := range hostileExpressions {
		t.Run(name, func(t *testing.T) {
			allocated := func() uint64 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.TotalAlloc
			}
			start, before := measure.CPU(), allocated()
			e, err := Compile("field", text)
			compiled := measure.CPU() - start
			var o Outcome
			if err == nil {
				o = e.evaluate(cluster)
				_, _, err = e.program.Eval(map[string]any{clusterVariable: cluster})
			}
			took, memory := measure.CPU()-start, allocated()-before
			t.Logf("compiled in %s, evaluated twice in %s, %d KiB: %v, %+v", compiled, took-compiled, memory>>10, err, o)
			if took > 2*maxDuration || memory > 2*maxMemory || err == nil || o.Matches {
				t.Errorf("compiled in %s, evaluated twice in %s, %d MiB: %v, %+v", compiled, took-compiled, memory>>20, err, o)
			}
		})
	}
}

// FuzzExpression compiles and evaluates any expression: it must take a short time.
func FuzzExpression(f *testing.F) {
	for _, text := range hostileExpressions {
		f.Add(text)
	}
	f.Add(`managedCluster.metadata.labels["zone"] == "1"`)
	f.Add(`managedCluster.scores("usage").exists(s, s.name == "cpu" && s.value > 39)`)
	cluster := hostileCluster()
	f.Fuzz(func(t *testing.T, text string) {
		start := measure.CPU() // not the time that other processes take
		if e, err := Compile("field", text); err == nil {
			e.evaluate(cluster)
		}
		if took := measure.CPU() - start; took > 10*time.Second {
			t.Errorf("took %s: %s", took, text)
		}
	})
}
