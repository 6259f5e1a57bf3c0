package oncluster

import (
	"strconv"
	"strings"
)

// maxIndexes bounds the indexes in the status of a Job.
const maxIndexes = indexesPerPod * MaxParallelism

// parseIndexes returns the indexes in the status of a Job, numbers and ranges such as 1,3-5,7. What is no number is ignored.
func parseIndexes(text string) []int {
	var indexes []int
	for item := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(item, "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < 0 || to >= maxIndexes {
			continue
		}
		for i := from; i <= to && len(indexes) < maxIndexes; i++ {
			indexes = append(indexes, i)
		}
	}
	return indexes
}
