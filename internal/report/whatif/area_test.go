package whatif

import (
	"fmt"
	"regexp"
)

var rectangle = regexp.MustCompile(`M\d+ \d+h(\d+)v(\d+)h-(\d+)z`)

// area adds up the rectangles of a picture.
func area(t interface{ Fatal(...any) }, svg string) int {
	sum := 0
	for _, match := range rectangle.FindAllStringSubmatch(svg, -1) {
		var wide, high, back int
		if _, err := fmt.Sscan(match[1]+" "+match[2]+" "+match[3], &wide, &high, &back); err != nil || wide != back {
			t.Fatal(match[0], err)
		}
		sum += wide * high
	}
	return sum
}
