package demo

import "slices"

// room is what a node has for pods, or what a pod takes of it: CPU in
// millicores, memory in bytes, and pods.
type room struct{ cpu, memory, pods int64 }

func (r room) minus(o room) room {
	return room{r.cpu - o.cpu, r.memory - o.memory, r.pods - o.pods}
}

// holds reports whether there is room for another one.
func (r room) holds(o room) bool {
	return o.cpu <= r.cpu && o.memory <= r.memory && o.pods <= r.pods
}

// machine is a node as the stand-in for an autoscaler reckons with it: one that
// there is, or one that boots.
type machine struct {
	name string
	free room
	// busy: it has pods, so that it stays.
	busy bool
}

// packing is what becomes of a number of wishes for room.
type packing struct {
	// more is how many machines are to be added, idle are the names of those that
	// have no pods, and are not wanted for anything.
	more int
	idle []string
	// homeless is how many wishes no machine can ever meet.
	homeless int
}

// pack puts each of the wishes on the first machine with room, those with pods
// first so that the others may go, and adds machines of one shape for the rest.
func pack(machines []machine, shape room, wishes []room) packing {
	machines = slices.Clone(machines)
	slices.SortStableFunc(machines, func(a, b machine) int {
		switch {
		case a.busy == b.busy:
			return 0
		case a.busy:
			return -1
		}
		return 1
	})
	wanted := make([]bool, len(machines))
	var out packing
	there := len(machines)
	for _, wish := range wishes {
		i := slices.IndexFunc(machines, func(m machine) bool { return m.free.holds(wish) })
		if i < 0 && !shape.holds(wish) {
			out.homeless++
			continue
		}
		if i < 0 {
			i = len(machines)
			machines, wanted = append(machines, machine{free: shape}), append(wanted, true)
		}
		machines[i].free = machines[i].free.minus(wish)
		wanted[i] = true
	}
	out.more = len(machines) - there
	for i, m := range machines[:there] {
		if !m.busy && !wanted[i] {
			out.idle = append(out.idle, m.name)
		}
	}
	return out
}
