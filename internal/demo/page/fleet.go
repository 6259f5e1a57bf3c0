package page

import (
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/report/svg"
)

// LiveFleet is the ranking of the clusters of a fleet for each placement.
type LiveFleet struct {
	Placements []LivePlacement
}

// LivePlacement is the ranking for one placement, best cluster first.
type LivePlacement struct {
	Name string
	// Message is the message of its condition.
	Message  string
	Clusters []LiveCluster
}

// LiveCluster is one cluster in a ranking.
type LiveCluster struct {
	Name   string
	Chosen bool
	// Reason says why the cluster cannot be selected. If it is empty, Total is the sum of the parts.
	Reason string
	Total  int64
	Parts  []LivePart
}

// LivePart is the contribution of one prioritizer: its weight times its score.
type LivePart struct {
	Prioritizer string
	Weight      int32
	Score       int64
	// NoData means that the prioritizer has no data on the cluster and gives its worst score.
	NoData bool
}

// value returns the contribution to the total.
func (p LivePart) value() float64 { return float64(p.Weight) * float64(p.Score) }

// stack is the chart of a placement: one stacked bar for each cluster over a common axis.
// Positions are in percent of the axis, so that the chart scales with the page but its text does not.
type stack struct {
	LivePlacement
	Keys []stackKey
	Rows []stackRow
	// Zero is the position of 0.
	Zero  float64
	Ticks []stackTick
}

// stackKey is an entry of the legend.
type stackKey struct {
	Color       int
	Prioritizer string
	Weight      int32
}

// stackRow is a cluster and its bar.
type stackRow struct {
	LiveCluster
	Pieces []stackPiece
	// Sum is the position of the total.
	Sum float64
}

// stackPiece is a segment of a bar.
type stackPiece struct {
	Color            int
	From, Width, Mid float64
	// Label is the text on the segment, empty if the segment is too narrow. Title is its tooltip.
	Label, Title string
}

// stackTick is a tick of the axis. Anchor is the text-anchor of its label.
type stackTick struct {
	At            float64
	Label, Anchor string
}

// ownColor are the prioritizers with a color of their own. The others, scores of add-ons, share
// otherColors further colors.
var ownColor = []v1beta1.Prioritizer{
	v1beta1.Balance, v1beta1.Steady, v1beta1.ResourceRatioCPU, v1beta1.ResourceRatioMemory,
	v1beta1.ResourceAllocatableCPU, v1beta1.ResourceAllocatableMemory,
}

const (
	otherColors = 3
	// labelWidth is the width of a label in percent of the axis on the screen of a phone.
	labelWidth = 16.0
)

// stacks returns the charts of a fleet.
func stacks(fleet *LiveFleet) (out []stack) {
	for _, placement := range fleet.Placements {
		out = append(out, newStack(placement))
	}
	return out
}

// newStack returns the chart of a placement.
func newStack(placement LivePlacement) stack {
	s := stack{LivePlacement: placement}
	least, most := 0.0, 0.0
	for _, cluster := range placement.Clusters {
		left, right := extent(cluster.Parts)
		least, most = min(least, left), max(most, right)
		for _, part := range cluster.Parts {
			s.addKey(part)
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

// extent returns the sums of the negative and of the positive parts.
func extent(parts []LivePart) (left, right float64) {
	for _, part := range parts {
		left += min(part.value(), 0)
		right += max(part.value(), 0)
	}
	return left, right
}

// addKey adds the prioritizer of a part to the legend, unless it is there already.
func (s *stack) addKey(part LivePart) {
	if s.color(part.Prioritizer) >= 0 {
		return
	}
	color := slices.Index(ownColor, v1beta1.Prioritizer(part.Prioritizer))
	if color < 0 {
		others := 0
		for _, k := range s.Keys {
			if k.Color >= len(ownColor) {
				others++
			}
		}
		color = len(ownColor) + others%otherColors
	}
	s.Keys = append(s.Keys, stackKey{color, part.Prioritizer, part.Weight})
}

// color returns the color of a prioritizer, -1 if it is not in the legend.
func (s *stack) color(prioritizer string) int {
	i := slices.IndexFunc(s.Keys, func(k stackKey) bool { return k.Prioritizer == prioritizer })
	if i < 0 {
		return -1
	}
	return s.Keys[i].Color
}

// pieces returns the segments of a bar: positive parts to the right of zero, negative parts to the
// left.
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
		piece := stackPiece{Color: s.color(part.Prioritizer), From: axis.At(from), Width: axis.At(from+math.Abs(value)) - axis.At(from)}
		piece.Mid = piece.From + piece.Width/2
		piece.Title = fmt.Sprintf("%s: %d x %d = %+.0f", part.Prioritizer, part.Weight, part.Score, value)
		if part.NoData {
			piece.Title += " (no data)"
		}
		if piece.Width >= labelWidth {
			piece.Label = fmt.Sprintf("%+.0f", value)
		}
		out = append(out, piece)
	}
	return out
}
