package page

import (
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/report/svg"
)

// LiveFleet is how managed clusters stand for placements.
type LiveFleet struct {
	Placements []LivePlacement
}

// LivePlacement is how clusters stand for one placement, the best first.
type LivePlacement struct {
	Name string
	// Says is what its condition says.
	Says     string
	Clusters []LiveCluster
}

// LiveCluster is how one cluster stands.
type LiveCluster struct {
	Name   string
	Chosen bool
	// Out says why it could not be chosen; else Total is the sum of its parts.
	Out   string
	Total int64
	Parts []LivePart
}

// LivePart is what one prioritizer adds: its weight times its score.
type LivePart struct {
	Prioritizer string
	Weight      int32
	Score       int64
	// NoData: it knows nothing of the cluster and gives its worst score.
	NoData bool
}

// value returns what the part adds.
func (p LivePart) value() float64 { return float64(p.Weight) * float64(p.Score) }

// stack is a placement as it is drawn: a bar for each cluster, over one axis.
// Places are percent of the axis, so that a bar can be of any width and its text
// stays as large as other text.
type stack struct {
	LivePlacement
	Keys []stackKey
	Rows []stackRow
	// Zero is where nothing is, Ticks are marks of the axis.
	Zero  float64
	Ticks []stackTick
}

// stackKey says which prioritizer has a colour.
type stackKey struct {
	Colour      int
	Prioritizer string
	Weight      int32
}

// stackRow is a cluster and its bar.
type stackRow struct {
	LiveCluster
	Pieces []stackPiece
	// Sum is where the total is on the axis.
	Sum float64
}

// stackPiece is a part as it is drawn.
type stackPiece struct {
	Colour           int
	From, Width, Mid float64
	// Label is written on it, where there is room; Title says all.
	Label, Title string
}

// stackTick is a mark of the axis; Anchor is which end of its label is there.
type stackTick struct {
	At            float64
	Label, Anchor string
}

// known are prioritizers that have a colour of their own; others, the scores of
// add-ons, share the ones that follow.
var known = []string{
	"Balance", "Steady", "ResourceRatioCPU", "ResourceRatioMemory", "ResourceAllocatableCPU", "ResourceAllocatableMemory",
}

const (
	otherColours = 3
	// labelRoom is how much of the axis, in percent, a label takes in a bar as
	// narrow as that of a phone.
	labelRoom = 16.0
)

// stacks lays the placements of a fleet out.
func stacks(fleet *LiveFleet) (out []stack) {
	for _, placement := range fleet.Placements {
		out = append(out, newStack(placement))
	}
	return out
}

func newStack(placement LivePlacement) stack {
	s := stack{LivePlacement: placement}
	least, most := 0.0, 0.0
	for _, cluster := range placement.Clusters {
		left, right := reach(cluster.Parts)
		least, most = min(least, left), max(most, right)
		for _, part := range cluster.Parts {
			s.key(part)
		}
	}
	distance := svg.IntegerStep(most-least, 5)
	least, most = math.Floor(least/distance)*distance, math.Ceil(most/distance)*distance
	if least == most {
		most = distance
	}
	axis := svg.NewScale(least, most, 0, 100)
	s.Zero = axis.At(0)
	for _, t := range axis.Multiples(distance) {
		tick := stackTick{At: axis.At(t.Value), Label: fmt.Sprint(t.Value), Anchor: "middle"}
		switch t.Value {
		case least:
			tick.Anchor = "start"
		case most:
			tick.Anchor = "end"
		}
		s.Ticks = append(s.Ticks, tick)
	}
	for _, cluster := range placement.Clusters {
		s.Rows = append(s.Rows, stackRow{cluster, s.pieces(cluster.Parts, axis), axis.At(float64(cluster.Total))})
	}
	return s
}

// reach returns how far parts go to the left and to the right.
func reach(parts []LivePart) (left, right float64) {
	for _, part := range parts {
		left += min(part.value(), 0)
		right += max(part.value(), 0)
	}
	return left, right
}

// key gives the prioritizer of a part a colour, if it has none yet.
func (s *stack) key(part LivePart) {
	if s.colour(part.Prioritizer) >= 0 {
		return
	}
	colour := slices.Index(known, part.Prioritizer)
	if colour < 0 {
		others := 0
		for _, k := range s.Keys {
			if k.Colour >= len(known) {
				others++
			}
		}
		colour = len(known) + others%otherColours
	}
	s.Keys = append(s.Keys, stackKey{colour, part.Prioritizer, part.Weight})
}

// colour returns that of a prioritizer, -1 if it has none.
func (s *stack) colour(prioritizer string) int {
	i := slices.IndexFunc(s.Keys, func(k stackKey) bool { return k.Prioritizer == prioritizer })
	if i < 0 {
		return -1
	}
	return s.Keys[i].Colour
}

// pieces lays parts side by side: what adds from zero to the right, what takes
// away from zero to the left.
func (s *stack) pieces(parts []LivePart, axis svg.Scale) (out []stackPiece) {
	left, right := 0.0, 0.0
	for _, part := range parts {
		value := part.value()
		if value == 0 {
			continue
		}
		from := right
		if value < 0 {
			left += value
			from = left
		} else {
			right += value
		}
		piece := stackPiece{Colour: s.colour(part.Prioritizer), From: axis.At(from), Width: axis.At(from+math.Abs(value)) - axis.At(from)}
		piece.Mid = piece.From + piece.Width/2
		piece.Title = fmt.Sprintf("%s: %d x %d = %+.0f", part.Prioritizer, part.Weight, part.Score, value)
		if part.NoData {
			piece.Title += " (no data)"
		}
		if piece.Width >= labelRoom {
			piece.Label = fmt.Sprintf("%+.0f", value)
		}
		out = append(out, piece)
	}
	return out
}
