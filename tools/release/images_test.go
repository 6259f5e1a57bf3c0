// Package release tests what a release has that no tool makes.
package release

import (
	"os"
	"strings"
	"testing"
)

// TestDockerfile checks the image of the Dockerfile: it is built on an empty image, its user is not root, and it has the
// certificates and license texts.
func TestDockerfile(t *testing.T) {
	raw, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, shipped, found := strings.Cut(string(raw), "\nFROM scratch\n")
	if !found || strings.Contains(shipped, "\nFROM ") || !strings.Contains(shipped, "\nUSER 65532:65532\n") ||
		!strings.Contains(
			shipped,
			"ca-certificates.crt /etc/ssl/certs/",
		) || !strings.Contains(shipped, "\nCOPY --from=build /LICENSES /LICENSES\n") {
		t.Errorf("ships\n%s", shipped)
	}
}
