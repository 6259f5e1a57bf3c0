package doctor

import "testing"

// TestParseName checks the value of --autoscaler.
func TestParseName(t *testing.T) {
	for text, want := range map[string]string{
		"": "/", "kube-system/cluster-autoscaler": "kube-system/cluster-autoscaler", "scaler": "error", "/scaler": "error", "a/b/c": "error",
		"kube-system/": "error", "kube-system/Scaler": "error",
	} {
		got, err := parseName(text)
		if (err != nil) != (want == "error") || err == nil && got.String() != want {
			t.Errorf("parseName(%q) = %v, %v; want %s", text, got, err, want)
		}
		if err != nil && err.Error() != `--autoscaler: invalid value "`+text+`": must be NAMESPACE/NAME of a Deployment` {
			t.Errorf("error %q", err)
		}
	}
}
