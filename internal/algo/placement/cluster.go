package placement

// The resources that prioritizers look at, as indexes of Amounts.
const (
	// CPU in millicores.
	CPU = iota
	// Memory in bytes.
	Memory
	resources
)

// Missing is the amount of a resource that a cluster does not report. Every
// negative amount is taken for it.
const Missing int64 = -1

// Amounts are how much there is of each resource; Missing where nobody says.
// The zero value says that there is nothing of anything, which is a report too.
type Amounts [resources]int64

// Cluster is what decisions read of a managed cluster. It is shared by all
// placements and must not change once handed over.
type Cluster struct {
	// Name is unique in the fleet.
	Name string
	// Labels of the object, and Claims of its status by their names.
	Labels, Claims map[string]string
	Taints         []Taint
	// Capacity is what the nodes have, Allocatable what of it pods may have. The
	// latter can exceed the former only by mistake; that is survived.
	Allocatable, Capacity Amounts
}

// Effect is what a taint does to placements that do not tolerate it.
type Effect uint8

const (
	// AnyEffect is for tolerations: it matches all effects. On a taint it counts as
	// NoSelect, so that an effect nobody knows is on the safe side.
	AnyEffect Effect = iota
	// NoSelect: the cluster is not chosen, and dropped where it was.
	NoSelect
	// PreferNoSelect: the cluster is chosen only after all without such a taint.
	PreferNoSelect
	// NoSelectIfNew: the cluster is not chosen where it was not chosen already.
	NoSelectIfNew
)

// Taint keeps placements off a cluster that do not tolerate it.
type Taint struct {
	Key, Value string
	Effect     Effect
	// Added is when, in Unix seconds; limited tolerations count from there. Where
	// it is unknown it is 0, so that they count as long over.
	Added int64
}
