// Package placement decides which clusters of a fleet a placement gets: the
// arithmetic of the Placement API of Open Cluster Management, without
// Kubernetes, clock or I/O. Resolve reads the prioritizer policy, Decide does
// the rest in one call.
//
// # How a decision comes about
//
//  1. Members of the bound cluster sets that match a predicate and whose taints
//     are tolerated are feasible.
//  2. Every prioritizer gives each feasible cluster an integer in [-100, 100];
//     the total is the sum of weight x score. Kind has the formulas. They are
//     computed exactly and truncated toward zero.
//  3. Clusters rank by total, then by whether the placement has them already, then
//     by name; those with a PreferNoSelect taint that is not tolerated come after
//     all others. The first Number are chosen, or as the spread constraints have
//     it.
//  4. The chosen are divided into groups.
//
// The work grows with the number of clusters, not with its square; only what is
// chosen under a spread constraint, and groups by score, is sorted.
//
// # Where there is no data
//
// A cluster without data for a prioritizer (nothing reported, a capacity of 0, a
// score that expired or is out of range) gets the score that is worst for it:
// -100, and under a negative weight 100. Silence never wins.
//
// # Differences from the controller of Open Cluster Management
//
//   - Scores are exact. That controller computes with floating point, where
//     100 x (0.5 - 21/100) is 28.999999999999996: some of its scores are one less
//     (Balance: two), toward zero.
//   - It scores missing data 0, which is the middle; except that it needs a
//     capacity too for ResourceAllocatable, which is not looked at here.
//   - Its ties go by name alone, so that a new cluster with an early name moves
//     decisions.
//   - It takes PreferNoSelect taints for tolerated, and ignores the spread policy.
//   - It counts the seconds of a toleration against NoSelectIfNew taints too.
//     Where several tolerations match a taint, it wakes up at the end of the first;
//     here the last one counts, being the one that makes a difference. It overflows
//     on seconds in the hundreds of years.
//   - It wakes up for clusters that it had chosen only, and for no expiring score;
//     ChangesAt knows all of them.
//   - A taint without a time of addition is taken by both as added long ago: limited
//     tolerations of it are over.
package placement
