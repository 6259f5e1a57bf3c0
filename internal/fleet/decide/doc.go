// Package decide computes the decisions of the Placement API of Open Cluster Management: which clusters of a fleet a placement
// selects. It does no I/O and has no state.
//
// # Algorithm
//
//  1. Members of the bound cluster sets that match a predicate and whose taints
//     are tolerated are feasible.
//  2. Every prioritizer gives each feasible cluster an integer score in
//     [-100, 100]; the total is the sum of weight x score. docs/placement.md has the
//     formulas. Scores are computed exactly and truncated toward zero.
//  3. Clusters are ranked by total, then by whether they are selected already, then
//     by name; clusters with a PreferNoSelect taint that is not tolerated rank
//     after all other clusters. The first Number clusters are selected, subject to
//     the spread constraints.
//  4. The selected clusters are divided into groups.
//
// # Missing data
//
// A cluster without data for a prioritizer (no reported amount, a capacity of 0, a
// score that has expired or is out of range) gets the score that is worst for it:
// -100, or 100 if the weight is negative. A cluster that reports nothing is
// therefore never preferred.
package decide
