package fairqueue

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// push adds values such as "a1", whose group is the first letter.
func push(q *queue[byte, string], values string) {
	for value := range strings.FieldsSeq(values) {
		q.Push(value[0], value)
	}
}

// pop removes n values.
func pop(q *queue[byte, string], n int) string {
	var got []string
	for range n {
		value, _ := q.Pop()
		got = append(got, value)
	}
	return strings.Join(got, " ")
}

func TestQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		first string
		pops  int
		then  string
		want  string
	}{
		"one group keeps its order":  {"a1 a2 a3", 0, "", "a1 a2 a3"},
		"groups take turns":          {"a1 a2 a3 b1 a4 c1 b2", 0, "", "a1 b1 c1 a2 b2 a3 a4"},
		"a group that was empty":     {"a1 a2 b1", 3, "b2 a3", "b2 a3"},
		"a new group waits one turn": {"a1 a2 a3", 1, "b1", "a2 b1 a3"},
	} {
		t.Run(name, func(t *testing.T) {
			var q queue[byte, string]
			push(&q, tc.first)
			pop(&q, tc.pops)
			push(&q, tc.then)
			if got := pop(&q, q.Len()); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if value, ok := q.Pop(); ok || value != "" || q.Len() != 0 {
				t.Errorf("an empty queue returned %q, length %d", value, q.Len())
			}
		})
	}
}

// A value of another group is the second one after 4,000 of one group.
func TestQueueAfterFlood(t *testing.T) {
	var q queue[string, int]
	for i := range 4000 {
		q.Push("flood", i)
	}
	q.Push("other", -1)
	first, _ := q.Pop()
	second, _ := q.Pop()
	if first != 0 || second != -1 || q.Len() != 3999 {
		t.Errorf("%d, %d, %d remain", first, second, q.Len())
	}
}

// A value is taken after at most as many values as there are groups, times its place in its
// group. The model is a list of lists.
func TestQueueIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue[int, string]
		model := map[int][]string{} // by group
		waits := map[string]int{}   // how many values were taken since the value was the first of its group
		n := 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if group := rapid.IntRange(-3, 4).Draw(t, "group"); group >= 0 {
				n++
				value := fmt.Sprint(group, "-", n)
				q.Push(group, value)
				model[group] = append(model[group], value)
				continue
			}
			value, ok := q.Pop()
			if !ok {
				if len(model) != 0 {
					t.Fatal("the queue is empty, the model is not")
				}
				continue
			}
			var group int
			if _, err := fmt.Sscanf(value, "%d-", &group); err != nil {
				t.Fatal(err)
			}
			if model[group][0] != value {
				t.Fatalf("%s is taken before %s", value, model[group][0])
			}
			if model[group] = model[group][1:]; len(model[group]) == 0 {
				delete(model, group)
			}
			for _, values := range model {
				if waits[values[0]]++; waits[values[0]] > 5 {
					t.Fatalf("%s has waited for %d values, of 5 groups", values[0], waits[values[0]])
				}
			}
		}
	})
}
