package controller

import (
	"strings"
	"testing"
)

// TestFlags has values of flags that are refused before the cluster is read.
func TestFlags(t *testing.T) {
	const address = "must be HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:7654"
	for flags, want := range map[string]string{
		"":                                     "",
		"--placeholder-namespace=placeholders": "",
		"--metrics-bind-address=0":             "",
		"--placeholder-namespace=plimsoll-system":                  `--placeholder-namespace: invalid value "plimsoll-system": must be`,
		"--placeholder-namespace=A_b":                              `--placeholder-namespace: invalid value "A_b": must be`,
		"--agent --load-address=http://a":                          "--load-provider: required with the other flags of the load source",
		"--namespace=A_b":                                          `--namespace: invalid value "A_b": must be the name of a namespace`,
		"--metrics-bind-address=8080":                              `--metrics-bind-address: invalid value "8080": ` + address,
		"--health-probe-bind-address=:99999":                       `--health-probe-bind-address: invalid value ":99999": ` + address,
		"--metrics-bind-address=:1 --health-probe-bind-address=:1": `--health-probe-bind-address: invalid value ":1": must be another`,
	} {
		cmd := NewCommand()
		err := cmd.ParseFlags(strings.Fields(flags))
		if err == nil {
			err = cmd.PreRunE(cmd, nil)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", flags, err, want)
		}
	}
}
