package slack

// dampedCount is a number that increases at once and decreases only after a lower number was
// wanted for a cool-down. The zero value is ready to use.
type dampedCount struct {
	current  int64
	decrease cooldown
}

// Set sets the number and ends a cool-down.
func (c *dampedCount) Set(n int64) { *c = dampedCount{current: n} }

// Next returns the number at a time in seconds, given the wanted number. After coolDown seconds it
// decreases to the number that is wanted then.
func (c *dampedCount) Next(wanted, now, coolDown int64) int64 {
	if wanted >= c.current || c.decrease.isOver(now, coolDown) {
		c.Set(wanted)
	}
	return c.current
}

// CoolDownEnd returns the time in seconds at which the number decreases if a lower number is wanted until
// then, 0 if the last wanted number was not lower.
func (c *dampedCount) CoolDownEnd(coolDown int64) int64 {
	if !c.decrease.started {
		return 0
	}
	return c.decrease.since + coolDown
}

// cooldown measures for how long a decrease has been wanted without interruption.
type cooldown struct {
	since   int64
	started bool
}

// isOver reports whether the cool-down of the given number of seconds is over, and starts it if
// necessary.
func (c *cooldown) isOver(now, seconds int64) bool {
	if !c.started {
		c.started, c.since = true, now
	}
	return now-c.since >= seconds
}
