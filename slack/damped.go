package slack

// coolDown is the number of seconds for which a value remains held after a lower value was wanted.
const coolDown = 600

// damped is a value that increases at once, and decreases to the highest value that was wanted in the last coolDown
// seconds. The zero value holds the zero value of T, and is ready to use.
type damped[T any] struct {
	// candidates are the values that may be held, in descending order: at most one for each Next of the last coolDown
	// seconds. The first is held.
	candidates []candidate[T]
}

// candidate is a value, and the time in seconds since which no higher value was wanted.
type candidate[T any] struct {
	value T
	since int64
}

// Current returns the value that is held.
func (d *damped[T]) Current() (current T) {
	if len(d.candidates) > 0 {
		current = d.candidates[0].value
	}
	return current
}

// Set sets the value and ends a cool-down.
func (d *damped[T]) Set(value T) { d.candidates = []candidate[T]{{value: value}} }

// Next returns the value that is held at a time in seconds, given the wanted value, and the time at which it
// decreases if no higher value is wanted until then, 0 if it is the wanted value. exceeds reports whether a value
// may be held in place of a lower one.
func (d *damped[T]) Next(wanted T, now int64, exceeds func(held, wanted T) bool) (current T, coolDownEnd int64) {
	since, n := now, len(d.candidates)
	for ; n > 0 && !exceeds(d.candidates[n-1].value, wanted); n-- {
		since = d.candidates[n-1].since
	}
	d.candidates = append(d.candidates[:n], candidate[T]{wanted, since})
	for len(d.candidates) > 1 && (now-d.candidates[1].since >= coolDown || !exceeds(d.candidates[0].value, wanted)) {
		d.candidates = d.candidates[1:]
	}
	if len(d.candidates) > 1 {
		coolDownEnd = d.candidates[1].since + coolDown
	}
	return d.Current(), coolDownEnd
}

// isMore reports whether a held number is higher than the wanted number.
func isMore(held, wanted int64) bool { return held > wanted }
