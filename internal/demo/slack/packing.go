package slack

import "slices"

// amounts are the resources of a node or the requests of a pod: CPU in millicores, memory in bytes,
// and the number of pods.
type amounts struct{ cpu, memory, pods int64 }

// minus returns the difference of two amounts.
func (a amounts) minus(b amounts) amounts {
	return amounts{a.cpu - b.cpu, a.memory - b.memory, a.pods - b.pods}
}

// fits reports whether the requests fit the free amounts.
func (a amounts) fits(free amounts) bool {
	return a.cpu <= free.cpu && a.memory <= free.memory && a.pods <= free.pods
}

// machine is an existing or booting node.
type machine struct {
	name string
	free amounts
	// hasPods means that the node cannot be removed.
	hasPods bool
}

// packing is the result of pack.
type packing struct {
	// added is the number of machines to add.
	added int
	// idle are the names of the machines without pods and without requests packed on them.
	idle []string
	// unschedulable is the number of requests that fit no machine of the shape.
	unschedulable int
}

// pack assigns each of the requests to the first machine that it fits, machines with pods first so
// that the others become idle, and adds machines of one shape for the rest.
func pack(machines []machine, shape amounts, requests []amounts) packing {
	machines = slices.Clone(machines)
	slices.SortStableFunc(machines, func(a, b machine) int {
		switch {
		case a.hasPods == b.hasPods:
			return 0
		case a.hasPods:
			return -1
		}
		return 1
	})
	isUsed := make([]bool, len(machines))
	var out packing
	existing := len(machines)
	for _, request := range requests {
		i := slices.IndexFunc(machines, func(m machine) bool { return request.fits(m.free) })
		if i < 0 && !request.fits(shape) {
			out.unschedulable++
			continue
		}
		if i < 0 {
			i = len(machines)
			machines, isUsed = append(machines, machine{free: shape}), append(isUsed, true)
		}
		machines[i].free = machines[i].free.minus(request)
		isUsed[i] = true
	}
	out.added = len(machines) - existing
	for i, m := range machines[:existing] {
		if !m.hasPods && !isUsed[i] {
			out.idle = append(out.idle, m.name)
		}
	}
	return out
}
