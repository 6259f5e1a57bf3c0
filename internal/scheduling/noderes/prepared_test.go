package noderes

import "testing"

// The number of an input is unique, and an announced number is in the other array than the newest.
func TestInputNumbers(t *testing.T) {
	a, b, c := new(int), new(int), new(int)
	p := NewPrepared[int](NewCache(), 1)
	if got := p.Input(nil).number; got != 1 {
		t.Errorf("without input: %d, want 1", got)
	}
	for _, step := range []struct {
		announced, used *int
		want            uint64
	}{
		{a, nil, 1}, // not used yet
		{nil, a, 2},
		{b, a, 2},
		{c, a, 2}, // b was never used; 3 and 5 are in the other array than 2
		{nil, c, 5},
		{nil, nil, 6}, // the input expired
		{nil, c, 7},   // the clock was set back
		{nil, c, 7},
	} {
		if step.announced != nil {
			newest := p.newestOrNone().number
			if number := p.announce(step.announced).number; number%2 == newest%2 {
				t.Errorf("announced %d while %d is used", number, newest)
			}
		}
		if got := p.Input(step.used).number; got != step.want {
			t.Errorf("%+v: got %d", step, got)
		}
	}
}
