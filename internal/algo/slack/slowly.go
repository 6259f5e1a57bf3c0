package slack

// Slowly is a number that rises at once and falls only when less has been wanted
// for a while.
type Slowly struct {
	held      int64
	lessSince int64
	waiting   bool
}

// Hold makes it go on from a number.
func (s *Slowly) Hold(n int64) { *s = Slowly{held: n} }

// Next returns the number for a time in seconds, given the one that is wanted.
// What it falls to is what is wanted when coolDown seconds are over.
func (s *Slowly) Next(wanted, now, coolDown int64) int64 {
	if wanted >= s.held {
		s.Hold(wanted)
		return wanted
	}
	if !s.waiting {
		s.waiting, s.lessSince = true, now
	}
	if now-s.lessSince >= coolDown {
		s.Hold(wanted)
	}
	return s.held
}
