package fairqueue

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pushAt adds values such as "0a1", whose level is the first digit and whose group is the letter.
func pushAt(l *Levels[byte, string], values string) {
	for value := range strings.FieldsSeq(values) {
		l.Push(int(value[0]-'0'), value[1], value[1:])
	}
}

func TestLevels(t *testing.T) {
	for name, tc := range map[string]struct{ values, want string }{
		// The fourth is from level 2 (1 + 4/4 % 2), the eighth would be from level 1.
		"levels":               {"2a1 2a2 1a3 1a4 0a5 0a6", "a5 a6 a3 a1 a4 a2"},
		"groups take turns":    {"0a1 0a2 0b1 0b2 0a3", "a1 b1 a2 b2 a3"},
		"more urgent":          {"1a1 1a2 1a3 0a3", "a3 a1 a2"},
		"less urgent":          {"0a1 0a2 2a1", "a1 a2"},
		"one of four":          {"0a1 0a2 0a3 0a4 0a5 1b1", "a1 a2 a3 b1 a4 a5"},
		"the same twice":       {"1a1 1a1 1a2", "a1 a2"},
		"to the highest level": {"2a1 1a1 0a1 2a2", "a1 a2"},
	} {
		l := NewLevels[byte, string](3)
		pushAt(l, tc.values)
		var got []string
		for value, _, ok := l.Pop(); ok; value, _, ok = l.Pop() {
			got = append(got, value)
		}
		if text := strings.Join(got, " "); text != tc.want || l.Len() != 0 {
			t.Errorf("%s: %s, want %s, length %d", name, text, tc.want, l.Len())
		}
	}
}

// A value that is taken and added again is taken only once, even if an old entry is left in the queue of another level.
func TestLevelsAgain(t *testing.T) {
	l := NewLevels[byte, string](2)
	for range 5 {
		pushAt(l, "1a1 0a1")
		if value, level, ok := l.Pop(); !ok || value != "a1" || level != 0 || l.Len() != 0 {
			t.Fatalf("%q, %d, %t, %d remain", value, level, ok, l.Len())
		}
	}
	if n := len(l.queues[1].values['a']); n != 1 {
		t.Errorf("%d entries are left, want 1", n)
	}
}

// The model is a map from values to levels. While there are values of the most urgent level, no two less urgent values are
// taken in succession.
func TestLevelsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const levels = 3
		l := NewLevels[int, string](levels)
		model := map[string]int{}
		lower := 0 // values of other levels that were taken since the last urgent one
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if level := rapid.IntRange(-3, levels-1).Draw(t, "level"); level >= 0 {
				group := rapid.IntRange(0, 3).Draw(t, "group")
				value := fmt.Sprint(group, "-", rapid.IntRange(0, 9).Draw(t, "value"))
				l.Push(level, group, value)
				if current, queued := model[value]; !queued || level < current {
					model[value] = level
				}
			} else {
				urgent := false
				for _, level := range model {
					urgent = urgent || level == 0
				}
				value, level, ok := l.Pop()
				if want, queued := model[value]; ok != (len(model) > 0) || ok && (!queued || want != level) {
					t.Fatalf("%q of level %d, %t: model %v", value, level, ok, model)
				}
				delete(model, value)
				if lower++; !urgent || level == 0 {
					lower = 0
				}
				if lower > 1 {
					t.Fatalf("%d values of less urgent levels were taken in succession", lower)
				}
			}
			if l.Len() != len(model) {
				t.Fatalf("length %d, want %d", l.Len(), len(model))
			}
		}
	})
}
