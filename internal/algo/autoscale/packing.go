package autoscale

// Pod is something that needs a node.
type Pod struct {
	// Needs of the pod; one slot is among them.
	Needs Amounts
	// Class is a number that pods share of which the site says the same, whatever
	// else is on a node. It is 0 for a pod of which that cannot be said.
	Class int
	// Placeholder: it comes after all pods that are none.
	Placeholder bool
}

// Site knows what amounts do not say. Pods and nodes are the numbers that they have
// in the call at hand.
type Site interface {
	// Admits reports whether a pod may be on a node that has room for it, with the
	// pods that were put there.
	Admits(pod, node int) bool
	// Put and Take tell that a pod is on a node, and that it is there no more.
	Put(pod, node int)
	Take(pod, node int)
	// Open tells that there is a node of a group with the next number, Close that the
	// last one is gone.
	Open(group int)
	Close()
}

// packing puts pods on nodes, each on the first that has room.
type packing struct {
	rooms
	site Site
	pods []Pod
	// from is where to look for the next pod of the same kind: nodes before it had
	// no room for the last one, and have not more now.
	from map[kind]int
	done []put
}

// kind is what equal pods share.
type kind struct {
	needs Amounts
	class int
}

// put is that a pod was put on a node.
type put struct{ pod, node int }

func newPacking(pods []Pod, site Site) *packing {
	return &packing{site: site, pods: pods, from: map[kind]int{}}
}

// place puts a pod on the first node from a number on, if there is one.
func (p *packing) place(pod, from int) bool {
	of := kind{p.pods[pod].Needs, p.pods[pod].Class}
	if of.class != 0 {
		from = max(from, p.from[of])
	}
	node := p.first(of.needs, from, func(node int) bool { return p.site.Admits(pod, node) })
	if of.class != 0 {
		p.from[of] = node
	}
	if node == p.nodes {
		return false
	}
	p.put(pod, node)
	return true
}

// put puts a pod on a node.
func (p *packing) put(pod, node int) {
	p.set(node, p.free(node).Minus(p.pods[pod].Needs))
	p.site.Put(pod, node)
	p.done = append(p.done, put{pod, node})
}

// undo takes the pods off again that were put after so many.
func (p *packing) undo(done int) {
	for len(p.done) > done {
		last := p.done[len(p.done)-1]
		p.done = p.done[:len(p.done)-1]
		p.site.Take(last.pod, last.node)
		p.set(last.node, p.free(last.node).Plus(p.pods[last.pod].Needs))
	}
	clear(p.from)
}

// Place puts pods on nodes that have so much free, in their order, and returns the
// node of each, -1 for those that there is no room for.
func Place(pods []Pod, free []Amounts, site Site) []int {
	p := newPacking(pods, site)
	for _, has := range free {
		p.add(has)
	}
	on := make([]int, len(pods))
	for i := range pods {
		on[i] = -1
		if p.place(i, 0) {
			on[i] = p.done[len(p.done)-1].node
		}
	}
	return on
}
