package fleet

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// Decisions with an index that was made for other clusters, used for other decisions and then updated equal the
// decisions of the oracle, also when they are repeated.
func TestUpdatedIndexAgainstOracle(t *testing.T) {
	for range 10 {
		rapid.Check(t, func(t *rapid.T) {
			r := requests().Draw(t, "request")
			before := *r
			before.Fleet = rapid.SliceOfN(clusters(), len(r.Fleet), len(r.Fleet)).Draw(t, "previous fleet")
			before.Index = NewIndex(before.Fleet)
			Decide(&before)
			for _, i := range rapid.Permutation(Indexes(len(r.Fleet))).Draw(t, "order") {
				before.Index.Set(int(i), r.Fleet[i])
			}
			r.Index = before.Index
			for range 2 {
				compareWithOracle(t, r)
			}
		})
	}
}

// An index keeps a bounded number of columns, and of values that no cluster has any more.
func TestIndexIsBounded(t *testing.T) {
	const clusters = 10
	r := &Request{Members: Indexes(clusters), Number: All}
	for i := range clusters {
		r.Fleet = append(r.Fleet, &Cluster{Name: fmt.Sprint(i), Labels: map[string]string{"changing": "a"}})
	}
	r.Index = NewIndex(r.Fleet)
	for i := range 3 * maxColumns {
		r.Predicates = []Predicate{{Selector: Selector{
			Labels: []metav1.LabelSelectorRequirement{{Key: fmt.Sprint("label-", i), Operator: metav1.LabelSelectorOpDoesNotExist}},
			Claims: []metav1.LabelSelectorRequirement{{Key: fmt.Sprint("claim-", i), Operator: metav1.LabelSelectorOpDoesNotExist}},
		}}}
		if d := Decide(r); d.Matched != clusters {
			t.Fatalf("%d clusters match, want %d", d.Matched, clusters)
		}
		if n := len(r.Index.columns); n > maxColumns {
			t.Fatalf("%d columns, want at most %d", n, maxColumns)
		}
	}
	for i := range 1000 {
		value := fmt.Sprint("value-", i)
		r.Fleet[3] = &Cluster{Name: "3", Labels: map[string]string{"changing": value}}
		r.Index.Set(3, r.Fleet[3])
		r.Predicates = []Predicate{
			{
				Selector: Selector{
					Labels: []metav1.LabelSelectorRequirement{requirement("changing", metav1.LabelSelectorOpIn, []string{value})},
				},
			},
		}
		if d := Decide(r); d.Matched != 1 {
			t.Fatalf("%d clusters have %s, want 1", d.Matched, value)
		}
		if n := len(r.Index.columns[attribute{key: "changing"}].numbers); n > 2*clusters+17 {
			t.Fatalf("%d values of %d clusters", n, clusters)
		}
	}
}
