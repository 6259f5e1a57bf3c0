package demo

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
)

// instructions returns the last lines of the demo: the running programs, the profiles, and commands to try.
func (d *demos) instructions(url string) string {
	var profiles []string
	for _, profile := range d.node.Profiles() {
		profiles = append(profiles, profile.Name)
	}
	var text strings.Builder
	text.WriteString(`the cluster runs until you press Ctrl-C; all nodes are simulated

  live page:  ` + url + `
  profiles:   ` + strings.Join(profiles, ", ") + `
              (a pod selects one with spec.schedulerName)
  autoscaler: ` + d.slack.Autoscaler() + `

Commands to try, in another terminal in the project's folder:
`)
	for _, command := range d.commands() {
		text.WriteString("\n  # " + command.Purpose + "\n  " + command.Text + "\n")
	}
	return text.String()
}

// commands returns commands to try in the project's folder, in this order.
func (d *demos) commands() []page.LiveCommand {
	commands := []page.LiveCommand{
		{Purpose: "Use the demo's cluster in this terminal.", Text: "export KUBECONFIG=" + d.env.Plane.Kubeconfig},
		{
			Purpose: "Create a pod; the live page shows which node its profile and the default profile select, and why.",
			Text:    `kubectl run try --image=registry.k8s.io/pause:3.10 --overrides='{"spec":{"schedulerName":"plimsoll-scheduler"}}'`,
		},
		{
			Purpose: "Keep slack in the node pool general; the autoscaler adds a node for it.",
			Text:    "kubectl apply -f examples/slack/policy.yaml",
		},
		{
			Purpose: "Wait until it is available, and show what the autoscaler reports.",
			Text:    "kubectl wait --for=condition=Ready --timeout=2m resourceslack/general && " + plimsollProgram() + " slack status",
		},
		{
			Purpose: "Show the load of the nodes as the scheduler reads it.",
			Text:    plimsollProgram() + " load top --config " + d.env.SchedulerConfig(),
		},
	}
	if !d.fleet.HasRun() {
		return commands
	}
	return append(
		commands,
		page.LiveCommand{
			Purpose: "Give a managed cluster more CPUs (managed clusters are objects without agents).",
			Text: "kubectl patch managedcluster cluster2 --subresource=status --type=merge " +
				`--patch='{"status":{"allocatable":{"cpu":"50"}}}'`,
		},
		page.LiveCommand{
			Purpose: "Show which cluster a placement selects now, and why.",
			Text:    plimsollProgram() + " placement explain where-most-is -n team",
		},
		page.LiveCommand{
			Purpose: "Show why a workload of 32 CPUs per pod fits one cluster, although other clusters have more CPUs free.",
			Text:    plimsollProgram() + " placement explain solver -n team",
		},
	)
}

// plimsollProgram returns the command for the program plimsoll: the program beside this program, as
// make demo builds it, or else the program in PATH.
func plimsollProgram() string {
	self, err := os.Executable()
	if err != nil {
		return "plimsoll"
	}
	program := filepath.Join(filepath.Dir(self), "plimsoll")
	if _, err := os.Stat(program); err != nil {
		return "plimsoll"
	}
	if dir, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(dir, program); err == nil && !strings.HasPrefix(relative, "..") {
			return relative
		}
	}
	return program
}
