package base

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestParseName checks the forms of kubectl and NAMESPACE/NAME.
func TestParseName(t *testing.T) {
	for name, tc := range map[string]struct{ arg, flag, want, err string }{
		"name":                        {"web", "", "/web", ""},
		"name and flag":               {"web", "shop", "shop/web", ""},
		"type":                        {"pod/web", "", "/web", ""},
		"short type and flag":         {"po/web", "shop", "shop/web", ""},
		"namespace and the same flag": {"shop/web", "shop", "shop/web", ""},
		"type and namespace":          {"pod/shop/web", "", "shop/web", ""},
		"namespace and another flag": {
			"shop/web", "pay", "", `--namespace: invalid value "pay": must be "shop" as in the argument shop/web, or unset`,
		},
		"a namespace as another type":  {"pod/deploy/web", "", "deploy/web", ""},
		"empty name":                   {"shop/", "", "", `invalid argument "shop/": must be NAME, pod/NAME or NAMESPACE/NAME of a pod`},
		"too many parts":               {"a/b/c", "", "", `invalid argument "a/b/c": must be NAME, pod/NAME or NAMESPACE/NAME of a pod`},
		"empty":                        {"", "", "", `invalid argument "": must be NAME, pod/NAME or NAMESPACE/NAME of a pod`},
		"a pod that is called as type": {"pod", "", "/pod", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Pod.ParseName(tc.arg, tc.flag)
			switch {
			case tc.err != "":
				if err == nil || err.Error() != tc.err {
					t.Errorf("error %v, want %s", err, tc.err)
				}
			case err != nil || got.String() != tc.want:
				t.Errorf("%s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

// TestUnknownCommand checks the suggestions for a mistyped subcommand.
func TestUnknownCommand(t *testing.T) {
	run := func(*cobra.Command, []string) {}
	group := NewGroup("plimsoll", "", &cobra.Command{Use: "score", Run: run}, &cobra.Command{Use: "explain", Run: run})
	group.SilenceUsage, group.SilenceErrors = true, true
	for arg, want := range map[string]string{
		"scroe": `unknown command "scroe" for "plimsoll"; did you mean score?`,
		"exp":   `unknown command "exp" for "plimsoll"; did you mean explain?`,
		"get":   `unknown command "get" for "plimsoll": must be one of completion, explain, score`,
	} {
		group.SetArgs([]string{arg})
		if err := group.Execute(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
